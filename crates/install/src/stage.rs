//! Where a package is installed at first, and what becomes of it.

use crate::error::Error;
use crate::ground::PACKAGE;
use crate::walk::{Most, resolve, walk};
use jail::namespaces::NOBODY;
use jail::users::Lease;
use std::fs::{self, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

/// Where installers keep what only they need.
pub(crate) const CACHE: &str = ".cache";
/// That, and what npm notes for itself.
const NOTES: [&str; 3] = [CACHE, "package-lock.json", "node_modules/.package-lock.json"];

/// Of one installation, with what the installer keeps.
const MOST: Most = Most { entries: 400_000, bytes: 8 << 30, depth: 64 };

/// What did not become whole is gone with it.
pub(crate) struct Stage(pub(crate) PathBuf, Option<Lease>);

impl Stage {
    pub(crate) fn new(path: PathBuf) -> Result<Stage, Error> {
        clear(&path)?;
        // Whatever mask the person has: whoever root is inside has to read it.
        let made = fs::create_dir(&path).and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o755)));
        made.map_err(Error::path(&path))?;
        let mut stage = Stage(path, None);
        if rustix::process::geteuid().is_root() {
            // One for all installers that run in it: each goes on with what the one before has written.
            stage.1 = jail::users::lease()?;
            let user = stage.1.as_ref().map_or(NOBODY, Lease::uid);
            lchown(&stage.0, Some(user), Some(user)).map_err(Error::path(&stage.0))?;
        }
        Ok(stage)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Whoever comes next tries again.
        let _ = clear(&self.0);
    }
}

/// Removes a folder, however deep it is and whoever may read it.
pub(crate) fn clear(folder: &Path) -> Result<(), Error> {
    match raze(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::path(folder)(error)),
        _ => Ok(()),
    }
}

/// Folders in folders are brought up before the one that they are in goes, so no path gets long.
fn raze(top: &Path) -> io::Result<()> {
    let mut number = 0u64;
    let ours = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o700));
    ours(top)?;
    loop {
        let mut empty = true;
        for entry in fs::read_dir(top)? {
            let entry = entry?;
            empty = false;
            if !entry.file_type()?.is_dir() {
                fs::remove_file(entry.path())?;
                continue;
            }
            ours(&entry.path())?;
            for inner in fs::read_dir(entry.path())? {
                let inner = inner?;
                if !inner.file_type()?.is_dir() {
                    fs::remove_file(inner.path())?;
                    continue;
                }
                ours(&inner.path())?;
                let free = loop {
                    number += 1;
                    let name = top.join(format!("{number}.gone"));
                    if name.symlink_metadata().is_err() {
                        break name;
                    }
                };
                fs::rename(inner.path(), free)?;
            }
            fs::remove_dir(entry.path())?;
        }
        if empty {
            return fs::remove_dir(top);
        }
    }
}

/// Says so when more is there than any package needs, or something that cannot be looked at.
pub(crate) fn excess(stage: &Path) -> Option<String> {
    let error = walk(stage, &MOST, &mut |_, _| Ok(true)).err()?;
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
    Some(format!("{error}{}", cause.unwrap_or_default()))
}

/// Leaves out what only the installer needs. It may tell more of the registry than others are to know.
pub(crate) fn forget(stage: &Path) -> Result<(), Error> {
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    for name in NOTES {
        let path = stage.join(name);
        // A folder on the way may have become a link to anywhere.
        if path.parent().is_none_or(|folder| !is_folder(folder)) {
            continue;
        }
        if is_folder(&path) {
            clear(&path)?;
        } else if path.symlink_metadata().is_ok() {
            fs::remove_file(&path).map_err(Error::path(&path))?;
        }
    }
    Ok(())
}

/// Makes of what an installer has left what can be kept: nothing that only installing needs, nothing that leads outside, no
/// rights but the usual ones, and, for root, all of it root's own.
pub(crate) fn settle(stage: &Path) -> Result<(), Error> {
    forget(stage)?;
    let root = rustix::process::geteuid().is_root();
    let own = |path: &Path| if root { lchown(path, Some(0), Some(0)) } else { Ok(()) };
    let settled = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).and_then(|()| own(path));
    settled(stage, 0o755).map_err(Error::path(stage))?;
    walk(stage, &MOST, &mut |path, found| {
        let whole = stage.join(path);
        let done = match Kind::of(found) {
            Kind::Folder => settled(&whole, 0o755),
            Kind::File => settled(&whole, if found.permissions().mode() & 0o100 != 0 { 0o755 } else { 0o644 }),
            Kind::Link => match keep_link(stage, path) {
                Ok(true) => own(&whole),
                Ok(false) => return Ok(false),
                Err(error) => Err(error),
            },
            Kind::Other(what) => return Err(Error::content(path, what)),
        };
        done.map_err(Error::path(&whole)).map(|()| true)
    })
}

