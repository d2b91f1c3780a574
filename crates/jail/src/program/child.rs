//! A running program as the host sees it.

use std::fs;
use std::io::{self, PipeReader, PipeWriter};
use std::net::{IpAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::inside::{Ends, LISTENER, PROCESSES, SOCKET, SOCKET6, SOCKETS, Start, TERMINATE};
use super::meter::Meter;
use super::usage::{self, Usage};
use super::{Held, Holder, SpawnError};
use crate::cgroup::Group;
use crate::error::Error;
use crate::pidfd::PidFd;
use crate::process::{self, Exit};
use crate::socket::{self, poll_readable};
use crate::sys::check;
use crate::users::Lease;

/// Building a jail takes some milliseconds, and on a machine with far too much to do some seconds.
const BUILD_PATIENCE: Duration = Duration::from_secs(30);
/// How long the tree may take to hand out a socket, and the kernel to clear a tree away.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest reason for a failed start that is read.
const REPORT_MAX: usize = 2048;
/// How often [`Child::watch`] looks.
const PERIOD: Duration = Duration::from_millis(10);
/// More processes than this are not counted; the filter allows one.
const TREE_MAX: usize = 64;

/// A program in its jail. Dropped, it is killed and waited for.
#[derive(Debug)]
pub struct Child {
    pub stdin: Option<PipeWriter>,
    pub stdout: Option<PipeReader>,
    pub stderr: Option<PipeReader>,
    outer: PidFd,
    pid: i32,
    lifeline: Option<Arc<Lifeline>>,
    exit: Option<Exit>,
    /// Only a tree has one.
    meter: Option<Meter>,
    listener: Option<TcpListener>,
    /// After all that must be gone before a group can go.
    bound: Option<Bound>,
    /// Given back when no process has it any more.
    _user: Option<Lease>,
}

/// How a tree is bounded.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) held: Held,
    pub(super) group: Option<Group>,
}

/// How a watched program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, or killed by one of the kernel's limits: then the code is 128 and the signal.
    Exited(Exit),
    /// Killed at the wall-clock limit.
    TooLong,
    /// Killed for its memory.
    TooLarge,
}

impl Child {
    pub(super) fn fork(start: &Start, bound: Option<Bound>, user: Option<Lease>) -> Result<Child, SpawnError> {
        let pipe = || io::pipe().map_err(SpawnError::Pipe);
        let (stdin, ours_in) = pipe()?;
        let (ours_out, stdout) = pipe()?;
        let (ours_err, stderr) = pipe()?;
        let (ours_report, report) = socket::pair()?;
        let (ours_lifeline, lifeline) = socket::pair()?;
        let ends = Ends {
            stdin: stdin.as_raw_fd(),
            stdout: stdout.as_raw_fd(),
            stderr: stderr.as_raw_fd(),
            report: report.as_raw_fd(),
            lifeline: lifeline.as_raw_fd(),
        };
        // SAFETY: the child makes system calls and small allocations, which glibc keeps possible after a fork even when
        // the parent has threads; it takes no lock of this program, and leaves through _exit or execve.
        let pid = match check(unsafe { libc::fork() }).map_err(Error::Fork)? {
            0 => start.run(&ends, bound.as_ref().and_then(|bound| bound.group.as_ref())),
            pid => pid,
        };
        drop((stdin, stdout, stderr, report, lifeline));
        // Not waited for yet, so the number is its own.
        let outer = match PidFd::open(pid) {
            Ok(outer) => outer,
            Err(error) => {
                drop(ours_lifeline);
                process::wait(pid)?;
                return Err(error.into());
            }
        };
        let mut child = Child {
            stdin: Some(ours_in),
            stdout: Some(ours_out),
            stderr: Some(ours_err),
            outer,
            pid,
            lifeline: Some(Arc::new(Lifeline { end: ours_lifeline, asking: Mutex::new(()) })),
            exit: None,
            meter: None,
            listener: None,
            bound,
            _user: user,
        };
        child.hear(&ours_report)?;
        Ok(child)
    }

