//! A uid for each jail.
//!
//! The kernel counts some things by uid and over all namespaces: descriptors on their way over sockets, pages of pipes,
//! watched files, processes, queued signals. Jails that share a uid share those counts, and one that uses them up stops
//! the others. So root gives each jail a uid that no other process has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::Error;
use crate::sys::{check, check_long};

/// The first range is in nobody's use: above those of containers and below 2³¹. The second is for a host that is itself
/// in a container with 65,536 uids.
const USUAL: [Range<u32>; 2] = [1_900_000_000..1_900_065_536, 30_000..60_000];

/// Where host processes agree on who has which uid: one byte of the file is locked for each.
const FOLDER: &str = "/run/bulkhead";
const FILE: &str = "/run/bulkhead/uids";

/// What the kernel counts by uid, for people.
const SHARED: &str = "so one jail can use up what the kernel counts by uid (descriptors in flight over sockets, pipe \
                      pages, inotify instances) and hold up the others";

static RANGE: OnceLock<Range<u32>> = OnceLock::new();
static USERS: OnceLock<Result<Users, String>> = OnceLock::new();

/// A uid, and the gid of the same number, that one jail has to itself. Keep it until the jail's last process is gone.
#[derive(Debug)]
pub struct Lease {
    uid: u32,
}

impl Lease {
    pub fn uid(&self) -> u32 {
        self.uid
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(Ok(users)) = USERS.get() {
            users.release(self.uid);
        }
    }
}

/// Takes the uids of jails from here instead of the usual range. Must be said before the first jail; later it is ignored.
pub fn set_range(range: Range<u32>) {
    let _ = RANGE.set(range);
}

/// A uid for one jail; `None` where all jails have to share one ([`survey`] says why).
pub fn lease() -> Result<Option<Lease>, Error> {
    match users() {
        Ok(users) => users.take().map(Some),
        // Who names a range counts on it. An ordinary user's host cannot have one at all.
        Err(why) if RANGE.get().is_some() && is_root() => Err(Error::NoUsers { why: why.clone() }),
        Err(_) => Ok(None),
    }
}

/// Whether this process has leased it.
pub(crate) fn is_leased(uid: u32) -> bool {
    USERS.get().is_some_and(|users| users.as_ref().is_ok_and(|users| users.state().leased.contains(&uid)))
}

/// Which uids jails have, or why they share one and what that means.
pub(crate) fn survey() -> Result<String, String> {
    match users() {
        Ok(users) => {
            let file = match open() {
                Ok(_) => String::new(),
                Err(error) => {
                    format!("; other hosts here need another `jail.first_uid`: `{FILE}` cannot be used ({error})")
                }
            };
            let ranges: Vec<_> = users.free.iter().map(|part| format!("{}-{}", part.start, part.end - 1)).collect();
            Ok(format!("{} uids, one for each jail: {}{file}", users.count, ranges.join(", ")))
        }
        Err(why) => Err(format!("all jails share one uid: {why}; {SHARED}")),
    }
}

fn users() -> &'static Result<Users, String> {
    USERS.get_or_init(|| {
        if !is_root() {
            return Err("the host runs as an ordinary user, who has one (to give each jail its own, start it as root; or, if \
                        `/etc/subuid` and `/etc/subgid` name the user, through `unshare --user --map-auto --map-root-user`)"
                .into());
        }
        let wanted = RANGE.get().map_or(USUAL.to_vec(), |range| vec![range.clone()]);
        let taken = Taken::read();
        let free = wanted.iter().map(|range| taken.leave(range)).find(|free| !free.is_empty());
        let free = free.ok_or_else(|| {
            let ranges: Vec<_> = wanted.iter().map(|range| format!("`{}-{}`", range.start, range.end - 1)).collect();
            format!("no uid in {} is free here (`jail.first_uid` and `jail.uids` name others)", ranges.join(" or "))
        })?;
        Ok(Users::new(free))
    })
}