/// What something in a folder is.
pub(crate) enum Kind {
    Folder,
    File,
    Link,
    /// What no program comes with.
    Other(&'static str),
}

impl Kind {
    pub(crate) fn of(found: &Metadata) -> Kind {
        match found.file_type() {
            kind if kind.is_dir() => Kind::Folder,
            kind if kind.is_file() => Kind::File,
            kind if kind.is_symlink() => Kind::Link,
            kind => Kind::Other(other(kind)),
        }
    }
}

fn other(kind: fs::FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        kind if kind.is_socket() => "it is a socket",
        kind if kind.is_fifo() => "it is a pipe",
        _ => "it is a device",
    }
}

/// Links that leave the package are left out; those that name the place where it is installed now are written anew.
fn keep_link(stage: &Path, path: &Path) -> io::Result<bool> {
    let whole = stage.join(path);
    let target = fs::read_link(&whole)?;
    let Ok(rest) = target.strip_prefix(PACKAGE) else {
        return if resolve(stage, path, &target).is_some() {
            Ok(true)
        } else {
            fs::remove_file(&whole).map(|()| false)
        };
    };
    let up = path.components().skip(1).map(|_| "..");
    let relative: PathBuf = up.collect::<PathBuf>().join(rest);
    fs::remove_file(&whole)?;
    let keep = !relative.as_os_str().is_empty() && resolve(stage, path, &relative).is_some();
    if keep {
        symlink(relative, &whole)?;
    }
    Ok(keep)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn what_a_hostile_package_leaves_is_made_harmless() {
        let folder = Folder::new("settle");
        let stage = folder.path().join("stage");
        fs::create_dir_all(stage.join("sub/locked")).unwrap();
        fs::create_dir_all(stage.join(".cache/x")).unwrap();
        for (file, mode) in [("setuid", 0o6777), ("plain", 0o666), ("sub/locked/file", 0o000)] {
            fs::write(stage.join(file), "").unwrap();
            fs::set_permissions(stage.join(file), Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(stage.join("sub/locked"), Permissions::from_mode(0o000)).unwrap();
        fs::write(folder.path().join(".package-lock.json"), "somebody's own").unwrap();
        symlink("..", stage.join("node_modules")).unwrap();
        for (path, target) in
            [("out", "/etc/passwd"), ("sub/up", "../../x"), ("sub/own", "/app/plain"), ("sub/good", "../plain")]
        {
            symlink(target, stage.join(path)).unwrap();
        }
        settle(&stage).unwrap();
        assert_eq!((mode(&stage.join("setuid")), mode(&stage.join("plain"))), (0o755, 0o644));
        assert_eq!((mode(&stage.join("sub/locked")), mode(&stage.join("sub/locked/file"))), (0o755, 0o644));
        assert!(folder.path().join(".package-lock.json").exists(), "a link was followed");
        for gone in ["out", "sub/up", ".cache", "node_modules"] {
            assert!(stage.join(gone).symlink_metadata().is_err(), "{gone}");
        }
        assert_eq!(fs::read_link(stage.join("sub/own")).unwrap(), Path::new("../plain"));
        assert_eq!(fs::read_link(stage.join("sub/good")).unwrap(), Path::new("../plain"));
        let _socket = std::os::unix::net::UnixListener::bind(stage.join("socket")).unwrap();
        assert_eq!(settle(&stage).unwrap_err().to_string(), "`socket` cannot be part of a program: it is a socket");
    }

    #[test]
    fn a_folder_of_any_depth_can_be_removed() {
        let folder = Folder::new("raze");
        let top = folder.path().join("top");
        fs::create_dir_all(top.join("1.gone")).unwrap();
        fs::write(top.join("1.gone/file"), "").unwrap();
        symlink(folder.path(), top.join("link")).unwrap();
        // Made from the inside out, because no path reaches so deep.
        let mut inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        for at in 0..2100 {
            let outer = folder.path().join(format!("outer-{at}"));
            fs::create_dir(&outer).unwrap();
            fs::rename(&inner, outer.join("d")).unwrap();
            inner = outer;
        }
        fs::rename(&inner, top.join("deep")).unwrap();
        assert!(excess(&top).is_some());
        fs::set_permissions(top.join("deep"), Permissions::from_mode(0o000)).unwrap();
        clear(&top).unwrap();
        assert!(!top.exists() && folder.path().exists());
        clear(&top).unwrap();
    }
}
