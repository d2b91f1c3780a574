//! Control groups: limits on a whole tree of processes, where the host lets us have them.
//!
//! Version 2 is taken where a subtree is delegated to this process, else version 1 as root. All groups are children
//! of one group called `bulkhead`, and each name says which host process made it, so that what a crashed host left
//! behind can be told from what a living one uses ([`Manager::sweep_stale`]).

mod group;
mod owner;
mod place;

use std::collections::BTreeSet;
use std::fs;
use std::io;

use serde::Serialize;

pub(crate) use group::Clock;
pub use group::Group;
use owner::Owner;
use place::Place;
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
    place: Place,
    owner: Owner,
}

/// Others tidy up at the same time, and not for ever.
const MOST_TRIES: u32 = 100;

impl Manager {
    /// Finds the place and prepares it. With version 2 this may move the calling process to a leaf of its own,
    /// because a group cannot hold processes and divide resources at once.
    pub fn open() -> Result<Availability, Error> {
        let place = match place::find()? {
            Ok(place) => place,
            Err(reason) => return Ok(Availability::Unavailable { reason }),
        };
        place.prepare()?;
        Ok(Availability::Available(Manager { place, owner: Owner::this_process()? }))
    }

    pub fn kind(&self) -> Kind {
        self.place.kind
    }

    /// Whether CPU can be limited, beside memory and processes.
    pub fn limits_cpu(&self) -> bool {
        self.place.cpu
    }

    /// Makes an empty group. `name` is letters, digits, `-` and `_`, and unique in this host process.
    pub fn create(&self, name: &str, limits: &Limits) -> Result<Group, Error> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(allowed) {
            return Err(Error::GroupName { name: name.to_owned() });
        }
        if limits.cpu_percent.is_some() && !self.place.cpu {
            return Err(Error::GroupCpu);
        }
        let directory = self.owner.directory(name);
        let mut tries = 0;
        loop {
            // Again each time: while it is empty, anyone who tidies up may remove it, also between these two.
            let made = self.place.prepare().and_then(|()| {
                let paths = self.place.parents().into_iter().map(|parent| parent.join(&directory));
                Group::create(self.place.kind, paths.collect(), limits)
            });
            match made {
                Err(Error::Group { source, .. }) if source.kind() == io::ErrorKind::NotFound && tries < MOST_TRIES => {
                    tries += 1;
                }
                made => return made,
            }
        }
    }

    /// Kills and removes the groups of host processes that are gone. Returns how many there were.
    pub fn sweep_stale(&self) -> Result<usize, Error> {
        let mut swept = BTreeSet::new();
        for parent in self.place.parents() {
            let failed = |source| Error::Group { action: "list", path: parent.clone(), source };
            let entries = match fs::read_dir(&parent) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries.map_err(failed)?,
            };
            for entry in entries {
                let entry = entry.map_err(failed)?;
                let name = entry.file_name();
                if name.to_str().and_then(Owner::of_directory).is_some_and(|owner| owner.is_gone()) {
                    Group::adopt(self.place.kind, vec![entry.path()]).remove()?;
                    // A group has one directory in each hierarchy.
                    swept.insert(name);
                }
            }
        }
        Ok(swept.len())
    }
}
