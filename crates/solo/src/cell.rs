//! From a plan to a jail.

use crate::plan::Plan;
use crate::ports;
use crate::profile::Access;
use crate::trust::Trust;
use egress::proxy::Outfit;
use install::{PACKAGE, PROXY_PORT, ground, host};
use jail::program::{Bounds, Content, Mount, Tree};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const OPEN_FILES: u64 = 4096;
/// Of one process, over its whole life: a server of a desktop runs for days.
const CPU_SECONDS: u64 = 7 * 24 * 3600;
/// Private memory that runtimes set aside and hardly touch.
const ASIDE: u64 = 1 << 30;
/// The largest file that is written to a folder of the host.
const FILE_BYTES: u64 = 1 << 30;

/// The jail of the server; `package` is where it was installed.
pub(crate) fn tree(plan: &Plan, package: Option<&Path>, trust: Option<&Trust>) -> Tree {
    let limits = &plan.limits;
    let tmp = limits.tmp_mb << 20;
    let mut mounts = ground(tmp, tmp, false);
    if !plan.offline {
        let outfit = Outfit::new(PROXY_PORT, trust.map(|trust| &*trust.authority));
        let text = |(target, bytes)| Mount { target, content: Content::Text { bytes } };
        mounts.extend(outfit.files.into_iter().map(text));
    }
    ports::name(&plan.tcp, &mut mounts);
    mounts.extend(package.map(|folder| host(PACKAGE, folder)));
    mounts.extend(of_host(plan));
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
        unix_sockets: plan.makes_sockets(),
    }
}

/// What is shown of the host, with what is kept from the server in there. What lies in another comes after it.
fn of_host(plan: &Plan) -> Vec<Mount> {
    let read = |path: &PathBuf, executable| Content::Host { source: path.clone(), executable };
    // Nothing that it writes is a program.
    let write = |path: &PathBuf| Content::Shared { source: path.clone(), executable: false };
    let mut all: Vec<(&PathBuf, Content)> = Vec::new();
    for shown in &plan.shown {
        let content = match shown.access {
            Access::Read => read(&shown.path, true),
            Access::Write => write(&shown.path),
        };
        all.push((&shown.path, content));
    }
    let guarded = &plan.guarded;
    all.extend(guarded.pinned.iter().chain(&guarded.opened).map(|path| (path, write(path))));
    all.extend(guarded.read_only.iter().map(|path| (path, read(path, false))));
    all.extend(guarded.pipes.iter().map(|path| (path, Content::Hidden)));
    all.sort_by_key(|(path, _)| path.components().count());
    all.into_iter().map(|(path, content)| Mount { target: path.clone(), content }).collect()
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
