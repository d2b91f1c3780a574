//! The first process of a tree's pid namespace: collects what ends, passes SIGTERM on, ends with the program.

use std::ptr;

use super::ballast::Ballast;
use super::inside::{EXIT_ABANDONED, status};
use crate::error::Error;
use crate::process::{self, exit_now};
use crate::sys::check;

/// Forks the program, and returns in it. The other process stays behind and never returns.
pub(super) fn fork(ballast: &Ballast) -> Result<(), Error> {
    let awaited = block()?;
    // SAFETY: this process is single-threaded, so the child has no lock held by a thread that is gone.
    match check(unsafe { libc::fork() }).map_err(Error::Fork)? {
        0 => {
            // Not in the group of the first process: what the program sends to its own group is not meant for that.
            // SAFETY: has no arguments; the child of a fork leads no group, so it cannot fail.
            unsafe { libc::setsid() };
            process::unblock_signals()
        }
        program => attend(program, &awaited, ballast),
    }
}

/// Blocked signals wait to be asked for, even those that the first process of a namespace would otherwise never see.
fn block() -> Result<libc::sigset_t, Error> {
    // SAFETY: sigset_t is plain bits; sigemptyset gives it its proper empty value before it is used.
    unsafe {
        let mut awaited: libc::sigset_t = std::mem::zeroed();
        check(libc::sigemptyset(&raw mut awaited))
            .and_then(|_| check(libc::sigaddset(&raw mut awaited, libc::SIGCHLD)))
            .and_then(|_| check(libc::sigaddset(&raw mut awaited, libc::SIGTERM)))
            .and_then(|_| check(libc::sigprocmask(libc::SIG_BLOCK, &raw const awaited, ptr::null_mut())))
            .map_err(|source| Error::Signal { signal: libc::SIGCHLD, source })?;
        Ok(awaited)
    }
}

fn attend(program: i32, awaited: &libc::sigset_t, ballast: &Ballast) -> ! {
    if process::close_from(0).is_err() {
        exit_now(EXIT_ABANDONED);
    }
    ballast.drop_memory();
    loop {
        while let Ok(Some((pid, exit))) = process::wait_any_nohang() {
            if pid == program {
                exit_now(status(&exit));
            }
        }
        // SAFETY: the set is initialised, and nothing is wanted back but the number.
        if unsafe { libc::sigwaitinfo(awaited, ptr::null_mut()) } == libc::SIGTERM {
            // SAFETY: takes numbers only. The program is not collected yet, so the number is its own.
            unsafe { libc::kill(program, libc::SIGTERM) };
        }
    }
}
