//! Forking, waiting and the life of one process.

use std::ffi::CStr;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

use crate::error::Error;
use crate::sys::{check, check_long, retry};

/// The exact flags of [`fork_with_pidfd`]; the zygote's policy allows no other `clone`.
pub const FORK_FLAGS: u64 = libc::CLONE_PIDFD as u64 | libc::SIGCHLD as u64;

/// Exit status of a child that could not be tied to its parent.
const EXIT_UNTIED: i32 = 71;

/// The highest signal number of the kernel's 64.
const LAST_SIGNAL: i32 = 64;

/// A child as its parent sees it.
#[derive(Debug)]
pub struct Forked {
    pub pid: i32,
    pub pidfd: OwnedFd,
}

/// Which of the two processes [`fork_with_pidfd`] returned in.
#[derive(Debug)]
pub enum Fork {
    Parent(Forked),
    Child,
}

/// Forks a single-threaded process. The child dies with its parent from its first instruction that returns here.
///
/// It is the raw `clone`, because `clone3` keeps its flags in memory where no filter can see them. So no `atfork`
/// handler runs and the C library's notion of its thread id stays the parent's: do not make threads in the child.
pub fn fork_with_pidfd() -> Result<Fork, Error> {
    let mut pidfd: RawFd = -1;
    // SAFETY: getpid has no arguments and cannot fail.
    let parent = unsafe { libc::getpid() };
    // SAFETY: without CLONE_VM and with no new stack this is fork: the child goes on in a copy of everything. The
    // kernel writes the descriptor through the third argument before either side returns.
    let pid = check_long(unsafe {
        libc::syscall(
            libc::SYS_clone,
            FORK_FLAGS,
            0 as libc::c_long,
            &raw mut pidfd,
            0 as libc::c_long,
            0 as libc::c_long,
        )
    })
    .map_err(Error::Fork)?;
    if pid == 0 {
        // An error value here would make the child run its parent's error path.
        // SAFETY: getppid has no arguments and cannot fail.
        if die_with_parent().is_err() || unsafe { libc::getppid() } != parent {
            exit_now(EXIT_UNTIED);
        }
        return Ok(Fork::Child);
    }
    // SAFETY: the kernel made this descriptor for this call, so nobody else owns it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Fork::Parent(Forked { pid: pid as i32, pidfd }))
}

/// Asks the kernel to SIGKILL this process when the *thread* that forked it ends.
///
/// A parent that ended before is not noticed: [`fork_with_pidfd`] and [`crate::namespaces::fork_init`] close that
/// race themselves. A later change of user clears the setting.
pub fn die_with_parent() -> Result<(), Error> {
    set_attribute("parent-death signal", libc::PR_SET_PDEATHSIG, libc::SIGKILL)
}

pub(crate) fn set_dumpable(on: bool) -> Result<(), Error> {
    set_attribute("dumpable", libc::PR_SET_DUMPABLE, i32::from(on))
}

pub(crate) fn set_no_new_privs() -> Result<(), Error> {
    set_attribute("no_new_privs", libc::PR_SET_NO_NEW_PRIVS, 1)
}

/// The name that lists of processes show.
pub(crate) fn set_name(name: &CStr) -> Result<(), Error> {
    // SAFETY: a string with a terminating zero that outlives the call; the kernel reads at most 16 bytes of it.
    check(unsafe {
        libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0 as libc::c_ulong, 0 as libc::c_ulong, 0 as libc::c_ulong)
    })
    .map_err(|source| Error::Attribute { name: "name", source })?;
    Ok(())
}

/// `prctl` with one number. Unused arguments are zero, as the kernel demands for some options.
pub(crate) fn set_attribute(name: &'static str, option: libc::c_int, value: i32) -> Result<(), Error> {
    let value = libc::c_ulong::from(value.unsigned_abs());
    // SAFETY: the options used take numbers, not pointers; all five arguments are given.
    check(unsafe { libc::prctl(option, value, 0 as libc::c_ulong, 0 as libc::c_ulong, 0 as libc::c_ulong) })
        .map_err(|source| Error::Attribute { name, source })?;
    Ok(())
}

