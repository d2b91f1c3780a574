//! A process by descriptor: the number cannot be recycled under the holder.

use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::error::Error;
use crate::process;
use crate::sys::{check, check_long, retry};

/// How a process competes for the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// In short slices, so that whoever wakes up beside it is served soon.
    Brisk,
    /// When nobody else wants to run. Without privileges there is no way back.
    Last,
}

/// A tenth of the kernel's own slice: short enough not to be noticed in a call, long enough to get something done.
const BRISK_SLICE: Duration = Duration::from_micros(300);

/// A process descriptor.
#[derive(Debug)]
pub struct PidFd(OwnedFd);

impl PidFd {
    /// The process `pid`, which must be the caller's unwaited child, or the number may mean another by now.
    pub fn open(pid: i32) -> Result<PidFd, Error> {
        // SAFETY: takes numbers only.
        let fd = check_long(unsafe { libc::syscall(libc::SYS_pidfd_open, libc::c_long::from(pid), 0 as libc::c_long) })
            .map_err(Error::PidFd)?;
        // SAFETY: the kernel made this descriptor for this call, so nobody else owns it.
        Ok(PidFd(unsafe { OwnedFd::from_raw_fd(fd as i32) }))
    }

    /// Takes a descriptor that came from a process nobody trusts, and refuses what is not a process.
    /// Gives its pid, too, because finding that out is what costs; `None` when it has ended and been collected.
    pub fn from_untrusted(fd: OwnedFd) -> Result<(PidFd, Option<i32>), Error> {
        let pidfd = PidFd(fd);
        match pidfd.pid() {
            Ok(pid) => Ok((pidfd, Some(pid))),
            Err(Error::ProcessGone { .. }) => Ok((pidfd, None)),
            Err(error) => Err(error),
        }
    }

    /// Sends SIGKILL. A process that is gone already is fine.
    pub fn kill(&self) -> Result<(), Error> {
        self.signal(libc::SIGKILL)
    }

