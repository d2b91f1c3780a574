//! From a fork of the host to the program.

use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use super::ballast::Ballast;
use super::furnish::{furnish, processes};
use super::piece::Piece;
use super::{Limits, SpawnError, init, network, sockets};
use crate::cgroup::Group;
use crate::confine::{PENDING_SIGNALS, expect, expect_identity, expect_parent_death_signal, forbid_implied_execution};
use crate::error::Error;
use crate::landlock::{self, Tcp, Use};
use crate::namespaces::{Plan, Side, enter, fork_init};
use crate::pidfd::PidFd;
use crate::process::{self, Exit, exit_now, set_no_new_privs, signal_default};
use crate::root::change_directory;
use crate::seccomp::Filter;
use crate::sys::{check, retry};
use crate::{capabilities, limits, socket, trial};

/// Exit status of a process that did not become the program.
pub(super) const EXIT_ABANDONED: i32 = 70;

/// Where a failed start is told, and descriptors are handed out. Closed by the start of the program.
const REPORT: RawFd = 3;
/// Whose other end only the host has: at its end the host is gone, or wants the program gone.
const LIFELINE: RawFd = 4;

/// What the host says over the lifeline.
pub(super) const TERMINATE: u8 = b't';
pub(super) const SOCKET: u8 = b's';
pub(super) const SOCKET6: u8 = b'6';

/// What comes with a descriptor in the report.
pub(super) const PROCESSES: u8 = 1;
pub(super) const LISTENER: u8 = 2;
pub(super) const SOCKETS: u8 = 3;

/// The stack of the first thread, which has the arguments, too.
const STACK: u64 = 8 << 20;

/// Everything the start needs, made before the fork.
pub(super) struct Start {
    pub(super) plan: Plan,
    pub(super) filter: Filter,
    pub(super) pieces: Vec<Piece>,
    pub(super) limits: Limits,
    pub(super) command: Command,
    /// What a tree has beside.
    pub(super) tree: Option<Whole>,
}

/// What is started.
pub(super) struct Command {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Command {
    pub(super) fn new(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<Command, SpawnError> {
        let zero = |text: &str| CString::new(text).map_err(|_| SpawnError::Zero);
        let arguments = [program].into_iter().chain(arguments.iter().copied()).map(zero);
        let variables = environment.iter().map(|(name, value)| zero(&format!("{name}={value}")));
        Ok(Command {
            program: zero(program)?,
            arguments: arguments.collect::<Result<_, _>>()?,
            environment: variables.collect::<Result<_, _>>()?,
        })
    }
}

/// What a tree has beside the program.
pub(super) struct Whole {
    folder: CString,
    proxy: Option<u16>,
}

impl Whole {
    pub(super) fn new(folder: &Path, proxy: Option<u16>) -> Result<Whole, SpawnError> {
        let folder = CString::new(folder.as_os_str().as_bytes()).map_err(|_| SpawnError::Zero)?;
        Ok(Whole { folder, proxy })
    }
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
    pub(super) fn run(&self, ends: &Ends, group: Option<&Group>) -> ! {
        let wanted =
            [(ends.stdin, 0), (ends.stdout, 1), (ends.stderr, 2), (ends.report, REPORT), (ends.lifeline, LIFELINE)];
        // The host's handlers must not run here: they may write to descriptors that are shared with it.
        let kept = process::reset_signals().and_then(|()| process::keep_only(&wanted));
        let report = if kept.is_ok() { REPORT } else { ends.report };
        let Err(error) = kept.and_then(|()| self.become_program(group));
        // Without a word the host takes the end of the report for a start, and then sees the status.
        let _ = socket::write_all(report, trial::with_causes(&error).as_bytes());
        exit_now(EXIT_ABANDONED)
    }

    fn become_program(&self, group: Option<&Group>) -> Result<Infallible, Error> {
        close_on_exec(REPORT)?;
        close_on_exec(LIFELINE)?;
        // Before anything is forked, which would stay outside.
        group.map_or(Ok(()), Group::join)?;
        if self.tree.is_some() {
            own_pipes(&self.plan)?;
        }
        let ballast = self.tree.as_ref().map(|_| Ballast::of_self()).transpose()?;
        let detach = || self.pieces.iter().map(Piece::detach).collect::<Result<Vec<_>, _>>();
        // Root can take what `nobody` cannot reach. Everybody else may take something only in the namespaces.
        let early = if self.plan.drop_to.is_some() { detach().ok() } else { None };
        enter(&self.plan)?;
        let trees = early.map_or_else(detach, Ok)?;
        if let (Some(tree), Some(ballast)) = (&self.tree, &ballast) {
            ballast.forget_words();
            process::set_name(c"jail")?;
            tree.start_network()?;
        }
        if let Side::Outer { init } = fork_init()? {
            attend(init, ballast.as_ref())
        }
        furnish(&self.pieces, &trees)?;
        drop(trees);
        if self.tree.is_some() {
            process::set_name(c"init")?;
            let processes = processes(true)?;
            hand_out(PROCESSES, processes.as_fd())?;
        }
        self.give_up()?;
        let arguments = pointers(&self.command.arguments);
        let environment = pointers(&self.command.environment);
        let program = self.command.program.as_ptr();
        self.filter.install()?;
        if let Some(ballast) = &ballast {
            init::fork(ballast)?;
        }
        // SAFETY: a string, and two lists of strings that end with a null pointer; all outlive the call.
        let failed = check(unsafe { libc::execve(program, arguments.as_ptr(), environment.as_ptr()) });
        Err(Error::Exec(failed.err().unwrap_or_else(std::io::Error::last_os_error)))
    }

