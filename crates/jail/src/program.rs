//! A program in a jail of its own: namespaces, a root that shows only what it is given, limits, no capabilities, a
//! system call filter, three pipes. For programs that are started, and not forked from a zygote.
//!
//! Three processes take part. The host forks the *outer* one, which enters the namespaces, forks the first process of
//! the new pid namespace, and then only waits: for the end of that process, or of the host. The first process
//! furnishes its root, gives everything up and becomes the program.

mod child;
mod furnish;
mod inside;

use std::ffi::CString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

pub use child::{Child, End};

use crate::namespaces::Plan;
use crate::seccomp::{Filter, PolicyName};

/// What a program sees and may use.
#[derive(Debug, Clone)]
pub struct Jail {
    /// All there is below the root, which is otherwise empty and read-only.
    pub mounts: Vec<Mount>,
    pub limits: Limits,
    /// Started by root, it reads what is mounted as this user of the host; without one, as `nobody`. Whoever it is has no
    /// capability and meets nothing but the mounts.
    pub reads_as: Option<u32>,
}

/// One thing below the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where it is inside: absolute, without `.` and `..`.
    pub target: PathBuf,
    pub content: Content,
}

/// Never with set-user-id bits, and never with devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A file or folder of the host, read-only. The program must be `executable`, all else should not.
    Host { source: PathBuf, executable: bool },
    /// An empty folder to write to, in memory. It counts beside the memory of the program.
    Scratch { bytes: u64 },
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
    /// Threads. Where there is no user namespace (see [`Plan`]), all threads of that user on the host count.
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
        self.check_mounts()?;
        let zero = |text: &str| CString::new(text).map_err(|_| SpawnError::Zero);
        let arguments = [program].into_iter().chain(arguments.iter().copied()).map(zero);
        let variables = environment.iter().map(|(name, value)| zero(&format!("{name}={value}")));
        let start = inside::Start {
            plan: self.plan()?,
            filter: Filter::load(PolicyName::Program, true)?,
            mounts: self.mounts.iter().map(furnish::Piece::new).collect::<Result<_, _>>()?,
            limits: self.limits,
            program: zero(program)?,
            arguments: arguments.collect::<Result<_, _>>()?,
            environment: variables.collect::<Result<_, _>>()?,
        };
        Child::fork(&start)
    }

    fn plan(&self) -> Result<Plan, SpawnError> {
        let plan = Plan::for_this_process()?;
        Ok(match self.reads_as {
            Some(user) if plan.user_namespace && plan.drop_to.is_some() => {
                Plan { drop_to: (user != 0).then_some(user), ..plan }
            }
            _ => plan,
        })
    }

    /// Nothing may be mounted inside of something of the host: its mount point would have to be made there.
    fn check_mounts(&self) -> Result<(), SpawnError> {
        for (index, mount) in self.mounts.iter().enumerate() {
            let wrong = |why| Err(SpawnError::Mount { target: mount.target.clone(), why });
            let mut parts = mount.target.components();
            let rooted = parts.next() == Some(Component::RootDir);
            if !rooted || mount.target == Path::new("/") || !parts.all(|part| matches!(part, Component::Normal(_))) {
                return wrong("the path is not absolute and plain");
            }
            let others = self.mounts.iter().enumerate().filter(|(other, _)| *other != index);
            if others.into_iter().any(|(_, other)| mount.target.starts_with(&other.target)) {
                return wrong("something else is mounted there");
            }
        }
        Ok(())
    }
}
