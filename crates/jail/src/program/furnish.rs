//! The root of a jail with something in it. Needs Linux 5.12, for mounts that are made before they have a place.

use std::ffi::{CStr, CString};
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{Content, Mount, SpawnError};
use crate::error::Error;
use crate::landlock::Use;
use crate::root::{STAGE, change_directory, failed, make_root, mount};
use crate::sys::{check, check_long};

/// Room for mount points, which hold nothing.
const TMPFS_OPTIONS: &CStr = c"size=64k,nr_inodes=1024,mode=755";

/// Inodes of a scratch folder.
const SCRATCH_FILES: u32 = 1024;

/// One mount, ready to be made by a process that should allocate little.
pub(super) struct Piece {
    /// Relative to the new root.
    target: PathBuf,
    mount_point: CString,
    kind: Kind,
}

enum Kind {
    Host { source: CString, folder: bool, executable: bool },
    Scratch { options: CString },
}

impl Piece {
    pub(super) fn new(mount: &Mount) -> Result<Piece, SpawnError> {
        let wrong = |why| SpawnError::Mount { target: mount.target.clone(), why };
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(|_| wrong("a path has a zero byte"));
        let target = mount.target.strip_prefix("/").map_err(|_| wrong("the path is not absolute"))?.to_owned();
        let kind = match &mount.content {
            Content::Host { source, executable } => {
                // What is opened later is what was looked at here, unless the host's own folders change meanwhile.
                let source = source.canonicalize().map_err(|_| wrong("there is no such file or folder on the host"))?;
                let folder = match source.metadata() {
                    Ok(found) if found.is_dir() => true,
                    Ok(found) if found.is_file() => false,
                    _ => return Err(wrong("it is neither a file nor a folder")),
                };
                Kind::Host { source: text(&source)?, folder, executable: *executable }
            }
            Content::Scratch { bytes } => {
                let options = format!("size={bytes},nr_inodes={SCRATCH_FILES},mode=777");
                Kind::Scratch { options: CString::new(options).map_err(|_| wrong("a zero byte"))? }
            }
        };
        Ok(Piece { mount_point: text(&target)?, target, kind })
    }

    /// The host's part as a mount without a place, with what it may be used for already settled.
    pub(super) fn detach(&self) -> Result<Option<OwnedFd>, Error> {
        let Kind::Host { source, executable, .. } = &self.kind else { return Ok(None) };
        let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as libc::c_uint;
        // SAFETY: a string with a terminating zero that outlives the call, and numbers.
        let tree = check_long(unsafe {
            libc::syscall(libc::SYS_open_tree, libc::c_long::from(libc::AT_FDCWD), source.as_ptr(), flags)
        })
        .map_err(failed("taking a file or folder of the host"))?;
        // SAFETY: the kernel made this descriptor for this call, so nobody else owns it.
        let tree = unsafe { OwnedFd::from_raw_fd(tree as i32) };
        let mut attributes = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
        if !executable {
            attributes |= libc::MOUNT_ATTR_NOEXEC;
        }
        restrict(tree.as_raw_fd(), c"", libc::AT_EMPTY_PATH | libc::AT_RECURSIVE, attributes)
            .map_err(failed("making a file or folder of the host read-only"))?;
        Ok(Some(tree))
    }

    /// What landlock should allow: the same as the mount does.
    pub(super) fn permission(&self) -> (PathBuf, Use) {
        let used = match self.kind {
            Kind::Host { executable: false, .. } => Use::Read,
            Kind::Host { executable: true, .. } => Use::Run,
            Kind::Scratch { .. } => Use::Write,
        };
        (Path::new("/").join(&self.target), used)
    }

    fn place(&self, tree: Option<&OwnedFd>) -> io::Result<()> {
        let folder = !matches!(self.kind, Kind::Host { folder: false, .. });
        let above = if folder { Some(self.target.as_path()) } else { self.target.parent() };
        if let Some(above) = above.filter(|path| !path.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o755).create(above)?;
        }
        if !folder {
            OpenOptions::new().write(true).create_new(true).mode(0o444).open(&self.target)?;
        }
        match (&self.kind, tree) {
            (Kind::Scratch { options }, _) => mount(
                Some(c"scratch"),
                &self.mount_point,
                Some(c"tmpfs"),
                libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC,
                Some(options),
            ),
            (Kind::Host { .. }, Some(tree)) => {
                // SAFETY: strings with a terminating zero that outlive the call, and numbers.
                check_long(unsafe {
                    libc::syscall(
                        libc::SYS_move_mount,
                        libc::c_long::from(tree.as_raw_fd()),
                        c"".as_ptr(),
                        libc::c_long::from(libc::AT_FDCWD),
                        self.mount_point.as_ptr(),
                        libc::MOVE_MOUNT_F_EMPTY_PATH,
                    )
                })?;
                Ok(())
            }
            (Kind::Host { .. }, None) => Err(io::Error::from_raw_os_error(libc::EBADF)),
        }
    }
}

/// Replaces everything this mount namespace shows by a read-only root with the pieces in it.
pub(super) fn furnish(pieces: &[Piece], trees: &[Option<OwnedFd>]) -> Result<(), Error> {
    mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE, None).map_err(failed("making mounts private"))?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    mount(Some(c"jail"), STAGE, Some(c"tmpfs"), flags, Some(TMPFS_OPTIONS)).map_err(failed("mounting a new root"))?;
    change_directory(STAGE).map_err(failed("entering the new root"))?;
    // SAFETY: takes a number only. Mount points must be reachable whatever mask the host has.
    unsafe { libc::umask(0o022) };
    for (piece, tree) in pieces.iter().zip(trees) {
        piece.place(tree.as_ref()).map_err(failed("placing a file or folder"))?;
    }
    make_root()?;
    restrict(libc::AT_FDCWD, c"/", 0, libc::MOUNT_ATTR_RDONLY).map_err(failed("making the root read-only"))
}

/// Takes possibilities from a mount. Those it lacks already stay lacking.
fn restrict(folder: i32, path: &CStr, flags: libc::c_int, attributes: u64) -> io::Result<()> {
    let attributes = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: a string and a structure that outlive the call, and the size of that structure.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::c_long::from(folder),
            path.as_ptr(),
            libc::c_long::from(flags),
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        ) as libc::c_int
    })?;
    Ok(())
}
