//! A world of its own for one worker: identity, processes, network, mounts, messages, names.

use std::ffi::CStr;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use crate::capabilities;
use crate::error::Error;
use crate::process::{self, signal_default};
use crate::socket;
use crate::sys::check;
use crate::trial;

/// The user and group that root becomes where it has no uid for each jail ([`crate::users`]): `nobody`.
pub const NOBODY: u32 = 65534;

/// The user and group inside the user namespace. Not zero, so nothing inside is ever treated as root.
pub const INNER_ID: u32 = 1000;

/// Exit status of a half-made process that must never run on.
const EXIT_ABANDONED: i32 = 70;

/// The namespaces beside the user namespace. Each is entered by itself so that an error names it.
pub(crate) const NAMESPACES: [(&str, libc::c_int); 6] = [
    ("mount", libc::CLONE_NEWNS),
    ("ipc", libc::CLONE_NEWIPC),
    ("uts", libc::CLONE_NEWUTS),
    ("cgroup", libc::CLONE_NEWCGROUP),
    ("pid", libc::CLONE_NEWPID),
    ("network", libc::CLONE_NEWNET),
];

const HOST_NAME: &CStr = c"compartment";

/// How this process gets into its namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Enter through an unprivileged user namespace. Without one the caller must be root and `drop_to` be set.
    pub user_namespace: bool,
    /// The uid and gid to become first, when started as root.
    pub drop_to: Option<u32>,
}

impl Plan {
    /// Not root: the user namespace is the only way in. Root: become [`NOBODY`] and go the same way, because a
    /// worker that was never privileged has nothing to give back; where the kernel denies that user a user
    /// namespace (tried in a short-lived child), unshare as root and keep no more than the confinement needs.
    ///
    /// The kernel counts much by uid over the whole host, so give each jail its own ([`Plan::as_user`]).
    pub fn for_this_process() -> Result<Plan, Error> {
        // SAFETY: geteuid has no arguments and cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return Ok(Plan { user_namespace: true, drop_to: None });
        }
        let unprivileged = Plan { user_namespace: true, drop_to: Some(NOBODY) };
        // The whole way, because some hosts allow the namespace and then deny what is in it.
        let tried = trial::attempt(|| enter(&unprivileged).map(|()| String::new()))?;
        Ok(Plan { user_namespace: tried.is_ok(), ..unprivileged })
    }

    /// The same way in, as this uid of the host instead of [`NOBODY`]. Changes nothing for a plan that is not root's.
    pub fn as_user(self, user: Option<u32>) -> Plan {
        Plan { drop_to: self.drop_to.map(|usual| user.unwrap_or(usual)), ..self }
    }

    /// The uid and gid that the process will see itself as.
    pub(crate) fn inner_id(&self) -> Result<u32, Error> {
        match (self.user_namespace, self.drop_to) {
            (_, Some(0)) | (false, None) => Err(Error::RootPlan),
            (true, _) => Ok(INNER_ID),
            (false, Some(uid)) => Ok(uid),
        }
    }
}

/// Takes this single-threaded process into new user, mount, ipc, uts, cgroup, pid and network namespaces.
///
/// The pid namespace holds only what is forked afterwards ([`fork_init`]). On return the process still has the
/// capabilities that [`crate::confine::confine`] needs; after an error it is in an undefined place and must exit.
pub fn enter(plan: &Plan) -> Result<(), Error> {
    plan.inner_id()?;
    leave_session()?;
    if plan.user_namespace {
        enter_identity(plan)?;
        for (name, flag) in NAMESPACES {
            unshare(name, flag)?;
        }
    } else {
        for (name, flag) in NAMESPACES {
            unshare(name, flag)?;
        }
        if let Some(uid) = plan.drop_to {
            become_user_with_capabilities(uid)?;
        }
    }
    forget_host_name()
}

/// Becomes `drop_to` and enters a user namespace in which that user is [`INNER_ID`].
pub(crate) fn enter_identity(plan: &Plan) -> Result<(), Error> {
    if let Some(uid) = plan.drop_to {
        become_user(uid)?;
    }
    // SAFETY: geteuid and getegid have no arguments and cannot fail.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    // The files in /proc/self belong to root while the process is not dumpable, which it is not after a change
    // of user. Other processes of that user could attach meanwhile, so the window ends right after the maps.
    process::set_dumpable(true)?;
    unshare("user", libc::CLONE_NEWUSER)?;
    write_map("/proc/self/setgroups", "deny")?;
    write_map("/proc/self/uid_map", &format!("{INNER_ID} {uid} 1"))?;
    write_map("/proc/self/gid_map", &format!("{INNER_ID} {gid} 1"))?;
    process::set_dumpable(false)
}

fn write_map(file: &'static str, line: &str) -> Result<(), Error> {
    // Not fs::write: these files must be there already, and take exactly one write.
    let written = fs::OpenOptions::new().write(true).open(file).and_then(|mut open| open.write_all(line.as_bytes()));
    written.map_err(|source| Error::IdentityMap { file, source })
}