    /// What is handed out comes first. The report then ends without a word when the program starts.
    fn hear(&mut self, report: &OwnedFd) -> Result<(), SpawnError> {
        let deadline = Instant::now() + BUILD_PATIENCE;
        let mut why = Vec::new();
        let (mut processes, mut sockets) = (None, None);
        let mut byte = [0];
        while why.len() < REPORT_MAX {
            let left = deadline.saturating_duration_since(Instant::now());
            if !poll_readable(report.as_raw_fd(), Some(left)).map_err(SpawnError::Pipe)? {
                return Err(SpawnError::Slow(BUILD_PATIENCE));
            }
            match socket::recv_with_fd(report.as_fd(), &mut byte).map_err(SpawnError::Pipe)? {
                (0, _) => break,
                (_, Some(fd)) if byte == [PROCESSES] => processes = Some(fd),
                (_, Some(fd)) if byte == [SOCKETS] => sockets = Some(fd),
                (_, Some(fd)) if byte == [LISTENER] => self.listener = Some(fd.into()),
                _ => why.push(byte[0]),
            }
        }
        let group = self.bound.as_ref().and_then(|bound| bound.group.as_ref());
        // A control group sees more of the kernel's memory than this.
        let sockets = sockets.filter(|_| group.is_none());
        self.meter = processes.map(|processes| Meter::new(processes, sockets, group.map(Group::clock)));
        if why.is_empty() { Ok(()) } else { Err(SpawnError::Build(String::from_utf8_lossy(&why).into_owned())) }
    }

    fn tell(&self, wish: u8) -> io::Result<()> {
        self.lifeline.as_ref().ok_or(io::ErrorKind::BrokenPipe)?.tell(wish)
    }

    /// Asks the program to end (SIGTERM). It need not.
    pub fn terminate(&self) -> io::Result<()> {
        self.tell(TERMINATE)
    }

    /// Sockets in the network of the tree; none once it is being ended.
    pub fn sockets(&self) -> Option<Sockets> {
        self.lifeline.clone().map(Sockets)
    }

    /// What listens on [`super::Tree::proxy`] inside. Who accepts is this process; nobody in there takes part.
    pub fn listener(&self) -> Option<&TcpListener> {
        self.listener.as_ref()
    }

    /// The same, to keep.
    pub fn take_listener(&mut self) -> Option<TcpListener> {
        self.listener.take()
    }

    /// Who sees to the bounds of a tree; nothing for a [`super::Jail`].
    pub fn held(&self) -> Option<Held> {
        self.bound.as_ref().map(|bound| bound.held)
    }

    /// Changes the CPU of a tree, all together, where a control group holds it (see [`Child::held`]); 100 is one core.
    pub fn limit_cpu(&self, percent: u32) -> Result<(), Error> {
        let held = |bound: &&Bound| bound.held.cpu == Holder::Group;
        let group = self.bound.as_ref().filter(held).and_then(|bound| bound.group.as_ref());
        group.map_or(Ok(()), |group| group.set_cpu(percent))
    }

    /// How many processes the control group of a tree has lost for want of memory.
    pub fn killed_for_memory(&self) -> u64 {
        let group = self.bound.as_ref().and_then(|bound| bound.group.as_ref());
        group.and_then(|group| group.oom_kills().ok()).unwrap_or(0)
    }

    /// What a tree uses now; nothing for a [`super::Jail`], or when it has ended.
    pub fn usage(&self) -> Option<Usage> {
        self.meter.as_ref()?.read()
    }

    /// What reads the usage of a tree, for a thread of its own; nothing for a [`super::Jail`].
    pub fn meter(&self) -> Option<&Meter> {
        self.meter.as_ref()
    }

    /// Ends the program and everything it started. [`Child::wait`] returns when all of it is gone.
    pub fn kill(&mut self) {
        if let Some(lifeline) = self.lifeline.take() {
            lifeline.cut();
        }
    }

