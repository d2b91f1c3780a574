//! A jail for a program and everything that it starts.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::child::Bound;
use super::inside::{Command, Start, Whole};
use super::{Child, Limits, Mount, SpawnError, piece, plan};
use crate::cgroup::{self, Group, Manager};
use crate::landlock;
use crate::seccomp::{Filter, PolicyName};

/// Processes that are ours in there: the outer and the first one.
const OURS: u64 = 2;

/// What a program and all that it starts sees and may use. It has a network of its own with nothing in it but `lo`.
#[derive(Debug, Clone)]
pub struct Tree {
    /// All there is below the root, which is otherwise empty and read-only. See [`super::system`].
    pub mounts: Vec<Mount>,
    pub bounds: Bounds,
    /// Started by root, it is this user on the host, with the group of the same number; without one, a user that no other
    /// jail is ([`crate::users`]). What it writes to a [`super::Content::Shared`] folder is this user's, so it should be
    /// the folder's owner. Started by anybody else it is always that user. Where root has no user namespaces it is a
    /// user of its own, too, unless this one was leased.
    pub reads_as: Option<u32>,
    /// Where the program starts.
    pub folder: PathBuf,
    /// The port on 127.0.0.1 inside on which [`Child::listener`] listens; 0 for any.
    pub proxy: Option<u16>,
    /// Whether programs may make sockets with paths. Unless [`shields_sockets`], they can connect to every such socket in
    /// a folder that is mounted, read-only or not, so this is for trees without folders of other people's. Connected pairs
    /// can always be made.
    pub unix_sockets: bool,
}

/// How much the tree may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Processes and threads, all together. An idle Node has seven to eleven, `npx` has two of those and a shell.
    pub processes: u64,
    /// Memory, all together; with a control group it includes scratch folders and cached files.
    pub memory_bytes: u64,
    /// CPU, all together, where 100 is one core.
    pub cpu_percent: u32,
    /// CPU seconds of each process over its whole life.
    pub cpu_seconds: u64,
    /// Private writable memory of each process, touched or not: a second line behind `memory_bytes`.
    pub data_bytes: u64,
    /// The size of a file.
    pub file_bytes: u64,
    /// Descriptors of each process.
    pub open_files: u64,
}

/// Who sees to a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// The kernel, by a control group around all of it.
    Group,
    /// The kernel, by a limit on each process or on the user.
    Limit,
    /// Nobody but the host, which has to look at [`Child::usage`] and to kill.
    Host,
}

/// Who sees to which bound of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    pub processes: Holder,
    pub memory: Holder,
    pub cpu: Holder,
}

impl Tree {
    /// Starts `program`, a path inside, with nothing in its environment but `environment`; in a control group of its own
    /// when there are `groups` to be had.
    ///
    /// Any thread of any process may call this, and may end before the program does. All of the tree ends with the
    /// program, with this process, however that ends, and when the [`Child`] is dropped.
    pub fn spawn(
        &self,
        groups: Option<&Manager>,
        program: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<Child, SpawnError> {
        let (plan, user) = plan(self.reads_as)?;
        // The kernel does not count the processes of root's own user.
        if groups.is_none() && plan.user_namespace && plan.drop_to.is_none() && started_by_root() {
            return Err(SpawnError::Unbounded);
        }
        let start = Start {
            plan,
            filter: filter(groups.is_some(), self.unix_sockets || shields_sockets())?,
            pieces: piece::pieces(&self.mounts, self.bounds.memory_bytes)?,
            limits: self.bounds.of_each(),
            command: Command::new(program, arguments, environment)?,
            tree: Some(Whole::new(&self.folder, self.proxy)?),
        };
        let group = groups.map(|groups| self.bounds.group(groups)).transpose()?;
        Child::fork(&start, Some(Bound { held: Tree::held(groups), group }), user)
    }

    fn held(groups: Option<&Manager>) -> Held {
        let or = |held: bool, otherwise| if held { Holder::Group } else { otherwise };
        Held {
            processes: or(groups.is_some(), Holder::Limit),
            memory: or(groups.is_some(), Holder::Host),
            cpu: or(groups.is_some_and(Manager::limits_cpu), Holder::Host),
        }
    }
}

impl Bounds {
    fn of_each(&self) -> Limits {
        Limits {
            cpu_seconds: self.cpu_seconds,
            data_bytes: self.data_bytes,
            file_bytes: self.file_bytes,
            open_files: self.open_files,
            // The outer process is counted by whoever reads this.
            threads: self.processes.saturating_add(OURS - 1),
        }
    }

    fn group(&self, groups: &Manager) -> Result<Group, SpawnError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let limits = cgroup::Limits {
            memory_bytes: self.memory_bytes,
            processes: self.processes.saturating_add(OURS),
            cpu_percent: groups.limits_cpu().then_some(self.cpu_percent),
        };
        Ok(groups.create(&format!("tree-{}", NEXT.fetch_add(1, Ordering::Relaxed)), &limits)?)
    }
}

/// Whether this kernel keeps a tree from connecting to sockets in folders that are mounted (landlock's ninth interface).
pub fn shields_sockets() -> bool {
    static VERSION: OnceLock<u32> = OnceLock::new();
    *VERSION.get_or_init(landlock::version) >= 9
}

/// Each compiled once: it is the same for every tree.
fn filter(in_group: bool, unix_sockets: bool) -> Result<Filter, SpawnError> {
    static KNOWN: [OnceLock<Filter>; 4] = [const { OnceLock::new() }; 4];
    let (known, policy) = match (in_group, unix_sockets) {
        (false, false) => (&KNOWN[0], PolicyName::Tree),
        (true, false) => (&KNOWN[1], PolicyName::TreeInGroup),
        (false, true) => (&KNOWN[2], PolicyName::TreeUnix),
        (true, true) => (&KNOWN[3], PolicyName::TreeUnixInGroup),
    };
    if let Some(filter) = known.get() {
        return Ok(filter.clone());
    }
    let filter = Filter::load(policy, true)?;
    let _ = known.set(filter.clone());
    Ok(filter)
}

fn started_by_root() -> bool {
    // SAFETY: geteuid has no arguments and cannot fail.
    unsafe { libc::geteuid() == 0 }
}
