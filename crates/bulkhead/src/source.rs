//! The file with a server's code, and input for its tools. Read within bounds: a file may have no end.

use std::io::Read;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("`{}` cannot be read", .0.display())]
    File(PathBuf, #[source] std::io::Error),
    #[error("`{}` is larger than {most} KiB (`source_kb`)", path.display())]
    TooLarge { path: PathBuf, most: u64 },
    #[error("`{}` is TypeScript, and servers are JavaScript", .0.display())]
    TypeScript(PathBuf),
}

pub const TYPESCRIPT_HINT: &str =
    "make JavaScript of it first: `esbuild server.ts --bundle --format=esm --outfile=server.js`";

/// The code, if it has at most so many KiB.
pub fn read(path: &Path, most_kb: u64) -> Result<Vec<u8>, SourceError> {
    if path.extension().is_some_and(|ext| ext == "ts" || ext == "mts" || ext == "tsx") {
        return Err(SourceError::TypeScript(path.to_owned()));
    }
    std::fs::File::open(path)
        .and_then(|file| read_at_most(file, most_kb))
        .map_err(|source| SourceError::File(path.to_owned(), source))?
        .ok_or_else(|| SourceError::TooLarge { path: path.to_owned(), most: most_kb })
}

/// What stack traces say: the name, never the path.
pub fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| "server.js".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// All of it, or `None` when there is more than this many KiB.
pub fn read_at_most(from: impl Read, most_kb: u64) -> std::io::Result<Option<Vec<u8>>> {
    let most = most_kb * 1024;
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}