    /// Waits for the end.
    pub fn wait(&mut self) -> Result<Exit, Error> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        let exit = process::wait(self.pid)?;
        self.exit = Some(exit);
        Ok(exit)
    }

    /// Waits for the end, which comes at the latest after `wall`, or when the program holds more than `memory` bytes.
    /// Someone else must read its pipes meanwhile. A program of a tree that has ended by then, and is still being cleared
    /// away, has ended by itself.
    pub fn watch(&mut self, wall: Duration, memory: u64) -> Result<End, Error> {
        let deadline = Instant::now().checked_add(wall);
        loop {
            let left = deadline.map_or(PERIOD, |end| end.saturating_duration_since(Instant::now()).min(PERIOD));
            let broken = if poll_readable(self.outer.as_raw_fd(), Some(left)).map_err(Error::PidFd)? {
                return self.wait().map(End::Exited);
            } else if deadline.is_some_and(|end| Instant::now() >= end && !self.clearing(wall, end)) {
                End::TooLong
            } else if memory < u64::MAX && self.memory() > memory {
                End::TooLarge
            } else {
                continue;
            };
            self.kill();
            self.wait()?;
            return Ok(broken);
        }
    }

    /// Whether it has ended and is still being cleared away: a busy machine may take its time with that, and is given some.
    fn clearing(&self, wall: Duration, deadline: Instant) -> bool {
        let ending = || self.meter.as_ref().is_some_and(|meter| usage::ending(meter.processes()));
        let clearing = !wall.is_zero() && deadline.elapsed() < PATIENCE && ending();
        if clearing {
            std::thread::sleep(PERIOD);
        }
        clearing
    }

    /// Resident memory of the program in bytes, as the kernel counts it now.
    pub fn memory(&self) -> u64 {
        if self.meter.is_some() {
            return self.usage().map_or(0, |usage| usage.memory_bytes);
        }
        let mut processes = children(self.pid);
        let mut pages = 0;
        let mut next = 0;
        while let Some(&pid) = processes.get(next) {
            pages += resident(pid);
            next += 1;
            if processes.len() < TREE_MAX {
                processes.extend(children(pid));
            }
        }
        pages * crate::limits::page_size()
    }
}

/// The host's end of a lifeline. Whoever has a part of it besides cannot keep it from being cut.
#[derive(Debug)]
struct Lifeline {
    end: OwnedFd,
    /// One question at a time.
    asking: Mutex<()>,
}

impl Lifeline {
    fn tell(&self, wish: u8) -> io::Result<()> {
        socket::send_with_fd(self.end.as_fd(), &[wish], None).map(drop)
    }

    fn cut(&self) {
        // SAFETY: takes numbers only. It fails only where the other end is gone, and then it is cut.
        unsafe { libc::shutdown(self.end.as_raw_fd(), libc::SHUT_RDWR) };
    }
}

/// Gives sockets in the network of a tree, for reaching a server in there. It keeps no program alive.
#[derive(Debug, Clone)]
pub struct Sockets(Arc<Lifeline>);

impl Sockets {
    /// A stream socket for an address of this family, not connected yet. Waits for the tree, which may be busy.
    pub fn get(&self, address: IpAddr) -> io::Result<OwnedFd> {
        let lifeline = &*self.0;
        let _one = lifeline.asking.lock().unwrap_or_else(PoisonError::into_inner);
        lifeline.tell(if address.is_ipv6() { SOCKET6 } else { SOCKET })?;
        if !poll_readable(lifeline.end.as_raw_fd(), Some(PATIENCE))? {
            // A late answer would be taken for the next one.
            lifeline.cut();
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (_, socket) = socket::recv_with_fd(lifeline.end.as_fd(), &mut [0])?;
        socket.ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

/// Readable when the program and all it started have ended: then [`Child::wait`] returns at once.
impl AsFd for Child {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.outer.as_fd()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
        // A host that ignores SIGCHLD has its children collected by the kernel.
        let _ = self.wait();
    }
}

fn children(pid: i32) -> Vec<i32> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Pages. Of a process whose first thread has ended only the others tell.
fn resident(pid: i32) -> u64 {
    let of_one = |thread: PathBuf| -> Option<u64> {
        fs::read_to_string(thread.join("statm")).ok()?.split_whitespace().nth(1)?.parse().ok()
    };
    usage::of_threads(Path::new(&format!("/proc/{pid}"))).filter_map(of_one).max().unwrap_or(0)
}
