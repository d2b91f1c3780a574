//! What jails of single programs have in common.

use jail::cgroup::{Availability, Manager};
use jail::program::{Content, Mount};
use std::path::{Path, PathBuf};

/// Where a program finds things inside.
pub const HOME: &str = "/home/user";
pub const TMP: &str = "/tmp";
pub const PACKAGE: &str = "/app";
/// The port of the proxy on the jail's own loopback.
pub const PROXY_PORT: u16 = 3128;

/// Files in a scratch folder.
const SCRATCH_FILES: u64 = 16 << 10;

/// The control groups of this machine, if it has some for us.
pub fn groups() -> Option<Manager> {
    match Manager::open() {
        Ok(Availability::Available(manager)) => {
            // What a killed runner has left behind is empty, and goes now.
            let _ = manager.sweep_stale();
            Some(manager)
        }
        _ => None,
    }
}

/// The system, an empty home and a `/tmp`, with so many bytes each.
pub fn ground(home: u64, tmp: u64, executable: bool) -> Vec<Mount> {
    let scratch = |bytes| Content::Scratch { bytes, files: SCRATCH_FILES, executable };
    let mount = |target: &str, content| Mount { target: target.into(), content };
    let own = [
        mount(TMP, scratch(tmp)),
        mount(HOME, scratch(home)),
        mount("/proc", Content::Proc),
        mount("/dev", Content::Devices),
    ];
    jail::program::system(&[]).into_iter().chain(own).collect()
}

/// Something of the host, read-only.
pub fn host(target: impl Into<PathBuf>, source: &Path) -> Mount {
    Mount { target: target.into(), content: Content::Host { source: source.to_owned(), executable: true } }
}
