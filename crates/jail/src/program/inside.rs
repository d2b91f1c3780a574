//! From a fork of the host to the program.

use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::os::fd::RawFd;
use std::path::Path;
use std::ptr;

use super::Limits;
use super::furnish::{Piece, furnish};
use crate::confine::{PENDING_SIGNALS, expect, expect_identity, expect_parent_death_signal, forbid_implied_execution};
use crate::error::Error;
use crate::landlock::{self, Use};
use crate::namespaces::{Plan, Side, enter, fork_init};
use crate::pidfd::PidFd;
use crate::process::{self, exit_now, set_no_new_privs, signal_default};
use crate::seccomp::Filter;
use crate::sys::{check, retry};
use crate::{capabilities, limits, socket, trial};

/// Exit status of a process that did not become the program.
const EXIT_ABANDONED: i32 = 70;

/// Where a failed start is told. Closed by the start of the program.
const REPORT: RawFd = 3;
/// Whose other end only the host has: at its end the host is gone, or wants the program gone.
const LIFELINE: RawFd = 4;

/// The stack of the first thread, which has the arguments, too.
const STACK: u64 = 8 << 20;

/// Everything the start needs, made before the fork.
pub(super) struct Start {
    pub(super) plan: Plan,
    pub(super) filter: Filter,
    pub(super) mounts: Vec<Piece>,
    pub(super) limits: Limits,
    pub(super) program: CString,
    pub(super) arguments: Vec<CString>,
    pub(super) environment: Vec<CString>,
}

/// The child's ends of the pipes.
pub(super) struct Ends {
    pub(super) stdin: RawFd,
    pub(super) stdout: RawFd,
    pub(super) stderr: RawFd,
    pub(super) report: RawFd,
    pub(super) lifeline: RawFd,
}

impl Start {
    /// The rest of the life of a fork of the host.
    pub(super) fn run(&self, ends: &Ends) -> ! {
        let wanted =
            [(ends.stdin, 0), (ends.stdout, 1), (ends.stderr, 2), (ends.report, REPORT), (ends.lifeline, LIFELINE)];
        // The host's handlers must not run here: they may write to descriptors that are shared with it.
        let kept = process::reset_signals().and_then(|()| process::keep_only(&wanted));
        let report = if kept.is_ok() { REPORT } else { ends.report };
        let Err(error) = kept.and_then(|()| self.become_program());
        // Without a word the host takes the end of the report for a start, and then sees the status.
        let _ = socket::write_all(report, trial::with_causes(&error).as_bytes());
        exit_now(EXIT_ABANDONED)
    }

    fn become_program(&self) -> Result<Infallible, Error> {
        close_on_exec(REPORT)?;
        close_on_exec(LIFELINE)?;
        let detach = || self.mounts.iter().map(Piece::detach).collect::<Result<Vec<_>, _>>();
        // Root can take what `nobody` cannot reach. Everybody else may take something only in the namespaces.
        let early = if self.plan.drop_to.is_some() { detach().ok() } else { None };
        enter(&self.plan)?;
        let trees = early.map_or_else(detach, Ok)?;
        if let Side::Outer { init } = fork_init()? {
            attend(init)
        }
        furnish(&self.mounts, &trees)?;
        drop(trees);
        limit(&self.limits)?;
        forbid_implied_execution()?;
        capabilities::drop_all()?;
        set_no_new_privs()?;
        expect("no_new_privs", libc::PR_GET_NO_NEW_PRIVS, 1)?;
        let allowed: Vec<_> = self.mounts.iter().map(Piece::permission).collect();
        // The root itself has nothing but names in it.
        let root = [(Path::new("/"), Use::Read)];
        let allowed: Vec<_> = allowed.iter().map(|(path, used)| (path.as_path(), *used)).chain(root).collect();
        landlock::allow_only(&allowed)?;
        expect_parent_death_signal()?;
        expect_identity(&self.plan)?;
        signal_default(libc::SIGPIPE)?;
        let arguments = pointers(&self.arguments);
        let environment = pointers(&self.environment);
        self.filter.install()?;
        // SAFETY: a string, and two lists of strings that end with a null pointer; all outlive the call.
        let failed = check(unsafe { libc::execve(self.program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) });
        Err(Error::Exec(failed.err().unwrap_or_else(std::io::Error::last_os_error)))
    }
}

fn pointers(texts: &[CString]) -> Vec<*const libc::c_char> {
    texts.iter().map(|text| CStr::as_ptr(text)).chain([ptr::null()]).collect()
}

fn limit(limits: &Limits) -> Result<(), Error> {
    let all = [
        ("RLIMIT_CPU", libc::RLIMIT_CPU, limits.cpu_seconds),
        ("RLIMIT_DATA", libc::RLIMIT_DATA, limits.data_bytes),
        ("RLIMIT_FSIZE", libc::RLIMIT_FSIZE, limits.file_bytes),
        ("RLIMIT_NOFILE", libc::RLIMIT_NOFILE, limits.open_files),
        // The outer process counts, too.
        ("RLIMIT_NPROC", libc::RLIMIT_NPROC, limits.threads.saturating_add(1)),
        ("RLIMIT_STACK", libc::RLIMIT_STACK, STACK),
        ("RLIMIT_SIGPENDING", libc::RLIMIT_SIGPENDING, PENDING_SIGNALS),
        ("RLIMIT_CORE", libc::RLIMIT_CORE, 0),
        ("RLIMIT_MEMLOCK", libc::RLIMIT_MEMLOCK, 0),
        ("RLIMIT_MSGQUEUE", libc::RLIMIT_MSGQUEUE, 0),
        ("RLIMIT_NICE", libc::RLIMIT_NICE, 0),
        ("RLIMIT_RTPRIO", libc::RLIMIT_RTPRIO, 0),
    ];
    for (name, resource, value) in all {
        limits::lower(name, resource, value)?;
    }
    Ok(())
}

fn close_on_exec(fd: RawFd) -> Result<(), Error> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) }).map_err(|source| Error::Descriptor {
        fd,
        target: fd,
        source,
    })?;
    Ok(())
}

/// The rest of the outer process's life: waits for the program or for the end of the lifeline, and ends as the
/// program ended (128 + signal). Whatever goes wrong here ends this process, and the kernel the program with it.
fn attend(init: i32) -> ! {
    let status = process::keep_only(&[(LIFELINE, 0)])
        .and_then(|()| capabilities::drop_all())
        .and_then(|()| PidFd::open(init))
        .and_then(|program| {
            use std::os::fd::AsRawFd;
            let watched = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            let mut both = [watched(0), watched(program.as_raw_fd())];
            // SAFETY: as many as the count says.
            retry(|| check(unsafe { libc::poll(both.as_mut_ptr(), 2, -1) })).map_err(Error::PidFd)?;
            if both[1].revents == 0 {
                program.kill()?;
            }
            process::wait(init)
        });
    match status {
        Ok(exit) => exit_now(exit.code.unwrap_or_else(|| 128 + exit.signal.unwrap_or_default())),
        Err(_) => exit_now(EXIT_ABANDONED),
    }
}
