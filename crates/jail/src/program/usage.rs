//! What all processes of a tree use, read from the `/proc` of their own pid namespace: nobody can hide there by leaving
//! their parent, and nobody else is in it.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::tally::{Reading, Which};

/// Longer lists are cut off; the bound on processes is far below.
const MOST: usize = 4096;

/// What a tree uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processes, with the one that is ours.
    pub processes: u64,
    pub threads: u64,
    /// Memory of its own and shared memory, in bytes, resident or in swap; what processes share after a fork counts for
    /// each. With it page tables and, without a control group, what waits in sockets. Files that are only mapped do not
    /// count, nor do scratch folders, which have their own bounds.
    pub memory_bytes: u64,
    /// Of that, what it holds for certain, however much its processes share.
    pub least_bytes: u64,
    /// CPU time of all that live or ever lived. Without a control group, children whose parent ignores their end are
    /// counted as they are seen, and what is never seen is estimated.
    pub cpu: Duration,
}

/// Nothing when none is left. CPU time is told apart for each process, where it is wanted.
pub(super) fn of_all(processes: &OwnedFd, cpu: bool) -> Option<(Usage, HashMap<Which, Reading>)> {
    let (mut sum, mut readings) = (Usage::default(), HashMap::new());
    let (mut largest, mut tables) = (0, 0);
    for process in list(processes)? {
        // It may have ended since.
        let Some(status) = beginning(&process.join("status")) else { continue };
        sum.processes += 1;
        let threads = number(&status, "Threads:");
        sum.threads += threads;
        let held = held(&process, &status);
        sum.memory_bytes += (held.resident + held.tables) << 10;
        (largest, tables) = (held.resident.max(largest), tables + held.tables);
        if cpu {
            let stat = beginning(&process.join("stat")).unwrap_or_default();
            let [own, children] =
                cpu_ticks(&stat).map(|ticks| Duration::from_secs_f64(ticks as f64 / ticks_per_second()));
            let own = own.max(precise_cpu(&process, threads));
            readings.extend(which(&stat).map(|which| (which, Reading { own, children })));
        }
    }
    sum.least_bytes = (largest + tables) << 10;
    (sum.processes > 0).then_some((sum, readings))
}

/// Whether the first process, which ends with the program, is about to end, or nobody else is left who is not.
pub(super) fn ending(processes: &OwnedFd) -> bool {
    let goes_on = |process: &PathBuf| beginning(&process.join("stat")).is_some_and(|stat| goes_on(&stat));
    let Some(all) = list(processes) else { return false };
    let (first, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|process| process.ends_with("1"));
    !first.iter().any(goes_on) || !others.iter().any(goes_on)
}

/// Nothing when it takes longer than this.
pub(super) fn proportional(processes: &OwnedFd, deadline: Instant) -> Option<u64> {
    let mut sum = 0;
    for process in list(processes).unwrap_or_default() {
        let Some(status) = beginning(&process.join("status")) else { continue };
        let held = held(&process, &status);
        sum += held.tables;
        sum += match beginning(&process.join("smaps_rollup")) {
            Some(rollup) => number(&rollup, "Pss_Anon:") + number(&rollup, "Pss_Shmem:") + number(&rollup, "SwapPss:"),
            // The first process lets nobody look that closely, nor does one whose first thread has ended.
            None => held.resident,
        };
        if Instant::now() > deadline {
            return None;
        }
    }
    Some(sum << 10)
}

/// KiB of one process.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Memory {
    /// What was put out to swap is held as well.
    resident: u64,
    /// Page tables, which no other process shares. Reading through nothing makes as many as one likes.
    tables: u64,
}

/// Of a process with this status.
fn held(process: &Path, status: &str) -> Memory {
    let held = |status: &str| Memory {
        resident: ["RssAnon:", "RssShmem:", "VmSwap:"].map(|name| number(status, name)).iter().sum(),
        tables: number(status, "VmPTE:"),
    };
    if status.contains("\nRssAnon:") {
        return held(status);
    }
    // The kernel shows no memory of a process whose first thread has ended, and the others go on with all of it.
    let threads = of_threads(process).filter_map(|thread| beginning(&thread.join("status")));
    threads.map(|status| held(&status)).max().unwrap_or_default()
}

/// Where the kernel tells of each thread.
pub(super) fn of_threads(process: &Path) -> impl Iterator<Item = PathBuf> {
    let threads = fs::read_dir(process.join("task")).into_iter().flatten().filter_map(Result::ok);
    threads.take(MOST).map(|thread| thread.path())
}

