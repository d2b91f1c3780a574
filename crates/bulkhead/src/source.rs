//! The code of a server, built of the author's files, and input for its tools. Read within bounds: a file may have no end.

use ::build::{BuildError, Built, Options, imports_nothing, map_stack};
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
        let found = whole.metadata().map_err(unreadable)?;
        if !found.is_file() {
            let directory = std::io::ErrorKind::IsADirectory.into();
            return Err(unreadable(if found.is_dir() { directory } else { std::io::Error::other("it is not a file") }));
        }
        // Most servers are one file that imports nothing, and are run as they are.
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if [".js", ".mjs"].iter().any(|ending| name.ends_with(ending)) {
            let bytes = std::fs::File::open(&whole).and_then(|file| read_at_most(file, most_kb)).map_err(unreadable)?;
            let bytes = bytes.ok_or_else(|| SourceError::TooLarge { file: name.clone(), most: most_kb })?;
            let not_text = |_| unreadable(std::io::Error::other("it is not UTF-8"));
            let code = String::from_utf8(bytes).map_err(not_text)?;
            if imports_nothing(&code) {
                return Ok(Source::made(code, &name));
            }
        }
        let (folder, name) = (whole.parent().unwrap_or(Path::new("/")), whole.file_name().unwrap_or_default());
        Source::of_project(folder, &name.to_string_lossy(), most_kb)
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
