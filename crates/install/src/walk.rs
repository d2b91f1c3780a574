//! Folders that somebody else has filled, looked through without following anything.

use crate::error::Error;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// Links that lead to links, at most: as many as the kernel follows.
const HOPS: usize = 40;

/// How much a folder may hold.
pub(crate) struct Most {
    pub(crate) entries: usize,
    pub(crate) bytes: u64,
    pub(crate) depth: usize,
}

/// Shows every entry below `root`, folders before what is in them; `visit` says whether it counts and is entered. What
/// vanishes meanwhile is passed over.
pub(crate) fn walk(
    root: &Path,
    most: &Most,
    visit: &mut dyn FnMut(&Path, &Metadata) -> Result<bool, Error>,
) -> Result<(), Error> {
    fs::metadata(root).map_err(Error::path(root))?;
    let mut folders = vec![PathBuf::new()];
    let (mut entries, mut bytes) = (0, 0u64);
    let too_much = |what: String| Error::TooMuch { path: root.to_owned(), what };
    while let Some(folder) = folders.pop() {
        let whole = root.join(&folder);
        let Some(listed) = unless_gone(fs::read_dir(&whole)).map_err(Error::path(&whole))? else { continue };
        for entry in listed {
            let entry = entry.map_err(Error::path(&whole))?;
            let path = folder.join(entry.file_name());
            let Some(found) = unless_gone(entry.metadata()).map_err(Error::path(entry.path()))? else { continue };
            if !visit(&path, &found)? {
                continue;
            }
            entries += 1;
            bytes = bytes.saturating_add(if found.is_file() { found.len() } else { 0 });
            if entries > most.entries {
                return Err(too_much(format!("{} files and folders", most.entries)));
            }
            if bytes > most.bytes {
                return Err(too_much(format!("{} MB", most.bytes >> 20)));
            }
            if path.components().count() > most.depth {
                return Err(too_much(format!("{} folders in each other", most.depth)));
            }
            if found.is_dir() {
                folders.push(path);
            }
        }
    }
    Ok(())
}

fn unless_gone<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where a link at `path` below `root` leads, below `root`, if it stays there at every step, through whatever other links it
/// leads. Nothing need be there.
pub(crate) fn resolve(root: &Path, path: &Path, target: &Path) -> Option<PathBuf> {
    let mut at = path.parent().unwrap_or(Path::new("")).to_owned();
    // What is left of the way, its next step last.
    let mut way: Vec<PathBuf> = Vec::new();
    let extend = |way: &mut Vec<PathBuf>, target: &Path| {
        way.extend(target.components().rev().map(|step| PathBuf::from(step.as_os_str())));
    };
    extend(&mut way, target);
    let mut hops = 0;
    while let Some(step) = way.pop() {
        match step.components().next() {
            Some(Component::Normal(name)) => {
                at.push(name);
                if let Ok(target) = fs::read_link(root.join(&at)) {
                    hops += 1;
                    at.pop();
                    extend(&mut way, &target);
                }
            }
            Some(Component::CurDir) | None => {}
            Some(Component::ParentDir) if at.pop() => {}
            Some(Component::ParentDir | Component::RootDir | Component::Prefix(_)) => return None,
        }
        if hops > HOPS {
            return None;
        }
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_step_by_step() {
        let folder = Folder::new("links");
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        let links = [("sub/up", ".."), ("down", "sub/deep"), ("loop", "loop"), ("far", "/etc")];
        for (path, target) in links {
            symlink(target, root.join(path)).unwrap();
        }
        let stays = |path: &str, target: &str| resolve(&root, Path::new(path), Path::new(target)).is_some();
        for (path, target) in [
            ("a", "sub"),
            ("sub/a", ".."),
            ("sub/a", "../nothing/there"),
            ("a", "./sub/up/sub/up"),
            ("a", "down/../.."),
        ] {
            assert!(stays(path, target), "{path} -> {target}");
        }
        assert_eq!(resolve(&root, Path::new("sub/a"), Path::new("../down/../x")), Some("sub/x".into()));
        for (path, target) in [
            ("a", ".."),
            ("a", "/etc"),
            ("a", "sub/../../x"),
            // It looks as if it led to `sub/x`.
            ("a", "sub/up/../x"),
            ("a", "loop"),
            ("a", "far/passwd"),
            ("sub/a", "../../root/sub"),
        ] {
            assert!(!stays(path, target), "{path} -> {target}");
        }
    }

    #[test]
    fn no_folder_is_too_much_to_be_counted() {
        let folder = Folder::new("walk");
        fs::create_dir_all(folder.path().join("a/b/c")).unwrap();
        fs::write(folder.path().join("a/file"), "12345").unwrap();
        let count = |entries, bytes, depth| {
            walk(folder.path(), &Most { entries, bytes, depth }, &mut |_, _| Ok(true))
                .map_err(|error| error.to_string())
        };
        // With the home that every such folder has.
        assert_eq!(count(5, 5, 3), Ok(()));
        assert!(count(4, 5, 3).unwrap_err().contains("4 files"));
        assert!(count(5, 4, 3).unwrap_err().contains("0 MB"));
        assert!(count(5, 5, 2).unwrap_err().contains("2 folders in each other"));
    }
}