    /// Sends any signal, in the same way.
    pub(crate) fn signal(&self, signal: libc::c_int) -> Result<(), Error> {
        // SAFETY: the null pointer asks for the siginfo that kill(2) would send.
        let sent = check_long(unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                libc::c_long::from(self.0.as_raw_fd()),
                libc::c_long::from(signal),
                std::ptr::null::<libc::siginfo_t>(),
                0 as libc::c_long,
            )
        });
        match sent {
            Ok(_) => Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            Err(source) => Err(Error::PidFd(source)),
        }
    }

    /// The pid as this process's pid namespace knows it.
    pub fn pid(&self) -> Result<i32, Error> {
        let fd = self.0.as_raw_fd();
        let mut about = About { mask: About::PID, ..About::default() };
        // SAFETY: the number says which structure the kernel fills, and `about` is that one. What is no pidfd, and kernels
        // before 6.13, know no such number.
        let told = check(unsafe { libc::ioctl(fd, About::NUMBER, &raw mut about) }).is_ok();
        if told && about.mask & About::PID != 0 {
            return i32::try_from(about.pid).ok().filter(|pid| *pid > 0).ok_or(Error::ProcessGone { fd });
        }
        // It comes in one piece and is shorter than this.
        let mut info = [0; 1024];
        let read = fs::File::open(format!("/proc/self/fdinfo/{fd}")).and_then(|mut file| file.read(&mut info));
        let info = String::from_utf8_lossy(&info[..read.map_err(Error::PidFd)?]);
        let pid: i32 = info
            .lines()
            .find_map(|line| line.strip_prefix("Pid:"))
            .and_then(|number| number.trim().parse().ok())
            .ok_or(Error::NotAPidFd { fd })?;
        // 0: not in our pid namespace; -1: ended and collected.
        if pid <= 0 {
            return Err(Error::ProcessGone { fd });
        }
        Ok(pid)
    }

    /// Whether the process has not ended yet.
    pub fn is_alive(&self) -> Result<bool, Error> {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd, as the count says.
        let ready = retry(|| check(unsafe { libc::poll(&raw mut poll, 1, 0) }));
        Ok(ready.map_err(Error::PidFd)? == 0)
    }

    /// CPU time of this process so far, where `pid` is what [`PidFd::pid`] returned: asking for it each time would
    /// cost more than the clock.
    pub fn cpu_time(&self, pid: i32) -> Result<Duration, Error> {
        let used = cpu_time(pid)?;
        // Alive after the reading: so the number was its own at the reading.
        if !self.is_alive()? {
            return Err(Error::ProcessGone { fd: self.0.as_raw_fd() });
        }
        Ok(used)
    }

    /// Decides how the process, and whatever it forks from then on, competes for the CPU; `pid` as above.
    pub fn set_pace(&self, pid: i32, pace: Pace) -> Result<(), Error> {
        let (nice, slice) = match pace {
            Pace::Brisk => (0, BRISK_SLICE),
            Pace::Last => (19, Duration::ZERO),
        };
        // SAFETY: all zeroes is a value of this struct of numbers.
        let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
        attributes.size = size_of::<libc::sched_attr>() as u32;
        attributes.sched_policy = libc::SCHED_OTHER as u32;
        attributes.sched_nice = nice;
        // Kernels before 6.12 do not read it for this policy.
        attributes.sched_runtime = u64::try_from(slice.as_nanos()).unwrap_or(0);
        // It keeps its number until it is waited for, and who decides about it has not done so.
        if !self.is_alive()? {
            return Err(Error::ProcessGone { fd: self.0.as_raw_fd() });
        }
        // SAFETY: the struct says its own size, and lives until the call returns.
        let set = check_long(unsafe {
            libc::syscall(libc::SYS_sched_setattr, libc::c_long::from(pid), &raw const attributes, 0 as libc::c_long)
        });
        set.map(drop).map_err(Error::PidFd)
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for PidFd {
    fn as_raw_fd(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

/// What the kernel tells of a pidfd: the first edition of its `pidfd_info`.
#[repr(C)]
#[derive(Default)]
struct About {
    mask: u64,
    group: u64,
    pid: u32,
    others: [u32; 11],
}

impl About {
    const PID: u64 = 1;
    /// `PIDFD_GET_INFO`: read and written, the structure's size, and which of the calls of pidfds.
    const NUMBER: libc::c_ulong = (3 << 30) | ((size_of::<About>() as libc::c_ulong) << 16) | (0xff << 8) | 11;
}

/// Bytes of memory of its own that whichever process `pid` is now has resident, with what it shares since a fork.
pub fn private_memory(pid: i32) -> u64 {
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let kb = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    kb.and_then(|kb| kb.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) << 10
}

/// The children of whichever process `pid` is now that go on: not those that have ended, are ending, or were killed.
pub fn living_children(pid: i32) -> Vec<i32> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(|pid| goes_on(*pid)).collect()
}

fn goes_on(pid: i32) -> bool {
    /// The kernel's flag of a process that ends.
    const ENDS: u64 = 4;
    let read =
        |name: &str| fs::read(format!("/proc/{pid}/{name}")).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let (Ok(stat), Ok(status)) = (read("stat"), read("status")) else { return false };
    let mut fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
    let ended = matches!(fields.next(), Some("Z" | "X") | None);
    let ends = fields.nth(5).and_then(|flags| flags.parse::<u64>().ok()).is_some_and(|flags| flags & ENDS != 0);
    // Nothing blocks it, so who has it pending runs no further.
    let kill = 1u64 << (libc::SIGKILL - 1);
    let killed = status.lines().filter_map(|line| line.strip_prefix("SigPnd:").or(line.strip_prefix("ShdPnd:")));
    let killed = killed.filter_map(|set| u64::from_str_radix(set.trim(), 16).ok()).any(|set| set & kill != 0);
    !ended && !ends && !killed
}

/// CPU time of whichever process `pid` is now, all its threads together.
pub fn cpu_time(pid: i32) -> Result<Duration, Error> {
    let failed = |source| Error::CpuClock { pid, source };
    if pid <= 0 {
        return Err(failed(io::Error::from_raw_os_error(libc::ESRCH)));
    }
    process::clock(cpu_clock(pid)).map_err(failed)
}

/// The kernel's number for the clock of a process's CPU time.
pub(crate) fn cpu_clock(pid: i32) -> libc::clockid_t {
    /// CPUCLOCK_SCHED of the whole process, from the kernel's posix-timers.h.
    const SCHED: libc::clockid_t = 2;
    (!pid << 3) | SCHED
}
