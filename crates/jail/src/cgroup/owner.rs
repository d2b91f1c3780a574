use std::fs;

use crate::error::Error;

/// The host process that made a group: pid, the moment it started (pids are reused), and the pid namespace in
/// which both mean something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    namespace: u64,
    pid: u32,
    started: u64,
}

impl Owner {
    pub(super) fn this_process() -> Result<Owner, Error> {
        let pid = std::process::id();
        let unreadable = |source| Error::Group { action: "name an owner for", path: "/proc/self".into(), source };
        let namespace = namespace().map_err(unreadable)?;
        let started = started(pid).map_err(unreadable)?;
        Ok(Owner { namespace, pid, started })
    }

    /// The directory of the group `name` of this owner.
    pub(super) fn directory(&self, name: &str) -> String {
        format!("{}.{}.{}.{name}", self.namespace, self.pid, self.started)
    }

    /// The owner that a directory name tells of; `None` when it is not one of ours.
    pub(super) fn of_directory(directory: &str) -> Option<Owner> {
        let mut parts = directory.splitn(4, '.');
        let namespace = parts.next()?.parse().ok()?;
        let pid = parts.next()?.parse().ok()?;
        let started = parts.next()?.parse().ok()?;
        parts.next()?;
        Some(Owner { namespace, pid, started })
    }

    /// Only when it can be known: an owner in another pid namespace counts as alive.
    pub(super) fn is_gone(&self) -> bool {
        namespace().is_ok_and(|namespace| namespace == self.namespace)
            && match started(self.pid) {
                Ok(started) => started != self.started,
                Err(error) => error.kind() == std::io::ErrorKind::NotFound,
            }
    }
}

fn namespace() -> std::io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(fs::metadata("/proc/self/ns/pid")?.ino())
}

/// Field 22 of `stat`, in clock ticks since boot. The name in field 2 may hold anything.
fn started(pid: u32) -> std::io::Result<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat"))?;
    let stat = String::from_utf8_lossy(&stat);
    let after_name = stat.rsplit_once(") ").map(|(_, rest)| rest);
    after_name
        .and_then(|rest| rest.split(' ').nth(19))
        .and_then(|field| field.parse().ok())
        .ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_tells_its_owner() {
        let owner = Owner::this_process().expect("this process has an owner");
        let directory = owner.directory("acme-prices");
        assert_eq!(Owner::of_directory(&directory), Some(owner));
    }

    #[test]
    fn foreign_directories_have_no_owner() {
        for name in ["", "docker", "1.2.3", "a.b.c.d", "1.2.x.name", "-1.2.3.name"] {
            assert_eq!(Owner::of_directory(name), None, "{name}");
        }
    }

    #[test]
    fn this_process_is_not_gone_but_its_predecessor_with_the_same_pid_is() {
        let owner = Owner::this_process().expect("this process has an owner");
        assert!(!owner.is_gone());
        let before = Owner { started: owner.started - 1, ..owner.clone() };
        assert!(before.is_gone());
        let elsewhere = Owner { namespace: owner.namespace + 1, ..before };
        assert!(!elsewhere.is_gone());
    }
}
