//! From a plan to a jail.

use crate::plan::{HOME, NODE_PROXY, PACKAGE, PROXY_PORT, Plan, TMP};
use crate::profile::Access;
use crate::trust::Trust;
use jail::cgroup::{Availability, Manager};
use jail::program::{Bounds, Content, Mount, Tree};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files in a scratch folder.
const SCRATCH_FILES: u64 = 16 << 10;
const OPEN_FILES: u64 = 4096;
/// Of one process, over its whole life: a server of a desktop runs for days.
const CPU_SECONDS: u64 = 7 * 24 * 3600;
/// Private memory that runtimes set aside and hardly touch.
const ASIDE: u64 = 1 << 30;
/// The largest file that is written to a folder of the host.
const FILE_BYTES: u64 = 1 << 30;

/// The control groups of this machine, if it has some for us.
pub(crate) fn groups() -> Option<Manager> {
    match Manager::open() {
        Ok(Availability::Available(manager)) => {
            // What a killed runner has left behind is empty, and goes now.
            let _ = manager.sweep_stale();
            Some(manager)
        }
        _ => None,
    }
}

/// The jail of the server; `package` is where it was installed.
pub(crate) fn tree(plan: &Plan, package: Option<&Path>, trust: Option<&Trust>) -> Tree {
    let limits = &plan.limits;
    let tmp = limits.tmp_mb << 20;
    let mut mounts = ground(tmp, tmp);
    if !plan.offline {
        let bytes = include_bytes!("../js/proxy.cjs").to_vec();
        mounts.push(Mount { target: NODE_PROXY.into(), content: Content::Text { bytes } });
    }
    mounts.extend(trust.map(Trust::mounts).into_iter().flatten());
    mounts.extend(package.map(|folder| host(PACKAGE, folder)));
    mounts.extend(plan.shown.iter().map(|shown| {
        let source = shown.path.clone();
        let content = match shown.access {
            Access::Read => Content::Host { source, executable: true },
            // Nothing that it writes is a program.
            Access::Write => Content::Shared { source, executable: false },
        };
        Mount { target: shown.path.clone(), content }
    }));
    let memory_bytes = limits.memory_mb << 20;
    Tree {
        mounts,
        bounds: Bounds {
            processes: limits.processes,
            memory_bytes,
            cpu_percent: limits.cpu_percent,
            cpu_seconds: CPU_SECONDS,
            data_bytes: memory_bytes.saturating_mul(2).saturating_add(ASIDE),
            file_bytes: FILE_BYTES.max(tmp),
            open_files: OPEN_FILES,
        },
        reads_as: reads_as(plan),
        folder: plan.folder.clone(),
        proxy: (!plan.offline).then_some(PROXY_PORT),
    }
}

/// The system, an empty home and a small `/tmp`.
pub(crate) fn ground(home: u64, tmp: u64) -> Vec<Mount> {
    let scratch = |bytes| Content::Scratch { bytes, files: SCRATCH_FILES, executable: false };
    let mount = |target: &str, content| Mount { target: target.into(), content };
    let own = [
        mount(TMP, scratch(tmp)),
        mount(HOME, scratch(home)),
        mount("/proc", Content::Proc),
        mount("/dev", Content::Devices),
    ];
    jail::program::system(&[]).into_iter().chain(own).collect()
}

pub(crate) fn host(target: impl Into<PathBuf>, source: &Path) -> Mount {
    Mount { target: target.into(), content: Content::Host { source: source.to_owned(), executable: true } }
}

/// For root, who could be anybody: the owner of what is to be written, so that it stays theirs; else the owner of what is
/// to be read, unless that is root.
fn reads_as(plan: &Plan) -> Option<u32> {
    let of = |access| plan.shown.iter().find(|shown| shown.access == access);
    let owner = |path: &Path| path.metadata().ok().map(|found| found.uid());
    match of(Access::Write) {
        Some(shown) => owner(&shown.path),
        None => of(Access::Read).and_then(|shown| owner(&shown.path)).filter(|owner| *owner != 0),
    }
}
