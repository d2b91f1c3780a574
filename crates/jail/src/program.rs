//! A program in a jail of its own: namespaces, a root that shows only what it is given, limits, no capabilities, a
//! system call filter, three pipes. For programs that are started, and not forked from a zygote.
//!
//! There are two kinds. [`Jail`] holds one process that reads files and talks over pipes. [`Tree`] holds whatever a
//! program of others starts: processes, threads, sockets in a network of its own.
//!
//! The host forks the *outer* process, which enters the namespaces, forks the first process of the new pid namespace,
//! and then only waits: for the end of that process, or of the host. The first process furnishes its root and gives
//! everything up. In a [`Jail`] it becomes the program. In a [`Tree`] it forks the program, collects whatever ends in
//! there, and ends with the program; then the kernel ends the rest.
//!
//! Both waiting processes of a tree let go of the host's memory, which they were forked with, so that they neither hold
//! pages that the host has long changed nor keep its secrets beside the program.
//!
//! # What holds a tree
//!
//! - Namespaces of its own: user, mount, pid, network, ipc, uts, cgroup. Inside it is uid 1000 with no capability at all and
//!   no way to gain one; outside it is the user who started the host, the one that root names, or a user of its own.
//! - Its root is empty and read-only but for its mounts; landlock says the same a second time.
//! - The filter `policies/tree.toml` is a list of what is allowed; all else is answered with "no such system call".
//! - A [`crate::cgroup`] for memory, processes and CPU of all together, where one can be had. Without one the kernel bounds
//!   processes by the user namespace, each process by its own limits, and the host has to measure memory and CPU
//!   ([`Child::usage`]) and to kill; the filter then also refuses shared memory that no process would show.
//!   [`Child::held`] says which it is.
//!
//! # What it does not hide
//!
//! - `/proc/self/mountinfo` tells the paths of the host's folders that are mounted.
//! - Before Linux has landlock's ninth interface, a tree with [`Tree::unix_sockets`] can connect to a socket with a path in a
//!   folder that is mounted.
//! - A named pipe in a folder that is mounted can be read, and written to where the folder can.
//! - A file that is [`Content::Hidden`] shows again when somebody on the host puts another one in its place.
//! - Without a control group not all of the kernel's own memory counts: page tables and full sockets do, the lists of what
//!   is mapped and of open files do not. The CPU time of children whose parent ignores their end is partly estimated.

mod ballast;
mod child;
mod fresh;
mod furnish;
mod init;
mod inside;
mod meter;
mod network;
mod piece;
mod sockets;
mod system;
mod tally;
mod tree;
mod usage;

use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

pub use child::{Child, End, Sockets};
pub use meter::Meter;
pub use system::system;
pub use tree::{Bounds, Held, Holder, Tree, shields_sockets};
pub use usage::Usage;

use crate::namespaces::Plan;
use crate::seccomp::{Filter, PolicyName};
use crate::users::{self, Lease};

/// What a program sees and may use.
#[derive(Debug, Clone)]
pub struct Jail {
    /// All there is below the root, which is otherwise empty and read-only.
    pub mounts: Vec<Mount>,
    pub limits: Limits,
    /// Started by root, it reads what is mounted as this user of the host; without one, as a user that no other jail is
    /// ([`crate::users`]). Whoever it is has no capability and meets nothing but the mounts.
    pub reads_as: Option<u32>,
}

/// One thing below the root. What lies inside of another comes after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where it is inside: absolute, without `.` and `..`. In a folder of the host the place must be there already;
    /// nothing is ever made there.
    pub target: PathBuf,
    pub content: Content,
}

