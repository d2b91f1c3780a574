//! The code of a server, built of the author's files, and input for its tools. Read within bounds: a file may have no end.

use ::build::{BuildError, Built, Options, map_stack};
use std::io::Read;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("`{}` cannot be read", .0.display())]
    File(PathBuf, #[source] std::io::Error),
    #[error("`{file}` becomes larger than {most} KiB (`source_kb`)")]
    TooLarge { file: String, most: u64 },
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// What a server's files become.
pub struct Source {
    pub code: String,
    /// What the code is called, in stack traces too.
    pub name: String,
    /// Where in the author's files it comes from; empty if it is one of them.
    map: String,
    pub warnings: Vec<String>,
}

impl Source {
    /// A file, with whatever it imports from its folder.
    pub fn of_file(path: &Path, most_kb: u64) -> Result<Source, SourceError> {
        let unreadable = |source| SourceError::File(path.to_owned(), source);
        let whole = path.canonicalize().map_err(unreadable)?;
        let (Some(folder), Some(name)) = (whole.parent(), whole.file_name().and_then(|name| name.to_str())) else {
            return Err(unreadable(std::io::ErrorKind::IsADirectory.into()));
        };
        Source::of_project(folder, name, most_kb)
    }

    pub fn of_project(folder: &Path, entry: &str, most_kb: u64) -> Result<Source, SourceError> {
        let Built { code, map, warnings, .. } = ::build::build(folder, entry, &Options::default())?;
        if code.len() as u64 > most_kb * 1024 {
            return Err(SourceError::TooLarge { file: entry.to_owned(), most: most_kb });
        }
        // What was built is another file than the one it begins with.
        let stem = || Path::new(entry).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = if map.is_empty() { entry.to_owned() } else { format!("{}.js", stem()) };
        Ok(Source { code, name, map, warnings })
    }

    /// Code that was made here.
    pub fn made(code: String, name: &str) -> Source {
        Source { code, name: name.to_owned(), map: String::new(), warnings: Vec::new() }
    }

    /// A stack trace in terms of the author's files.
    pub fn trace(&self, stack: &str) -> String {
        if self.map.is_empty() { stack.to_owned() } else { map_stack(&self.map, stack, &self.name) }
    }
}

/// All of it, or `None` when there is more than this many KiB.
pub fn read_at_most(from: impl Read, most_kb: u64) -> std::io::Result<Option<Vec<u8>>> {
    let most = most_kb * 1024;
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}
