//! The author's file, `bulkhead.toml`: every key known, nothing guessed.

mod keys;
mod program;
mod read;
mod secrets;

use crate::{Binding, Host, Program, ServerName};
use policy::{Ask, Boundary, Limits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// What stands between the code and the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wall {
    /// V8, in a jailed process.
    #[default]
    Isolate,
    /// A jail around a program and all that it starts.
    Process,
}

impl Wall {
    pub const ALL: [Wall; 2] = [Wall::Isolate, Wall::Process];

    pub fn as_str(self) -> &'static str {
        match self {
            Wall::Isolate => "isolate",
            Wall::Process => "process",
        }
    }

    /// What holds where nothing is said.
    pub fn limits(self) -> Limits {
        match self {
            Wall::Isolate => Limits::default(),
            Wall::Process => Limits::of_programs(),
        }
    }

    /// What holds where nothing is said. Programs take their time to start, so calls of a session share one.
    pub fn boundary(self) -> Boundary {
        match self {
            Wall::Isolate => Boundary::default(),
            Wall::Process => Boundary::Session,
        }
    }
}

/// What an author says about a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    pub name: ServerName,
    pub description: String,
    pub program: Program,
    pub wall: Wall,
    pub boundary: Boundary,
    pub jit: bool,
    pub limits: Limits,
    pub egress: BTreeSet<Host>,
    pub secrets: BTreeSet<Binding>,
}

impl Manifest {
    /// No file may be larger.
    pub const LARGEST: usize = 64 << 10;

    /// Reads a file's bytes. All problems are reported, not only the first.
    pub fn parse(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        read::parse(bytes)
    }

    /// What the host is asked for.
    pub fn ask(&self) -> Ask {
        Ask { limits: self.limits.clone(), boundary: self.boundary, jit: self.jit }
    }

    /// All keys, as a table in Markdown.
    pub fn reference() -> String {
        keys::reference()
    }

    /// The file that a new project begins with. It can be read if `name` may be the name of a server.
    pub fn template(name: &str) -> String {
        keys::template(name)
    }
}

/// Something wrong at a place in the file. Lines and columns count from 1, columns in characters. Safe to show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub line: usize,
    pub column: usize,
    /// Empty when the file is no TOML at all.
    pub key: String,
    pub message: String,
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

/// Everything that is wrong with a file, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ManifestError {
    pub problems: Vec<Problem>,
    /// How many more there are that are not shown.
    pub more: usize,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if index > 0 { "\n" } else { "" })?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}