/// Never with set-user-id bits, and with devices only as [`Content::Devices`] says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A file or folder of the host, read-only. The program must be `executable`, all else should not.
    Host { source: PathBuf, executable: bool },
    /// The same to write to. What is written belongs to the user that the program runs as on the host.
    Shared { source: PathBuf, executable: bool },
    /// An empty folder to write to, in memory. It counts beside the memory of the program, unless a control group
    /// counts both.
    Scratch { bytes: u64, files: u64, executable: bool },
    /// The processes of the jail (`/proc`), read-only. Of the machine it shows what the jail has: its processors, its
    /// memory; whatever else the kernel has there is empty.
    Proc,
    /// `/dev` with the null, zero, full and two random devices, the links to the own descriptors, and a small `shm`.
    Devices,
    /// A symbolic link.
    Link { to: PathBuf },
    /// A small file with this in it. Read-only, unless it lies in a scratch folder.
    Text { bytes: Vec<u8> },
    /// Nothing, over a file, folder, named pipe or socket of the host that is mounted already.
    Hidden,
}

/// What the kernel enforces on the program, beside what [`Child::watch`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// CPU seconds of all threads.
    pub cpu_seconds: u64,
    /// Private writable memory, touched or not.
    pub data_bytes: u64,
    /// The size of a file it writes.
    pub file_bytes: u64,
    pub open_files: u64,
    /// Threads. Where there is no user namespace (see [`Plan`]), all threads of its user on the host count.
    pub threads: u64,
}

/// Why a program did not start. None runs without the whole jail.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    #[error("`{}` cannot be mounted in a jail: {why}", target.display())]
    Mount { target: PathBuf, why: &'static str },
    #[error("a program, an argument or a variable has a zero byte in it")]
    Zero,
    #[error("the number of processes cannot be bounded: the jail would run as root's user without a control group")]
    Unbounded,
    #[error("the jail cannot be prepared")]
    Prepare(#[from] crate::Error),
    #[error("the jail needs pipes, which cannot be made")]
    Pipe(#[source] io::Error),
    #[error("the jail cannot be built: {0}")]
    Build(String),
    #[error("the jail was not built within {0:?}")]
    Slow(Duration),
}

impl Jail {
    /// Starts `program`, a path inside, with nothing in its environment but `environment`.
    ///
    /// Any thread of any process may call this, and may end before the program does. The program ends with this
    /// process, however that ends, and when the [`Child`] is dropped.
    pub fn spawn(&self, program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<Child, SpawnError> {
        let (plan, user) = plan(self.reads_as)?;
        let start = inside::Start {
            plan,
            filter: Filter::load(PolicyName::Program, true)?,
            pieces: piece::pieces(&self.mounts, self.limits.data_bytes)?,
            limits: self.limits,
            command: inside::Command::new(program, arguments, environment)?,
            tree: None,
        };
        Child::fork(&start, None, user)
    }
}

/// Whether a tree could have its `/proc` here, in a new pid namespace.
pub(crate) fn try_list() -> Result<(), crate::Error> {
    furnish::processes(true).map(drop)
}

/// As whom the program runs: as a user of its own, unless the caller names one. Root's way in is tried once: trying costs
/// as much as a jail.
fn plan(reads_as: Option<u32>) -> Result<(Plan, Option<Lease>), SpawnError> {
    static OF_ROOT: OnceLock<Plan> = OnceLock::new();
    // SAFETY: geteuid has no arguments and cannot fail.
    let known = if unsafe { libc::geteuid() } == 0 { OF_ROOT.get() } else { None };
    let plan = match known {
        Some(plan) => *plan,
        None => Plan::for_this_process()?,
    };
    if plan.drop_to.is_some() {
        let _ = OF_ROOT.set(plan);
    }
    if let (Some(user), Some(_)) = (reads_as, plan.drop_to)
        // Without a user namespace the kernel would count all processes of that user.
        && (plan.user_namespace || users::is_leased(user))
    {
        return Ok((Plan { drop_to: (user != 0).then_some(user), ..plan }, None));
    }
    let lease = users::lease()?;
    Ok((plan.as_user(lease.as_ref().map(Lease::uid)), lease))
}
