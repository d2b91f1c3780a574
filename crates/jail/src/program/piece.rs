//! What is mounted in a jail, checked and made ready before the fork, because afterwards little should be allocated.

use std::ffi::{CStr, CString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::{Content, Mount, SpawnError};
use crate::landlock::Use;

/// The devices that a program may expect anywhere.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// Where every program looks for its own descriptors.
const DESCRIPTORS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// Room in `/dev/shm`, which is for semaphores and small shared memory.
const SHARED_MEMORY: (u64, u64) = (8 << 20, 256);

/// The largest file that is made for a jail.
const TEXT_MAX: usize = 1 << 20;

/// One thing to place.
pub(super) struct Piece {
    /// Relative to the new root.
    pub(super) target: PathBuf,
    pub(super) point: CString,
    /// Whether its place has to be made, which happens in our own folders only.
    pub(super) make: bool,
    pub(super) kind: Kind,
    /// What landlock allows there, beside reading what the root shows.
    pub(super) used: Option<Use>,
}

pub(super) enum Kind {
    Host { source: CString, folder: bool, attributes: u64 },
    Scratch { size: CString, files: CString, attributes: u64 },
    Proc { memory_bytes: u64 },
    Link { to: PathBuf },
    Text { bytes: Vec<u8> },
    Hidden { folder: bool },
}

const OURS: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

/// Checks the mounts and makes them ready. A program in there believes that the machine has `memory_bytes`.
pub(super) fn pieces(mounts: &[Mount], memory_bytes: u64) -> Result<Vec<Piece>, SpawnError> {
    let mut pieces = Vec::with_capacity(mounts.len());
    for (index, mount) in mounts.iter().enumerate() {
        let plan = Plan { mount, make: place(mounts, index)? };
        plan.pieces(memory_bytes, &mut pieces)?;
    }
    Ok(pieces)
}

/// Whether the place of a mount has to be made; or why it has none.
fn place(mounts: &[Mount], index: usize) -> Result<bool, SpawnError> {
    let mount = &mounts[index];
    let wrong = |why| Err(SpawnError::Mount { target: mount.target.clone(), why });
    let mut parts = mount.target.components();
    let rooted = parts.next() == Some(Component::RootDir);
    if !rooted || mount.target == Path::new("/") || !parts.all(|part| matches!(part, Component::Normal(_))) {
        return wrong("the path is not absolute and plain");
    }
    if mounts[index + 1..].iter().any(|later| mount.target.starts_with(&later.target)) {
        return wrong("something else is mounted there later");
    }
    let around = mounts[..index].iter().filter(|earlier| mount.target.starts_with(&earlier.target));
    let Some(around) = around.max_by_key(|earlier| earlier.target.components().count()) else {
        return match mount.content {
            Content::Hidden => wrong("there is nothing to hide"),
            _ => Ok(true),
        };
    };
    let inner = mount.target.strip_prefix(&around.target).unwrap_or(Path::new(""));
    match (&around.content, &mount.content) {
        (Content::Scratch { .. }, Content::Hidden) => wrong("there is nothing to hide"),
        (Content::Scratch { .. }, _) if !inner.as_os_str().is_empty() => Ok(true),
        (Content::Host { source, .. } | Content::Shared { source, .. }, content) => {
            let found = source.canonicalize().and_then(|source| fs::symlink_metadata(source.join(inner)));
            let fits = match (content, found) {
                (Content::Link { .. } | Content::Text { .. }, _) | (_, Err(_)) => false,
                (Content::Host { source, .. } | Content::Shared { source, .. }, Ok(found)) => {
                    found.is_dir() == source.is_dir()
                }
                (Content::Hidden, Ok(found)) => !found.is_symlink(),
                (_, Ok(found)) => found.is_dir(),
            };
            if fits { Ok(false) } else { wrong("something else is mounted there, and has no place for it") }
        }
        _ => wrong("something else is mounted there"),
    }
}

struct Plan<'a> {
    mount: &'a Mount,
    make: bool,
}

