//! The root of a jail with something in it.

use std::ffi::{CStr, CString};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use super::fresh::{attach, copy, make, point, restrict};
use super::piece::{Kind, Piece};
use crate::error::Error;
use crate::landlock::Use;
use crate::process;
use crate::root::{STAGE, change_directory, failed, make_root, mount};

/// Room for mount points, which hold nothing, and for texts.
const TMPFS_OPTIONS: &CStr = c"size=4m,nr_inodes=4096,mode=755";

/// A file with nothing in it that nobody may open, while the root is furnished.
const NOTHING: &CStr = c".nothing";
/// A file on its way to its place, while the root is furnished.
const TEXT: &CStr = c".text";

/// Nothing can be done with it but to look.
const INERT: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC;

/// What the kernel tells in `/proc` beside processes, and may tell in a jail: the same as `uname` and `sysinfo` do.
const TOLD: [&str; 4] = ["filesystems", "loadavg", "uptime", "version"];

impl Piece {
    /// The host's part as a mount without a place, with what it may be used for already settled.
    pub(super) fn detach(&self) -> Result<Option<OwnedFd>, Error> {
        let Kind::Host { source, attributes, .. } = &self.kind else { return Ok(None) };
        copy(source, *attributes).map(Some).map_err(failed("taking a file or folder of the host"))
    }

    /// What landlock should allow: the same as the mount does.
    pub(super) fn permission(&self) -> Option<(PathBuf, Use)> {
        self.used.map(|used| (Path::new("/").join(&self.target), used))
    }

    fn place(&self, tree: Option<&OwnedFd>) -> io::Result<()> {
        if self.make {
            self.make_point()?;
        }
        let mount = |tree: &OwnedFd| attach(tree.as_fd(), &point(&self.point)?);
        match (&self.kind, tree) {
            (Kind::Host { .. }, Some(tree)) => mount(tree),
            (Kind::Host { .. }, None) => Err(io::Error::from_raw_os_error(libc::EBADF)),
            (Kind::Scratch { size, files, attributes }, _) => {
                mount(&make(c"tmpfs", &[(c"size", size), (c"nr_inodes", files), (c"mode", c"0777")], *attributes)?)
            }
            (Kind::Proc { memory_bytes }, _) => {
                mount(&processes(false).map_err(io::Error::other)?)?;
                quieten(&self.target, *memory_bytes)
            }
            (Kind::Hidden { folder: true }, _) => mount(&nothing()?),
            (Kind::Hidden { folder: false }, _) => mount(&copy(NOTHING, INERT)?),
            (Kind::Link { .. } | Kind::Text { .. }, _) => Ok(()),
        }
    }

    fn make_point(&self) -> io::Result<()> {
        let folder = match &self.kind {
            Kind::Host { folder, .. } | Kind::Hidden { folder } => *folder,
            Kind::Scratch { .. } | Kind::Proc { .. } => true,
            Kind::Link { .. } | Kind::Text { .. } => false,
        };
        let above = if folder { Some(self.target.as_path()) } else { self.target.parent() };
        if let Some(above) = above.filter(|path| !path.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o755).create(above)?;
        }
        match &self.kind {
            Kind::Link { to } => symlink(to, &self.target),
            Kind::Text { bytes } => write(&self.target, 0o444, bytes),
            _ if folder => Ok(()),
            _ => write(&self.target, 0o444, b""),
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
    let nothing = Path::new(".nothing");
    write(nothing, 0, b"").map_err(failed("making an empty file"))?;
    for (piece, tree) in pieces.iter().zip(trees) {
        let target = &piece.target;
        piece.place(tree.as_ref()).map_err(|source| Error::Place { target: target.clone(), source })?;
    }
    fs::remove_file(nothing).map_err(failed("removing the empty file"))?;
    make_root()?;
    restrict(libc::AT_FDCWD, c"/", 0, libc::MOUNT_ATTR_RDONLY).map_err(failed("making the root read-only"))
}

/// The processes of this pid namespace, alone or with all that the kernel tells beside them.
pub(super) fn processes(alone: bool) -> Result<OwnedFd, Error> {
    let subset: &[(&CStr, &CStr)] = if alone { &[(c"subset", c"pid")] } else { &[] };
    make(c"proc", subset, INERT).map_err(failed("mounting the list of processes"))
}

fn nothing() -> io::Result<OwnedFd> {
    make(c"tmpfs", &[(c"size", c"4096"), (c"nr_inodes", c"1"), (c"mode", c"0555")], INERT)
}

/// Covers whatever is not about processes: with what the jail has, or with nothing.
fn quieten(proc: &Path, memory_bytes: u64) -> io::Result<()> {
    for entry in fs::read_dir(proc)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        let process = name.as_bytes().iter().all(u8::is_ascii_digit);
        // Links lead to the processes' own folders.
        if process || kind.is_symlink() || TOLD.iter().any(|told| name == *told) {
            continue;
        }
        let place = CString::new(proc.join(&name).as_os_str().as_bytes())?;
        match name.to_str() {
            _ if kind.is_dir() => attach(nothing()?.as_fd(), &point(&place)?)?,
            Some("cpuinfo") => say(&processors(), &place)?,
            Some("meminfo") => say(&memory(memory_bytes), &place)?,
            Some("stat") => say(&statistics(), &place)?,
            _ => attach(copy(NOTHING, INERT)?.as_fd(), &point(&place)?)?,
        }
    }
    Ok(())
}

/// A file with these words, over another one.
fn say(words: &str, place: &CStr) -> io::Result<()> {
    let path = Path::new(".text");
    write(path, 0o444, words.as_bytes())?;
    attach(copy(TEXT, INERT)?.as_fd(), &point(place)?)?;
    fs::remove_file(path)
}

/// As many as there are to run on, of no make.
fn processors() -> String {
    let one = |number| format!("processor\t: {number}\nmodel name\t: processor\ncpu MHz\t\t: 1000.000\n\n");
    (0..count()).map(one).collect()
}

fn memory(bytes: u64) -> String {
    let kib = bytes >> 10;
    format!(
        "MemTotal: {kib} kB\nMemFree: {kib} kB\nMemAvailable: {kib} kB\nBuffers: 0 kB\nCached: 0 kB\n\
         SwapCached: 0 kB\nActive: 0 kB\nInactive: 0 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\nShmem: 0 kB\n\
         Slab: 0 kB\nSReclaimable: 0 kB\n"
    )
}

fn statistics() -> String {
    let none = "0 0 0 0 0 0 0 0 0 0\n";
    let each: String = (0..count()).map(|number| format!("cpu{number} {none}")).collect();
    // Who knows how long the machine is up knows when it started, and programs date processes from there.
    let now = process::clock(libc::CLOCK_REALTIME).unwrap_or_default();
    let started = now.saturating_sub(process::clock(libc::CLOCK_BOOTTIME).unwrap_or_default()).as_secs();
    format!("cpu  {none}{each}intr 0\nctxt 0\nbtime {started}\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n")
}

fn count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn write(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?.write_all(bytes)
}
