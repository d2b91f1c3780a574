//! What a deployment shows, may do and is made of.

use crate::canonical::{Excess, canonical, difference, digest, measure};
use crate::text::message;
use crate::{Binding, Command, Digest, FilePath, Host, Manifest, Program, ServerName, Surface, Wall, Wrong};
use policy::{Boundary, LimitName, Limits, UnknownLimit};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

const VERSION: u64 = 1;
const LARGEST: usize = 1 << 20;
/// The parser's own limit is 128, and the file `bulkhead.lock` puts one level around a lock.
const DEEPEST: u64 = 100;

/// What a deployment shows, may do and is made of, and which step it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    pub server: ServerName,
    pub surface: Surface,
    pub egress: BTreeSet<Host>,
    pub secrets: BTreeSet<Binding>,
    pub limits: LockedLimits,
    pub wall: Wall,
    pub boundary: Boundary,
    pub jit: bool,
    pub program: Program,
    pub files: BTreeMap<FilePath, File>,
    /// What each tool asks of an upstream, for servers that are made of a description of one.
    pub endpoints: BTreeSet<Endpoint>,
    pub step: Step,
}

/// Which change of what a server runs a lock is for. So an old upload cannot be repeated, and what was agreed to is the
/// difference from what is deployed and from nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Counts the changes of what the server runs.
    pub number: u64,
    /// The lock that this one replaces.
    pub previous: Option<Digest>,
    /// Digest of the drift from that lock, if its author saw it and agreed.
    pub accepts: Option<Digest>,
}

/// What a tool asks of an upstream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    pub tool: String,
    pub method: String,
    /// Of the upstream, with the names of parameters in braces.
    pub url: String,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.tool, self.method, self.url)
    }
}

/// A file of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    pub sha256: Digest,
    pub size: u64,
}

impl File {
    pub fn of(bytes: &[u8]) -> File {
        File { sha256: digest(bytes), size: bytes.len() as u64 }
    }
}

/// Limits as they are written down: a lock from before a limit existed does not name it, and keeps its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, u64>")]
pub struct LockedLimits(BTreeMap<String, u64>);

impl LockedLimits {
    /// All limits; those that are not named have the defaults of the wall.
    fn limits(&self, wall: Wall) -> Limits {
        let mut limits = wall.limits();
        for name in LimitName::ALL.iter().copied() {
            limits.set(name, self.0.get(name.as_str()).copied().unwrap_or(limits.get(name)));
        }
        limits
    }
}

impl From<&Limits> for LockedLimits {
    fn from(limits: &Limits) -> LockedLimits {
        LockedLimits(LimitName::ALL.iter().map(|name| (name.to_string(), limits.get(*name))).collect())
    }
}

impl TryFrom<BTreeMap<String, u64>> for LockedLimits {
    type Error = UnknownLimit;

    fn try_from(map: BTreeMap<String, u64>) -> Result<LockedLimits, UnknownLimit> {
        map.keys().try_for_each(|name| name.parse::<LimitName>().map(|_| ()))?;
        Ok(LockedLimits(map))
    }
}

/// Why something is no lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    #[error("the lock is too large: it has {bytes} bytes, {most} are allowed")]
    TooLarge { bytes: usize, most: usize },
    #[error("the lock is nested deeper than {most} levels")]
    TooDeep { most: u64 },
    #[error("the lock cannot be read: {0}")]
    Unreadable(String),
    #[error("locks of version {0} are not known here, only those of version 1")]
    Version(u64),
    #[error("the lock is not in its canonical form, from byte {at} on")]
    NotCanonical { at: usize },
    #[error("`{0}` is a file and a directory")]
    FileAndDirectory(FilePath),
    #[error("a file cannot be named like this: {0}")]
    BadPath(#[from] Wrong),
    #[error("`{0}` is to be run, and is not among the files")]
    NoEntry(String),
    #[error("the lock names a module for the wall `isolate`, or a command for the wall `process`, and not this")]
    NoProgram,
}

/// The lock is not for the step that it was used for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is step {} and replaces {}; what is to come is step {}, and it replaces {}",
    .found.0, named(.found.1), .wanted.0, named(.wanted.1)
)]
pub struct Replayed {
    /// The step's number, and the lock that it replaces.
    pub found: (u64, Option<Digest>),
    pub wanted: (u64, Option<Digest>),
}