impl Plan<'_> {
    fn pieces(&self, memory_bytes: u64, pieces: &mut Vec<Piece>) -> Result<(), SpawnError> {
        let (kind, used) = match &self.mount.content {
            Content::Host { source, executable } => {
                let used = if *executable { Use::Run } else { Use::Read };
                (self.host(source, OURS | libc::MOUNT_ATTR_RDONLY, *executable)?, Some(used))
            }
            Content::Shared { source, executable } => {
                (self.host(source, OURS, *executable)?, Some(writing(*executable)))
            }
            Content::Scratch { bytes, files, executable } => {
                (scratch(*bytes, *files, *executable), Some(writing(*executable)))
            }
            Content::Proc => (Kind::Proc { memory_bytes }, None),
            Content::Devices => return self.devices(pieces),
            Content::Link { to } => (Kind::Link { to: to.clone() }, None),
            Content::Text { bytes } if bytes.len() > TEXT_MAX => return Err(self.wrong("the text is too long")),
            Content::Text { bytes } => (Kind::Text { bytes: bytes.clone() }, None),
            Content::Hidden => (Kind::Hidden { folder: self.covers_a_folder(pieces) }, None),
        };
        pieces.push(self.piece(&self.mount.target, kind, used)?);
        Ok(())
    }

    fn piece(&self, target: &Path, kind: Kind, used: Option<Use>) -> Result<Piece, SpawnError> {
        let target = target.strip_prefix("/").map_err(|_| self.wrong("the path is not absolute"))?.to_owned();
        Ok(Piece { point: self.text(&target)?, target, make: self.make, kind, used })
    }

    fn host(&self, source: &Path, attributes: u64, executable: bool) -> Result<Kind, SpawnError> {
        // What is opened later is what was looked at here, unless the host's own folders change meanwhile.
        let source = source.canonicalize().map_err(|_| self.wrong("there is no such file or folder on the host"))?;
        let folder = match source.metadata() {
            Ok(found) if found.is_dir() => true,
            Ok(found) if found.is_file() => false,
            _ => return Err(self.wrong("it is neither a file nor a folder")),
        };
        let attributes = if executable { attributes } else { attributes | libc::MOUNT_ATTR_NOEXEC };
        Ok(Kind::Host { source: self.text(&source)?, folder, attributes })
    }

    fn devices(&self, pieces: &mut Vec<Piece>) -> Result<(), SpawnError> {
        let dev = &self.mount.target;
        for name in DEVICES {
            let source = self.text(&Path::new("/dev").join(name))?;
            // A read-only mount does not keep anybody from writing to a device.
            let attributes = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC | libc::MOUNT_ATTR_RDONLY;
            let kind = Kind::Host { source, folder: false, attributes };
            pieces.push(self.piece(&dev.join(name), kind, Some(Use::Device))?);
        }
        for (name, to) in DESCRIPTORS {
            pieces.push(self.piece(&dev.join(name), Kind::Link { to: to.into() }, None)?);
        }
        let (bytes, files) = SHARED_MEMORY;
        pieces.push(self.piece(&dev.join("shm"), scratch(bytes, files, false), Some(Use::Write))?);
        Ok(())
    }

    /// As [`place`] found it.
    fn covers_a_folder(&self, pieces: &[Piece]) -> bool {
        let target = self.mount.target.strip_prefix("/").unwrap_or(&self.mount.target);
        let around = pieces.iter().filter(|piece| target.starts_with(&piece.target));
        around.max_by_key(|piece| piece.target.components().count()).is_some_and(|around| match &around.kind {
            Kind::Host { source, .. } => {
                let source = Path::new(std::ffi::OsStr::from_bytes(source.as_bytes()));
                target.strip_prefix(&around.target).is_ok_and(|inner| source.join(inner).is_dir())
            }
            _ => false,
        })
    }

    fn text(&self, path: &Path) -> Result<CString, SpawnError> {
        CString::new(path.as_os_str().as_bytes()).map_err(|_| self.wrong("a path has a zero byte"))
    }

    fn wrong(&self, why: &'static str) -> SpawnError {
        SpawnError::Mount { target: self.mount.target.clone(), why }
    }
}

fn scratch(bytes: u64, files: u64, executable: bool) -> Kind {
    let attributes = if executable { OURS } else { OURS | libc::MOUNT_ATTR_NOEXEC };
    // To the kernel zero means "no bound".
    Kind::Scratch { size: decimal(bytes.max(1)), files: decimal(files.max(1)), attributes }
}

fn decimal(number: u64) -> CString {
    let mut digits = number.to_string().into_bytes();
    digits.push(0);
    // A number has exactly one zero byte: the one above.
    CStr::from_bytes_with_nul(&digits).map(CStr::to_owned).unwrap_or_default()
}

fn writing(executable: bool) -> Use {
    if executable { Use::WriteAndRun } else { Use::Write }
}