fn is_root() -> bool {
    // SAFETY: geteuid has no arguments and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

#[derive(Debug)]
struct Users {
    /// In order, without overlap.
    free: Vec<Range<u32>>,
    count: u32,
    /// Opened with the first jail. `None` where it cannot be had: then only this process's own jails, and living processes,
    /// are known.
    file: OnceLock<Option<File>>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    leased: BTreeSet<u32>,
    /// Where to look next. Uids that were used lately come last.
    next: u32,
}

impl Users {
    fn new(free: Vec<Range<u32>>) -> Users {
        let count = free.iter().map(|part| part.end - part.start).sum();
        // Two hosts that cannot agree should at least not begin at the same place.
        let next = std::process::id().wrapping_mul(2_654_435_761) % count;
        Users { free, count, file: OnceLock::new(), state: Mutex::new(State { leased: BTreeSet::new(), next }) }
    }

    fn take(&self) -> Result<Lease, Error> {
        let mut state = self.state();
        for _ in 0..self.count {
            let uid = self.nth(state.next);
            state.next = (state.next + 1) % self.count;
            if state.leased.contains(&uid) || !self.lock(uid, true) {
                continue;
            }
            // Somebody may have left processes behind, or the uid may be in use without being written down anywhere.
            if lives(uid) {
                self.lock(uid, false);
                continue;
            }
            state.leased.insert(uid);
            return Ok(Lease { uid });
        }
        Err(Error::NoUser { count: self.count })
    }

    fn release(&self, uid: u32) {
        let mut state = self.state();
        state.leased.remove(&uid);
        self.lock(uid, false);
    }

    fn nth(&self, mut index: u32) -> u32 {
        for part in &self.free {
            let length = part.end - part.start;
            if index < length {
                return part.start + index;
            }
            index -= length;
        }
        self.free[0].start
    }

    /// Locks or unlocks the byte of this uid. False: another host process has it.
    fn lock(&self, uid: u32, lock: bool) -> bool {
        let Some(file) = self.file.get_or_init(|| open().ok()) else { return true };
        // SAFETY: flock is plain numbers, for which all zeros is a value.
        let mut byte: libc::flock = unsafe { std::mem::zeroed() };
        byte.l_type = if lock { libc::F_WRLCK } else { libc::F_UNLCK } as libc::c_short;
        byte.l_whence = libc::SEEK_SET as libc::c_short;
        byte.l_start = i64::from(uid);
        byte.l_len = 1;
        // SAFETY: a descriptor of ours, and one flock that outlives the call. The lock belongs to the open file, which only
        // this process has, and ends with it.
        check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const byte) }).is_ok()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Only root's own file in root's own folder: whoever could lock it could keep everybody from starting a jail.
fn open() -> io::Result<File> {
    match DirBuilder::new().mode(0o700).create(FOLDER) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let folder = fs::symlink_metadata(FOLDER)?;
    if !folder.is_dir() || folder.uid() != 0 || folder.mode() & 0o022 != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(FILE)
}

/// Whether a process with this uid is there: the kernel gives the best priority among them, or says that there is none.
fn lives(uid: u32) -> bool {
    // SAFETY: takes numbers only. Not through the C library, for which -1 is a priority, too.
    let found = check_long(unsafe {
        libc::syscall(libc::SYS_getpriority, libc::PRIO_USER as libc::c_long, libc::c_long::from(uid))
    });
    !found.is_err_and(|error| error.raw_os_error() == Some(libc::ESRCH))
}

/// Uids and gids that somebody has, as far as this machine's files tell, by where each run of them begins and ends.
#[derive(Debug, Default)]
struct Taken(BTreeMap<u32, u32>);

impl Taken {
    fn read() -> Taken {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut taken = Taken::default();
        for file in ["/etc/passwd", "/etc/group"] {
            taken.add(&read(file), |fields| Some((fields.get(2)?.parse().ok()?, 1)));
        }
        for file in ["/etc/subuid", "/etc/subgid"] {
            taken.add(&read(file), |fields| Some((fields.get(1)?.parse().ok()?, fields.get(2)?.parse().ok()?)));
        }
        for file in ["/proc/self/uid_map", "/proc/self/gid_map"] {
            taken.add_unmapped(&read(file));
        }
        taken
    }