fn list(processes: &OwnedFd) -> Option<Vec<PathBuf>> {
    let folder = format!("/proc/self/fd/{}", processes.as_raw_fd());
    let entries = fs::read_dir(Path::new(&folder)).ok()?;
    let process = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit);
    Some(entries.filter_map(Result::ok).filter(process).take(MOST).map(|entry| entry.path()).collect())
}

/// What a file of `/proc` says, up to a bound beyond which nothing is that is asked for; nothing when it says nothing.
/// The kernel gives all of it at once, and it is asked for often. A process may call itself what it likes, so this need
/// not be text.
fn beginning(file: &Path) -> Option<String> {
    let mut buffer = [0; 4096];
    let length = fs::File::open(file).and_then(|mut file| file.read(&mut buffer)).ok().filter(|length| *length > 0)?;
    Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

/// The number after a name at the beginning of a line.
fn number(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Fields 3, 9 and 20: the state, flags and threads. Where the first thread has ended, others may go on.
fn goes_on(stat: &str) -> bool {
    const ENDS: u64 = 4;
    let mut fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
    let state = fields.next();
    let mut number = |skipped| fields.nth(skipped).and_then(|field| field.parse::<u64>().ok());
    let (flags, threads) = (number(5), number(10));
    let ended = matches!(state, Some("Z" | "X")) || flags.is_some_and(|flags| flags & ENDS != 0);
    !ended || threads.is_some_and(|threads| threads > 1)
}

/// Fields 14 to 17: user and system, of the process with its threads that have ended, and of the children it has waited
/// for. The name in field 2 may hold spaces and brackets.
fn cpu_ticks(stat: &str) -> [u64; 2] {
    let mut fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').skip(11);
    [(); 2].map(|()| fields.by_ref().take(2).filter_map(|field| field.parse::<u64>().ok()).sum())
}

/// Fields 1 and 22: the number, and when it started.
fn which(stat: &str) -> Option<Which> {
    let number = stat.split(' ').next()?.parse().ok()?;
    let started = stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()?;
    Some((number, started))
}

/// CPU time of the threads that live, to the nanosecond while they sleep; nothing where the kernel does not count so.
/// Ticks are of 10 ms, and most calls take less.
fn precise_cpu(process: &Path, threads: u64) -> Duration {
    let of_one =
        |folder: &Path| -> Option<u64> { beginning(&folder.join("schedstat"))?.split(' ').next()?.parse().ok() };
    let nanoseconds = match threads {
        1 => of_one(process).unwrap_or(0),
        _ => of_threads(process).filter_map(|thread| of_one(&thread)).fold(0, u64::saturating_add),
    };
    Duration::from_nanos(nanoseconds)
}

fn ticks_per_second() -> f64 {
    // SAFETY: sysconf reads a constant; it touches no memory of ours.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    if ticks > 0 { ticks as f64 } else { 100.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tick is 10 ms: what takes less shows, too, once it is over.
    #[test]
    fn less_than_a_tick_of_a_thread_is_counted() {
        let itself = Path::new("/proc/self");
        if !itself.join("schedstat").exists() {
            return eprintln!("skipped: this kernel does not count so");
        }
        let (tell, hear) = std::sync::mpsc::channel::<()>();
        let (done, over) = std::sync::mpsc::channel();
        let before = precise_cpu(itself, 2);
        let thread = std::thread::spawn(move || {
            let began = std::time::Instant::now();
            while began.elapsed() < Duration::from_millis(2) {}
            done.send(()).expect("the test");
            // While it waits here the kernel has counted what it used.
            let _ = hear.recv();
        });
        over.recv().expect("the thread");
        let counted = (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            precise_cpu(itself, 2).saturating_sub(before) > Duration::from_micros(100)
        });
        drop(tell);
        thread.join().expect("the thread");
        assert!(counted);
    }

    #[test]
    fn the_fields_are_found_behind_any_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194304 100 0 0 0 10 20 30 40 20 0 1 0 5 6 7";
        assert_eq!(cpu_ticks(stat), [30, 70]);
        assert_eq!(cpu_ticks(""), [0, 0]);
        assert_eq!((which(stat), which("")), (Some((7, 5)), None));
        assert_eq!(number("Threads:\t12\nRssAnon:\t   340 kB\n", "RssAnon:"), 340);
        assert_eq!(number("Threads:\t12\n", "RssShmem:"), 0);
    }
}
