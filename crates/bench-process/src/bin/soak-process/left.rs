//! What could be left behind.

use std::fs;
use std::path::{Path, PathBuf};

/// Mounts that this process sees.
pub fn mounts() -> usize {
    fs::read_to_string("/proc/self/mountinfo").unwrap_or_default().lines().count()
}

/// Control groups that these hosts have made: their names begin with a namespace and the host's process.
pub fn groups(hosts: &[u32]) -> Vec<PathBuf> {
    let made = |name: &str| {
        let host = name.split('.').nth(1).and_then(|part| part.parse().ok());
        host.is_some_and(|host| hosts.contains(&host))
    };
    let mut found = Vec::new();
    let mut queue = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = queue.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let ours = folder.ends_with("bulkhead") && entry.file_name().to_str().is_some_and(made);
            if ours { &mut found } else { &mut queue }.push(entry.path());
        }
    }
    for group in &found {
        eprintln!("left: {}", group.display());
    }
    found
}

pub fn files(folder: &Path) -> Vec<PathBuf> {
    let found: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    for file in &found {
        eprintln!("left: {}", file.display());
    }
    found
}