    fn add(&mut self, text: &str, run: impl Fn(&[&str]) -> Option<(u32, u32)>) {
        for line in text.lines() {
            let fields: Vec<&str> = line.split(':').collect();
            if let Some((first, count)) = run(&fields) {
                self.insert(first..first.saturating_add(count));
            }
        }
    }

    /// What a map leaves out does not exist here.
    fn add_unmapped(&mut self, map: &str) {
        let mut mapped: Vec<Range<u32>> = map
            .lines()
            .filter_map(|line| {
                let mut fields = line.split_whitespace().map(str::parse::<u32>);
                let (first, count) = (fields.next()?.ok()?, fields.nth(1)?.ok()?);
                Some(first..first.saturating_add(count))
            })
            .collect();
        mapped.sort_by_key(|run| run.start);
        let mut from = 0;
        for run in mapped {
            self.insert(from..run.start.max(from));
            from = from.max(run.end);
        }
        self.insert(from..u32::MAX);
    }

    fn insert(&mut self, run: Range<u32>) {
        if run.start < run.end {
            let end = self.0.entry(run.start).or_insert(run.end);
            *end = (*end).max(run.end);
        }
    }

    /// What of a range is left.
    fn leave(&self, range: &Range<u32>) -> Vec<Range<u32>> {
        let (mut left, mut from) = (Vec::new(), range.start.max(1));
        for (&start, &end) in self.0.iter().filter(|(start, end)| **start < range.end && **end > range.start) {
            if start > from {
                left.push(from..start);
            }
            from = from.max(end);
        }
        if from < range.end {
            left.push(from..range.end);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_that_somebody_has_are_left_out() {
        let mut taken = Taken::default();
        taken.add("root:x:0:0::/:/bin/sh\nann:x:105:105::/:/bin/sh\nnonsense\n", |fields| {
            Some((fields.get(2)?.parse().ok()?, 1))
        });
        taken.add("ann:110:5\nbob:113:4", |fields| Some((fields.get(1)?.parse().ok()?, fields.get(2)?.parse().ok()?)));
        assert_eq!(taken.leave(&(100..120)), [100..105, 106..110, 117..120]);
        assert_eq!(taken.leave(&(111..115)), []);
        assert_eq!(taken.leave(&(0..3)).first(), Some(&(1..3)), "root is never one of them");
    }

    #[test]
    fn uids_that_the_namespace_does_not_have_are_left_out() {
        let mut taken = Taken::default();
        taken.add_unmapped("         0     100000      65536\n");
        assert_eq!(taken.leave(&USUAL[0]), []);
        assert_eq!(taken.leave(&USUAL[1]), std::slice::from_ref(&USUAL[1]));
        let mut whole = Taken::default();
        whole.add_unmapped("         0          0 4294967295\n");
        assert_eq!(whole.leave(&USUAL[0]), std::slice::from_ref(&USUAL[0]));
    }

    #[test]
    fn no_uid_is_given_twice_at_once() {
        let free = vec![USUAL[0].start..USUAL[0].start + 2, USUAL[0].start + 10..USUAL[0].start + 12];
        let users = Users { file: OnceLock::from(None), ..Users::new(free) };
        let mut given: Vec<u32> = (0..4).map(|_| std::mem::ManuallyDrop::new(users.take().unwrap()).uid()).collect();
        assert!(matches!(users.take(), Err(Error::NoUser { count: 4 })));
        users.release(given[2]);
        assert_eq!(std::mem::ManuallyDrop::new(users.take().unwrap()).uid(), given[2]);
        given.sort_unstable();
        given.dedup();
        assert_eq!(given.len(), 4);
    }

    #[test]
    fn living_processes_are_found() {
        // SAFETY: getuid has no arguments and cannot fail.
        assert!(lives(unsafe { libc::getuid() }));
        assert!(!lives(1_999_999_999));
    }
}