/// Keeps only the given descriptors, each under its target number, and closes every other one.
///
/// Sources and targets may overlap in any way. Uses `dup3` and `close_range` only. The kept ones survive `execve`.
pub fn keep_only(fds: &[(RawFd, i32)]) -> Result<(), Error> {
    let mut targets: Vec<i32> = fds.iter().map(|(_, target)| *target).collect();
    targets.sort_unstable();
    let invalid = targets.windows(2).find(|pair| pair[0] == pair[1]);
    if let Some(&target) = invalid.map(|pair| &pair[0]).or(targets.first().filter(|t| **t < 0)) {
        return Err(Error::Descriptor { fd: -1, target, source: io::Error::from_raw_os_error(libc::EINVAL) });
    }
    // By way of numbers that are neither source nor target, so that no step destroys a later one's source.
    let spare = (0..).filter(|n| fds.iter().all(|(fd, target)| fd != n && target != n));
    let mut moves = Vec::with_capacity(fds.len());
    for (&(fd, target), by_way_of) in fds.iter().zip(spare) {
        duplicate(fd, by_way_of, target)?;
        moves.push((by_way_of, target));
    }
    for (by_way_of, target) in moves {
        duplicate(by_way_of, target, target)?;
    }
    let mut first = 0;
    for target in targets {
        let target = target as u32;
        if target > first {
            close_range(first, target - 1)?;
        }
        first = target + 1;
    }
    close_range(first, u32::MAX)
}

fn duplicate(fd: RawFd, to: RawFd, target: RawFd) -> Result<(), Error> {
    // SAFETY: takes numbers only. What was open under `to` is closed, which keep_only promises its caller.
    check(unsafe { libc::dup3(fd, to, 0) }).map_err(|source| Error::Descriptor { fd, target, source })?;
    Ok(())
}

/// Closes every descriptor from `first` on.
pub(crate) fn close_from(first: u32) -> Result<(), Error> {
    close_range(first, u32::MAX)
}

fn close_range(first: u32, last: u32) -> Result<(), Error> {
    // SAFETY: takes numbers only. Owners of the closed descriptors are left with dangling numbers, which is what the
    // callers announce: they run in a fresh child or in a process that owns nothing more.
    check_long(unsafe {
        libc::syscall(libc::SYS_close_range, libc::c_ulong::from(first), libc::c_ulong::from(last), 0 as libc::c_ulong)
    })
    .map_err(|source| Error::CloseRange { first, last, source })?;
    Ok(())
}

/// How a process ended, and what it used, with the children it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub cpu: Duration,
    pub memory: Memory,
}

/// What a process has taken of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// The most that it ever had resident.
    pub peak_rss_kb: u64,
    /// Pages that it touched for the first time, or again after it had given them back.
    pub faults: u64,
}

/// What a process has used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    pub cpu: Duration,
    pub memory: Memory,
}

impl Used {
    /// By this process, in one system call.
    pub fn of_self() -> Used {
        let mut usage = empty_usage();
        // SAFETY: the call writes one rusage, which `usage` is; it cannot fail for RUSAGE_SELF and a valid pointer.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
        Used { cpu: duration(usage.ru_utime) + duration(usage.ru_stime), memory: Memory::of(&usage) }
    }
}

impl Memory {
    /// Of this process.
    pub fn of_self() -> Memory {
        Used::of_self().memory
    }

    fn of(usage: &libc::rusage) -> Memory {
        let faults = usage.ru_minflt.unsigned_abs() + usage.ru_majflt.unsigned_abs();
        Memory { peak_rss_kb: usage.ru_maxrss.unsigned_abs(), faults }
    }

    /// KiB that were resident beyond `before`.
    pub fn resident_since(self, before: Memory) -> u64 {
        self.peak_rss_kb.saturating_sub(before.peak_rss_kb)
    }

    /// KiB of pages that were touched since `before`, as far as they were resident at once. Code in huge pages, which is
    /// everybody's, hardly counts. Only where memory of its own comes in small pages.
    pub fn touched_since(self, before: Memory) -> u64 {
        const PAGE_KB: u64 = 4;
        self.resident_since(before).min(self.faults.saturating_sub(before.faults) * PAGE_KB)
    }
}

/// Collects any child that has ended; `None` when none has, or there are no children.
pub fn wait_any_nohang() -> Result<Option<(i32, Exit)>, Error> {
    match wait4(-1, libc::WNOHANG) {
        Ok((0, _)) => Ok(None),
        Ok((pid, exit)) => Ok(Some((pid, exit))),
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => Ok(None),
        Err(source) => Err(Error::Wait { pid: -1, source }),
    }
}

/// Waits until the child `pid` ends.
pub fn wait(pid: i32) -> Result<Exit, Error> {
    match wait4(pid, 0) {
        Ok((_, exit)) => Ok(exit),
        Err(source) => Err(Error::Wait { pid, source }),
    }
}

