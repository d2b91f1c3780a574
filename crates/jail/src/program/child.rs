//! A running program as the host sees it.

use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use super::SpawnError;
use super::inside::{Ends, Start};
use crate::error::Error;
use crate::pidfd::PidFd;
use crate::process::{self, Exit};
use crate::socket::poll_readable;
use crate::sys::check;

/// Building a jail takes some milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest reason for a failed start that is read.
const REPORT_MAX: u64 = 2048;
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
    lifeline: Option<PipeWriter>,
    exit: Option<Exit>,
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
    pub(super) fn fork(start: &Start) -> Result<Child, SpawnError> {
        let pipe = || io::pipe().map_err(SpawnError::Pipe);
        let (stdin, ours_in) = pipe()?;
        let (ours_out, stdout) = pipe()?;
        let (ours_err, stderr) = pipe()?;
        let (ours_report, report) = pipe()?;
        let (lifeline, ours_lifeline) = pipe()?;
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
            0 => start.run(&ends),
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
        let child = Child {
            stdin: Some(ours_in),
            stdout: Some(ours_out),
            stderr: Some(ours_err),
            outer,
            pid,
            lifeline: Some(ours_lifeline),
            exit: None,
        };
        child.started(ours_report)
    }

    /// The report ends without a word when the program starts.
    fn started(self, mut report: PipeReader) -> Result<Child, SpawnError> {
        if !poll_readable(report.as_raw_fd(), Some(PATIENCE)).map_err(SpawnError::Pipe)? {
            return Err(SpawnError::Slow(PATIENCE));
        }
        let mut why = Vec::new();
        report.by_ref().take(REPORT_MAX).read_to_end(&mut why).map_err(SpawnError::Pipe)?;
        if why.is_empty() { Ok(self) } else { Err(SpawnError::Build(String::from_utf8_lossy(&why).into_owned())) }
    }

    /// Ends the program and everything it started. [`Child::wait`] returns when all of it is gone.
    pub fn kill(&mut self) {
        self.lifeline = None;
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
    /// Someone else must read its pipes meanwhile.
    pub fn watch(&mut self, wall: Duration, memory: u64) -> Result<End, Error> {
        let deadline = Instant::now().checked_add(wall);
        loop {
            let left = deadline.map_or(PERIOD, |end| end.saturating_duration_since(Instant::now()).min(PERIOD));
            let broken = if poll_readable(self.outer.as_raw_fd(), Some(left)).map_err(Error::PidFd)? {
                return self.wait().map(End::Exited);
            } else if deadline.is_some_and(|end| Instant::now() >= end) {
                End::TooLong
            } else if self.memory() > memory {
                End::TooLarge
            } else {
                continue;
            };
            self.kill();
            self.wait()?;
            return Ok(broken);
        }
    }

    /// Resident memory of the program in bytes, as the kernel counts it now.
    pub fn memory(&self) -> u64 {
        let mut processes = children(self.pid);
        let mut pages = 0;
        let mut next = 0;
        while let Some(&pid) = processes.get(next) {
            pages += resident(pid).unwrap_or(0);
            next += 1;
            if processes.len() < TREE_MAX {
                processes.extend(children(pid));
            }
        }
        pages * crate::limits::page_size()
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

fn resident(pid: i32) -> Option<u64> {
    fs::read_to_string(format!("/proc/{pid}/statm")).ok()?.split_whitespace().nth(1)?.parse().ok()
}