/// Irrevocably becomes `uid` with the group of the same number and no other groups.
pub(crate) fn become_user(uid: u32) -> Result<(), Error> {
    let failed = |source| Error::Identity { uid, source };
    // SAFETY: setgroups with a count of zero reads no list; the other calls take numbers only.
    unsafe {
        check(libc::setgroups(0, std::ptr::null())).map_err(failed)?;
        check(libc::setresgid(uid, uid, uid)).map_err(failed)?;
        check(libc::setresuid(uid, uid, uid)).map_err(failed)?;
    }
    Ok(())
}

/// The same without losing the capabilities: mounts still have to be made by what `fork_init` forks, and a later
/// change of user would silently clear its parent-death signal.
fn become_user_with_capabilities(uid: u32) -> Result<(), Error> {
    process::set_attribute("keep capabilities", libc::PR_SET_KEEPCAPS, 1)?;
    become_user(uid)?;
    capabilities::raise_permitted()?;
    process::set_attribute("keep capabilities", libc::PR_SET_KEEPCAPS, 0)?;
    process::set_dumpable(false)
}

pub(crate) fn unshare(name: &'static str, flag: libc::c_int) -> Result<(), Error> {
    // SAFETY: takes a number only. The flags used replace namespaces; memory and descriptors stay as they are.
    check(unsafe { libc::unshare(flag) }).map_err(|source| Error::Namespace { name, source })?;
    Ok(())
}

/// Away from the host's terminal, whose Ctrl-C is for the host to handle. The leader of a process group cannot and need
/// not: the group is its own.
fn leave_session() -> Result<(), Error> {
    // SAFETY: setsid has no arguments.
    match check(unsafe { libc::setsid() }) {
        Ok(_) => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Ok(()),
        Err(source) => Err(Error::Session(source)),
    }
}

fn forget_host_name() -> Result<(), Error> {
    let bytes = HOST_NAME.to_bytes();
    let failed = |source| Error::Namespace { name: "uts", source };
    // SAFETY: the pointer and the length describe the same constant string.
    unsafe {
        check(libc::sethostname(bytes.as_ptr().cast(), bytes.len())).map_err(failed)?;
        check(libc::setdomainname(bytes.as_ptr().cast(), bytes.len())).map_err(failed)?;
    }
    Ok(())
}

/// Which of the two processes [`fork_init`] returned in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The process that called; `init` is its child. It should do nothing but [`outlive`] it.
    Outer { init: i32 },
    /// The first process of the new pid namespace. When it dies, the kernel kills all others in there.
    Init,
}

/// Forks the first process of the new pid namespace and ties its life to this process.
///
/// Returns in `Init` only after the outer process was seen alive *with* the parent-death signal set, so there is
/// no moment in which the outer one can die unnoticed. As pid 1 of its namespace, `Init` ignores every signal
/// with a default disposition except SIGKILL from outside, among them SIGPROF: [`process::arm_cpu_timer`] does
/// not bound it. Its children are ordinary processes.
pub fn fork_init() -> Result<Side, Error> {
    // An inherited "ignore" would let the kernel reap init and lose its status.
    signal_default(libc::SIGCHLD)?;
    let (outer, inner) = socket::pair()?;
    // SAFETY: the caller is single-threaded by contract, so the child has no lock held by a thread that is gone.
    match check(unsafe { libc::fork() }).map_err(Error::Fork)? {
        0 => {
            drop(outer);
            match tie_to_parent(inner) {
                Ok(()) => Ok(Side::Init),
                Err(_) => process::exit_now(EXIT_ABANDONED),
            }
        }
        init => {
            drop(inner);
            match answer_for_init(outer) {
                Ok(()) => Ok(Side::Outer { init }),
                Err(source) => {
                    // It ends by itself: without an answer it never goes on.
                    process::wait(init)?;
                    Err(Error::Fork(source))
                }
            }
        }
    }
}

/// Init: set the signal, say so, and go on only when the parent answers to that.
fn tie_to_parent(inner: OwnedFd) -> io::Result<()> {
    process::die_with_parent().map_err(io::Error::other)?;
    // Never the leader of a group, so this leaves the terminal even where the outer process could not.
    leave_session().map_err(io::Error::other)?;
    let mut stream = UnixStream::from(inner);
    stream.write_all(&[1])?;
    stream.read_exact(&mut [0])
}

fn answer_for_init(outer: OwnedFd) -> io::Result<()> {
    let mut stream = UnixStream::from(outer);
    stream.read_exact(&mut [0])?;
    stream.write_all(&[1])
}

/// The rest of the outer process's life: holds nothing, waits for `init`, ends as it ended (128 + signal).
///
/// It must exist because a process cannot enter its own new pid namespace, and the host must be able to wait for
/// something. Fork before V8 comes up and it costs a few pages.
pub fn outlive(init: i32) -> ! {
    // Held descriptors would keep the host's sockets open, and the capabilities that built the jail are of no more use.
    // Giving up is better than keeping either, and takes init along.
    if process::close_from(0).and_then(|()| capabilities::drop_all()).is_err() {
        process::exit_now(EXIT_ABANDONED);
    }
    match process::wait(init) {
        Ok(exit) => process::exit_now(exit.code.unwrap_or_else(|| 128 + exit.signal.unwrap_or_default())),
        Err(_) => process::exit_now(EXIT_ABANDONED),
    }
}