fn named(digest: Option<Digest>) -> String {
    digest.map_or("nothing".to_owned(), |digest| format!("the lock {digest}"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    version: u64,
    server: ServerName,
    surface: Surface,
    egress: BTreeSet<Host>,
    secrets: BTreeSet<Binding>,
    limits: LockedLimits,
    wall: Wall,
    boundary: Boundary,
    jit: bool,
    entry: Option<FilePath>,
    command: Option<Command>,
    files: BTreeMap<FilePath, File>,
    endpoints: BTreeSet<Endpoint>,
    step: Step,
}

impl Lock {
    /// The lock of a project: what its author asks for, what its code showed, and its files.
    pub fn new<B: AsRef<[u8]>>(
        manifest: &Manifest,
        surface: Surface,
        program: Program,
        files: &BTreeMap<String, B>,
        step: Step,
    ) -> Result<Lock, LockError> {
        let files = files.iter().map(|(path, bytes)| Ok((path.parse()?, File::of(bytes.as_ref()))));
        let lock = Lock {
            server: manifest.name.clone(),
            surface,
            egress: manifest.egress.clone(),
            secrets: manifest.secrets.clone(),
            limits: LockedLimits::from(&manifest.limits),
            wall: manifest.wall,
            boundary: manifest.boundary,
            jit: manifest.jit,
            program,
            files: files.collect::<Result<_, Wrong>>()?,
            endpoints: BTreeSet::new(),
            step,
        };
        // What is made can be read.
        Lock::parse(&lock.bytes())
    }

    /// Reads a lock. Anything but its one canonical form is refused, to the byte.
    pub fn parse(bytes: &[u8]) -> Result<Lock, LockError> {
        measure(bytes, LARGEST, DEEPEST).map_err(|excess| match excess {
            Excess::Large { bytes, most } => LockError::TooLarge { bytes, most },
            Excess::Deep(most) => LockError::TooDeep { most },
        })?;
        let wire = serde_json::from_slice::<Wire>(bytes);
        let wire = wire.map_err(|error| LockError::Unreadable(message(&error.to_string())))?;
        if wire.version != VERSION {
            return Err(LockError::Version(wire.version));
        }
        let Wire { server, surface, egress, secrets, limits, wall, boundary, jit, entry, command, .. } = wire;
        let Wire { files, endpoints, step, .. } = wire;
        let program = match (wall, entry, command) {
            (Wall::Isolate, Some(entry), None) => Program::Module { entry },
            (Wall::Process, None, Some(command)) => Program::Command(command),
            _ => return Err(LockError::NoProgram),
        };
        let lock =
            Lock { server, surface, egress, secrets, limits, wall, boundary, jit, program, files, endpoints, step };
        // Whatever was dropped, sorted or filled in on the way shows here.
        if let Some(at) = difference(&lock.bytes(), bytes) {
            return Err(LockError::NotCanonical { at });
        }
        let parents = |path: &str| path.match_indices('/').map(|(at, _)| path[..at].to_owned()).collect::<Vec<_>>();
        for parent in lock.files.keys().flat_map(|path| parents(path.as_str())) {
            if let Some((path, _)) = lock.files.get_key_value(parent.as_str()) {
                return Err(LockError::FileAndDirectory(path.clone()));
            }
        }
        if !lock.files.contains_key(lock.program.file()) {
            return Err(LockError::NoEntry(lock.program.file().to_owned()));
        }
        Ok(lock)
    }

    /// All limits, also those that did not exist when it was made.
    pub fn limits(&self) -> Limits {
        self.limits.limits(self.wall)
    }

    /// The layer that its command runs in.
    pub fn layer(&self) -> Option<Digest> {
        match self.program {
            Program::Module { .. } => None,
            Program::Command(_) => self.files.get(self.program.file()).map(|file| file.sha256),
        }
    }

    /// The canonical form.
    pub fn bytes(&self) -> Vec<u8> {
        canonical(&self.value())
    }

    /// What is sealed.
    pub fn digest(&self) -> Digest {
        digest(&self.bytes())
    }

    /// Names what is deployed, whichever step brought it.
    pub fn content(&self) -> Digest {
        let mut value = self.value();
        if let Value::Object(map) = &mut value {
            map.remove("step");
        }
        digest(&canonical(&value))
    }

    /// Refuses a lock that was made for another step than the one that is to come.
    pub fn follows(&self, number: u64, previous: Option<Digest>) -> Result<(), Replayed> {
        let (found, wanted) = ((self.step.number, self.step.previous), (number, previous));
        if found == wanted { Ok(()) } else { Err(Replayed { found, wanted }) }
    }

    /// As it is uploaded and shown.
    pub fn value(&self) -> Value {
        let mut value = json!({
            "version": VERSION,
            "server": self.server,
            "surface": self.surface,
            "egress": self.egress,
            "secrets": self.secrets,
            "limits": self.limits,
            "wall": self.wall,
            "boundary": self.boundary,
            "jit": self.jit,
            "files": self.files,
            "endpoints": self.endpoints,
            "step": self.step,
        });
        match &self.program {
            Program::Module { entry } => value["entry"] = json!(entry),
            Program::Command(command) => value["command"] = json!(command),
        }
        value
    }
}
