//! Control groups: limits on a whole tree of processes, where the host lets us have them.
//!
//! Version 2 is taken where a subtree is delegated to this process, else version 1 as root. All groups are children
//! of one group called `bulkhead`, and each name says which host process made it, so that what a crashed host left
//! behind can be told from what a living one uses ([`Manager::sweep_stale`]).

mod group;
mod owner;
mod place;

use std::fs;
use std::path::PathBuf;

use serde::Serialize;

pub use group::Group;
use owner::Owner;
pub use place::{Survey, survey};

use crate::error::Error;

/// The parent of all groups.
const PARENT: &str = "bulkhead";

/// The longest name a caller may give a group.
const NAME_MAX: usize = 64;

/// Which of the kernel's two interfaces is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    V1,
    V2,
}

/// What all processes of a group may use together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory including page cache; the kernel kills beyond it. Nothing is swapped out instead.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Share of CPU, where 100 is one core.
    pub cpu_percent: Option<u32>,
}

/// Whether groups can be made here.
#[derive(Debug)]
pub enum Availability {
    Available(Manager),
    Unavailable { reason: String },
}

/// Makes groups in one place.
#[derive(Debug)]
pub struct Manager {
    kind: Kind,
    /// The group `bulkhead`, once per hierarchy.
    parents: Vec<PathBuf>,
    cpu: bool,
    owner: Owner,
}

impl Manager {
    /// Finds the place and prepares it. With version 2 this may move the calling process to a leaf of its own,
    /// because a group cannot hold processes and divide resources at once.
    pub fn open() -> Result<Availability, Error> {
        let place = match place::find()? {
            Ok(place) => place,
            Err(reason) => return Ok(Availability::Unavailable { reason }),
        };
        place.prepare()?;
        Ok(Availability::Available(Manager {
            kind: place.kind,
            cpu: place.cpu,
            parents: place.parents(),
            owner: Owner::this_process()?,
        }))
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether CPU can be limited, beside memory and processes.
    pub fn limits_cpu(&self) -> bool {
        self.cpu
    }

    /// Makes an empty group. `name` is letters, digits, `-` and `_`, and unique in this host process.
    pub fn create(&self, name: &str, limits: &Limits) -> Result<Group, Error> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(allowed) {
            return Err(Error::GroupName { name: name.to_owned() });
        }
        if limits.cpu_percent.is_some() && !self.cpu {
            return Err(Error::GroupCpu);
        }
        let directory = self.owner.directory(name);
        let paths = self.parents.iter().map(|parent| parent.join(&directory));
        Group::create(self.kind, paths.collect(), limits)
    }

    /// Kills and removes the groups of host processes that are gone. Returns how many there were.
    pub fn sweep_stale(&self) -> Result<usize, Error> {
        let mut swept = 0;
        for parent in &self.parents {
            let failed = |source| Error::Group { action: "list", path: parent.clone(), source };
            for entry in fs::read_dir(parent).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let stale =
                    entry.file_name().to_str().and_then(Owner::of_directory).is_some_and(|owner| owner.is_gone());
                if stale {
                    Group::adopt(self.kind, vec![entry.path()]).remove()?;
                    swept += 1;
                }
            }
        }
        // A group has one directory in each hierarchy.
        Ok(swept / self.parents.len().max(1))
    }
}
