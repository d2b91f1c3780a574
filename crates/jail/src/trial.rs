//! Doing something in a short-lived child to see whether it works, without any effect on this process.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::CHILD_FD;
use crate::error::Error;
use crate::pidfd::PidFd;
use crate::process::{self, exit_now};
use crate::socket;
use crate::sys::check;

/// A trial that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest answer that is read.
const ANSWER_MAX: usize = 2048;

const WORKED: u8 = b'+';
const FAILED: u8 = b'-';

/// What a trial finds: a remark, or the error that the jail itself would report.
pub(crate) type Finding = Result<String, Error>;

/// Runs `attempt` in a child: its remark, or the text of its error with all causes.
///
/// The child is killed when it takes too long. If `attempt` forks, the process that returns from it answers.
pub(crate) fn attempt(attempt: impl FnOnce() -> Finding) -> Result<Result<String, String>, Error> {
    let (ours, theirs) = socket::pair()?;
    // SAFETY: the child makes system calls and small allocations, which glibc keeps possible after a fork even when
    // the parent has threads; it takes no lock of this program and leaves through _exit.
    match check(unsafe { libc::fork() }).map_err(Error::Fork)? {
        0 => {
            drop(ours);
            // Under the one number that every policy knows. What the host had there is its own affair, and still has it.
            // SAFETY: takes numbers only; the child uses no descriptor of its parent's.
            if theirs.as_raw_fd() != CHILD_FD && unsafe { libc::dup3(theirs.as_raw_fd(), CHILD_FD, 0) } == -1 {
                exit_now(1);
            }
            // The host's handlers must not run here: they may write to descriptors that are shared with it.
            let finding = process::reset_signals().and_then(|()| attempt());
            let answered = answer(&finding).is_ok();
            exit_now(i32::from(!answered))
        }
        pid => {
            drop(theirs);
            let child = PidFd::open(pid)?;
            let answer = listen(&ours);
            child.kill()?;
            collect(pid)?;
            Ok(understand(&answer.map_err(Error::Trial)?))
        }
    }
}

fn answer(finding: &Finding) -> io::Result<()> {
    let (sign, text) = match finding {
        Ok(remark) => (WORKED, remark.clone()),
        Err(error) => (FAILED, with_causes(error)),
    };
    let mut message = vec![sign];
    message.extend_from_slice(text.as_bytes());
    message.truncate(ANSWER_MAX);
    // Not through the standard library: the attempt may have installed a filter that allows only this.
    socket::write_all(CHILD_FD, &message)
}

/// Everything until the other side is closed, the answer is long enough, or the time is over.
fn listen(socket: &OwnedFd) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + PATIENCE;
    let mut answer = vec![0; ANSWER_MAX];
    let mut length = 0;
    while length < ANSWER_MAX {
        let left = deadline.saturating_duration_since(Instant::now());
        if !socket::poll_readable(socket.as_raw_fd(), Some(left))? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match socket::read(socket.as_raw_fd(), &mut answer[length..])? {
            0 => break,
            count => length += count,
        }
    }
    answer.truncate(length);
    Ok(answer)
}

/// A host that ignores SIGCHLD has its children collected by the kernel.
fn collect(pid: i32) -> Result<(), Error> {
    match process::wait(pid) {
        Err(Error::Wait { source, .. }) if source.raw_os_error() == Some(libc::ECHILD) => Ok(()),
        other => other.map(drop),
    }
}

fn understand(answer: &[u8]) -> Result<String, String> {
    match answer.split_first() {
        Some((&WORKED, text)) => Ok(String::from_utf8_lossy(text).into_owned()),
        Some((_, text)) => Err(String::from_utf8_lossy(text).into_owned()),
        None => Err("the attempt ended without a word".to_owned()),
    }
}

pub(crate) fn with_causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