    /// Everything but the system calls, which are last.
    fn give_up(&self) -> Result<(), Error> {
        limit(&self.limits)?;
        forbid_implied_execution()?;
        capabilities::drop_all()?;
        set_no_new_privs()?;
        expect("no_new_privs", libc::PR_GET_NO_NEW_PRIVS, 1)?;
        let allowed: Vec<_> = self.pieces.iter().filter_map(Piece::permission).collect();
        // The root itself has nothing but names in it, and texts.
        let root = [(Path::new("/"), Use::Read)];
        let allowed: Vec<_> = allowed.iter().map(|(path, used)| (path.as_path(), *used)).chain(root).collect();
        landlock::allow_only(&allowed, if self.tree.is_some() { Tcp::Anywhere } else { Tcp::Denied })?;
        expect_parent_death_signal()?;
        expect_identity(&self.plan)?;
        signal_default(libc::SIGPIPE)?;
        self.tree.as_ref().map_or(Ok(()), |tree| change_directory(&tree.folder)).map_err(Error::Folder)
    }
}

impl Whole {
    fn start_network(&self) -> Result<(), Error> {
        network::start()?;
        // Some kernels do not tell of sockets. Then their memory counts only in a control group.
        if let Ok(told) = sockets::open() {
            hand_out(SOCKETS, told.as_fd())?;
        }
        if let Some(port) = self.proxy {
            hand_out(LISTENER, network::listen(port)?.as_fd())?;
        }
        Ok(())
    }
}

/// Programs open their own pipes by name (`/dev/stderr`), which whoever root has made for them may not.
fn own_pipes(plan: &Plan) -> Result<(), Error> {
    for (fd, user) in (0..3).filter_map(|fd| Some((fd, plan.drop_to?))) {
        // SAFETY: takes numbers only.
        check(unsafe { libc::fchown(fd, user, user) }).map_err(|source| Error::Identity { uid: user, source })?;
    }
    Ok(())
}

fn hand_out(what: u8, fd: BorrowedFd) -> Result<(), Error> {
    // SAFETY: open from the first step in the fork until the program starts.
    let report = unsafe { BorrowedFd::borrow_raw(REPORT) };
    socket::pass(report, &[what], fd).map(drop).map_err(Error::HandOut)
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
/// program ended. Whatever goes wrong here ends this process, and the kernel the program with it.
fn attend(init: i32, ballast: Option<&Ballast>) -> ! {
    let ready =
        process::keep_only(&[(LIFELINE, 0)]).and_then(|()| capabilities::drop_all()).and_then(|()| PidFd::open(init));
    if let Some(ballast) = ballast {
        ballast.drop_memory();
    }
    let exit = ready.and_then(|program| {
        while let Some(wish) = wish(&program)? {
            grant(wish, &program)?;
        }
        process::wait(init)
    });
    exit_now(exit.map_or(EXIT_ABANDONED, |exit| status(&exit)))
}

/// What the host wants next; nothing when the program has ended, or is killed because the host has gone or wants it gone.
fn wish(program: &PidFd) -> Result<Option<u8>, Error> {
    let watched = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut both = [watched(0), watched(program.as_raw_fd())];
    // SAFETY: as many as the count says.
    retry(|| check(unsafe { libc::poll(both.as_mut_ptr(), 2, -1) })).map_err(Error::PidFd)?;
    if both[1].revents != 0 {
        return Ok(None);
    }
    let mut wish = [0];
    match socket::read(0, &mut wish) {
        Ok(1) => Ok(Some(wish[0])),
        _ => program.kill().map(|()| None),
    }
}

fn grant(wish: u8, program: &PidFd) -> Result<(), Error> {
    match wish {
        TERMINATE => program.signal(libc::SIGTERM),
        SOCKET | SOCKET6 => {
            // SAFETY: open until this process ends.
            let lifeline = unsafe { BorrowedFd::borrow_raw(0) };
            let socket = network::socket(if wish == SOCKET { libc::AF_INET } else { libc::AF_INET6 });
            let sent = match &socket {
                // The program may have used up what its user may have on the way. The host waits only so long, and then
                // cuts the lifeline; that ends the waiting here, too.
                Ok(socket) => socket::pass(lifeline, &[wish], socket.as_fd()),
                Err(_) => socket::send_with_fd(lifeline, &[wish], None),
            };
            match sent {
                // Seen, and seen to, by who waits for the next wish.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
                sent => sent.map(drop).map_err(Error::HandOut),
            }
        }
        _ => Ok(()),
    }
}

/// As shells have it: 128 and the signal.
pub(super) fn status(exit: &Exit) -> i32 {
    exit.code.unwrap_or_else(|| 128 + exit.signal.unwrap_or_default())
}