fn wait4(pid: i32, options: libc::c_int) -> io::Result<(i32, Exit)> {
    let mut status = 0;
    let mut usage = empty_usage();
    // SAFETY: both pointers are to locals of the types the call writes.
    let pid = retry(|| check(unsafe { libc::wait4(pid, &raw mut status, options, &raw mut usage) }))?;
    let exit = Exit {
        code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
        memory: Memory::of(&usage),
    };
    Ok((pid, exit))
}

/// After `after` of CPU time from now the kernel sends SIGPROF once, which kills unless someone handles it; `None`
/// disarms. Does not kill pid 1 of a pid namespace (see [`crate::namespaces::fork_init`]). A child starts disarmed.
///
/// The kernel looks at its clock ticks, so the kill may come some milliseconds late.
pub fn arm_cpu_timer(after: Option<Duration>) -> Result<(), Error> {
    let none = libc::timeval { tv_sec: 0, tv_usec: 0 };
    // A value of zero would disarm: the smallest budget is one microsecond.
    let value = after.map_or(none, |after| {
        let after = after.max(Duration::from_micros(1));
        libc::timeval {
            tv_sec: libc::time_t::try_from(after.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_usec: after.subsec_micros().into(),
        }
    });
    let timer = libc::itimerval { it_interval: none, it_value: value };
    // SAFETY: the new value is a local; the old one is not asked for. The raw call takes the same structure on
    // 64-bit Linux.
    check_long(unsafe {
        libc::syscall(
            libc::SYS_setitimer,
            libc::c_long::from(libc::ITIMER_PROF),
            &raw const timer,
            ptr::null_mut::<libc::itimerval>(),
        )
    })
    .map_err(Error::CpuTimer)?;
    Ok(())
}

/// CPU time that this process has used, to the microsecond. By its usage, because no sealed process may read CPU clocks.
pub fn cpu_used() -> Duration {
    Used::of_self().cpu
}

/// Reads one clock.
pub(crate) fn clock(id: libc::clockid_t) -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec, which `time` is.
    check(unsafe { libc::clock_gettime(id, &raw mut time) })?;
    Ok(Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0)))
}

fn empty_usage() -> libc::rusage {
    // SAFETY: rusage is plain numbers, for which all zeros is a value.
    unsafe { std::mem::zeroed() }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_usec).unwrap_or(0) * 1000)
}

/// Gives every signal its default disposition and unblocks all, whatever the host had set.
///
/// Except SIGPIPE, which is ignored: a sealed child can only `write`, and a host that hung up should be an error to
/// handle, not a death that looks like the tenant's fault.
pub fn reset_signals() -> Result<(), Error> {
    for signal in 1..=LAST_SIGNAL {
        match signal {
            libc::SIGKILL | libc::SIGSTOP => {}
            libc::SIGPIPE => set_disposition(signal, libc::SIG_IGN)?,
            _ => set_disposition(signal, libc::SIG_DFL)?,
        }
    }
    unblock_signals()
}

/// No signal waits any more.
pub(crate) fn unblock_signals() -> Result<(), Error> {
    // SAFETY: sigset_t is plain bits; sigemptyset gives it its proper empty value before it is used.
    let emptied = unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        check(libc::sigemptyset(&raw mut none))
            .and_then(|_| check(libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut())))
    };
    emptied.map_err(|source| Error::Signal { signal: 0, source })?;
    Ok(())
}

pub(crate) fn signal_default(signal: i32) -> Result<(), Error> {
    set_disposition(signal, libc::SIG_DFL)
}

/// `rt_sigaction` itself: the C library hides two real-time signals that a host may have blocked or ignored.
fn set_disposition(signal: i32, disposition: libc::sighandler_t) -> Result<(), Error> {
    // handler, flags, restorer, mask: all that the kernel reads, and no handler means it never uses the restorer.
    let action: [usize; 4] = [disposition, 0, 0, 0];
    // SAFETY: `action` has the layout and size of the kernel's sigaction; SIG_DFL and SIG_IGN run no code of ours.
    check_long(unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            libc::c_long::from(signal),
            action.as_ptr(),
            ptr::null_mut::<usize>(),
            8 as libc::c_long,
        )
    })
    .map_err(|source| Error::Signal { signal, source })?;
    Ok(())
}

/// From here on a panic ends the process: it is a bug that should be loud, and must never unwind into V8.
///
/// Not `panic = "abort"` in the profile: tests cannot have that, so everything would be compiled twice.
pub fn abort_on_panic() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        std::process::abort();
    }));
}

/// `exit_group` without handlers, buffers or destructors.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit does not return and runs nothing of this process.
    unsafe { libc::_exit(code) }
}
