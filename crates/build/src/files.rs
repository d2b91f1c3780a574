//! The project's folder as the host sees it. The jail decides what a build can read; this is for entries and messages.

use crate::error::BuildError;
use crate::text::name;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

/// Links that are followed before giving up, as the kernel does.
const MOST_LINKS: usize = 40;

/// What esbuild adds to a path that is not there, and the folder's own file.
const ENDINGS: [&str; 12] = [
    "",
    ".tsx",
    ".ts",
    ".jsx",
    ".js",
    ".json",
    "/index.tsx",
    "/index.ts",
    "/index.jsx",
    "/index.js",
    "/index.json",
    "/package.json",
];

pub(crate) struct Project {
    /// Canonical.
    pub(crate) folder: PathBuf,
}

impl Project {
    pub(crate) fn open(folder: &Path) -> Result<Project, BuildError> {
        let wrong = |why: String| BuildError::Project(format!("`{}` {why}", name(&folder.display().to_string())));
        let canonical = folder.canonicalize().map_err(|error| wrong(format!("cannot be opened: {error}")))?;
        if !canonical.is_dir() {
            return Err(wrong("is not a folder; give the project's folder and the entry in it".to_owned()));
        }
        if canonical == Path::new("/") {
            return Err(wrong("is everything there is; give the project's own folder".to_owned()));
        }
        Ok(Project { folder: canonical })
    }

    /// The entry as a plain relative path to a file in the project.
    pub(crate) fn entry(&self, entry: &str) -> Result<String, BuildError> {
        let wrong = |why: &str| BuildError::Project(format!("the entry `{}` {why}", name(entry)));
        let plain = (!entry.starts_with('/')).then(|| normal("", entry)).flatten();
        let plain = plain.filter(|path| !path.is_empty()).ok_or_else(|| wrong("lies outside of the project"))?;
        if self.leads_out(&plain) {
            return Err(wrong("is a link that leads outside of the project"));
        }
        match self.folder.join(&plain).metadata() {
            Ok(found) if found.is_file() => Ok(plain),
            Ok(_) => Err(wrong("is not a file")),
            Err(error) => Err(wrong(&format!("cannot be read: {error}"))),
        }
    }

    /// The text of a file.
    pub(crate) fn source(&self, file: &str, most: usize) -> Result<String, BuildError> {
        let wrong = |why: &str| BuildError::Project(format!("`{}` {why}", name(file)));
        let failed = |error: std::io::Error| wrong(&format!("cannot be read: {error}"));
        // Opening a named pipe would wait for somebody to write.
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(self.folder.join(file));
        let opened = opened.map_err(failed)?;
        if !opened.metadata().map_err(failed)?.is_file() {
            return Err(wrong("is not a file"));
        }
        let mut bytes = Vec::new();
        opened.take(most as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() > most {
            return Err(wrong(&format!("has more than {most} bytes")));
        }
        String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8"))
    }

    /// Whether a file that esbuild would take for this path, or a folder on the way to it, is a link out of the project.
    pub(crate) fn leads_out(&self, path: &str) -> bool {
        ENDINGS.iter().any(|ending| self.follow(&format!("{path}{ending}"), &mut 0).is_none())
    }

    /// Where a path leads, link by link, without ever leaving the project. What is not there leads to itself.
    fn follow(&self, path: &str, links: &mut usize) -> Option<String> {
        let mut place = String::new();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            let next = join(&place, part);
            place = match self.folder.join(&next).read_link() {
                Err(_) => next,
                Ok(target) => {
                    *links += 1;
                    if *links > MOST_LINKS {
                        // In a circle, and so not out.
                        return Some(next);
                    }
                    let target = target.to_str().filter(|target| !target.starts_with('/'))?;
                    self.follow(&normal(&place, target)?, links)?
                }
            };
        }
        Some(place)
    }

    /// Whether there is something by this name, were it a link to nowhere.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.folder.join(path).symlink_metadata().is_ok()
    }
}

/// `path`, seen from the folder `from`, without `.` and `..`; `None` when it leaves the project.
pub(crate) fn normal(from: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    let both = if path.starts_with('/') { path.to_owned() } else { join(from, path) };
    for part in Path::new(&both).components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The folder that a file lies in.
pub(crate) fn folder_of(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_have_no_normal_form() {
        assert_eq!(normal("src", "./a.ts").as_deref(), Some("src/a.ts"));
        assert_eq!(normal("src", "../a.ts").as_deref(), Some("a.ts"));
        assert_eq!(normal("", "src/../src/./a.ts").as_deref(), Some("src/a.ts"));
        for (from, path) in [("src", "../../a"), ("", ".."), ("", "a/../../a"), ("src", "/etc/passwd")] {
            assert_eq!(normal(from, path), None, "{path}");
        }
    }
}
