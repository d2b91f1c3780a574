//! Why there is no result, for the author.

use crate::text::{line, name};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// As many problems as anybody reads.
const MOST_SHOWN: usize = 20;
const LONGEST: usize = 500;

/// Why a project was not built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// What is wrong in the project's files.
    #[error("{}", Shown(.0))]
    Problems(Vec<Problem>),
    #[error("{0}")]
    Project(String),
    #[error("esbuild is not at `{}`; `make build` puts it there, `BULKHEAD_ESBUILD` names another place", .0.display())]
    Missing(PathBuf),
    #[error("nothing is built without a jail, and there can be none here; `bulkhead doctor` says what is missing")]
    Jail(#[source] jail::program::SpawnError),
    #[error("the build took longer than {} s; is there a named pipe or an endless file in the project?", .0.as_secs_f64())]
    TooLong(Duration),
    #[error("the build needs more than {} MiB of memory; does it import a very large file?", .0 >> 20)]
    TooMuchMemory(u64),
    #[error("the result has more than {0} bytes; import less, or fetch data when it is needed")]
    TooLarge(usize),
    #[error("esbuild did not do its work: {0}")]
    Esbuild(String),
}

impl BuildError {
    /// The word for programs.
    pub fn code(&self) -> &'static str {
        "build_failed"
    }

    /// Whether esbuild refused it for what only the body of a function may have.
    pub(crate) fn is_a_script(&self) -> bool {
        matches!(self, BuildError::Problems(all) if all.iter().any(|problem| problem.text.starts_with("Top-level return")))
    }
}

/// Something to change in the project. Its texts are fit to be shown: one line each, nothing hidden in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub place: Option<Place>,
    pub text: String,
    pub notes: Vec<String>,
}

/// Where it is. Lines and columns count from one, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Relative to the project.
    pub file: String,
    pub line: usize,
    pub column: usize,
    /// The line itself.
    pub source: String,
}

impl Place {
    pub(crate) fn new(file: &str, number: usize, before: &str, source: &str) -> Place {
        Place { file: name(file), line: number, column: before.chars().count() + 1, source: line(source.trim(), 200) }
    }
}

impl Problem {
    pub(crate) fn new(place: Option<Place>, text: &str) -> Problem {
        Problem { place, text: line(text, LONGEST), notes: Vec::new() }
    }

    pub(crate) fn note(mut self, note: impl Into<Option<String>>) -> Problem {
        self.notes.extend(note.into().map(|note| line(&note, LONGEST)));
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match &self.place {
            None => write!(f, "{}", self.text)?,
            Some(Place { file, line: 0, .. }) => write!(f, "{file}: {}", self.text)?,
            Some(Place { file, line, column, source }) => {
                write!(f, "{file}:{line}:{column}: {}\n    {source}", self.text)?;
            }
        }
        self.notes.iter().try_for_each(|note| write!(f, "\n    {note}"))
    }
}

struct Shown<'a>(&'a [Problem]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (index, problem) in self.0.iter().take(MOST_SHOWN).enumerate() {
            let end = if index > 0 { "\n" } else { "" };
            write!(f, "{end}{problem}")?;
        }
        match self.0.len().saturating_sub(MOST_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n… and {more} more"),
        }
    }
}
