//! Whether a layer on the disk is what was uploaded.

use super::FILES;
use super::receive::mode;
use crate::RegistryError;
use bundle::{Digest, LAYER, Layer, LayerEntry, LinkTarget, visible};
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

const PIECE: usize = 128 << 10;

/// What is wrong with a layer, or why nobody can tell.
enum Fault {
    Damage(String),
    Disk(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Disk(error)
    }
}

fn damage<T>(name: &str, what: &str) -> Result<T, Fault> {
    Err(Fault::Damage(format!("`{}` {what}", visible(name))))
}

/// Reads all of it: every file has its bytes, its size and its mode, every link its target, and nothing else is there.
pub(super) fn check(place: &Path, digest: &Digest) -> Result<(), RegistryError> {
    whole(place, digest).map_err(|fault| match fault {
        Fault::Damage(what) => RegistryError::corrupt(format!("the layer `{digest}` is not what was uploaded: {what}")),
        Fault::Disk(error) if error.kind() == io::ErrorKind::NotFound => {
            let what = format!("the layer `{digest}` is not all there");
            RegistryError::Corrupt { what, cause: Some(error.into()) }
        }
        Fault::Disk(error) => RegistryError::internal("a layer could not be read", error),
    })
}

fn whole(place: &Path, digest: &Digest) -> Result<(), Fault> {
    let (index, mut bytes) = (place.join(LAYER), Vec::new());
    if fs::symlink_metadata(&index)?.is_file() {
        open(&index)?.take(Layer::LARGEST_INDEX as u64).read_to_end(&mut bytes)?;
    }
    if bundle::File::of(&bytes).sha256 != *digest {
        return damage(LAYER, "is another index");
    }
    let layer = Layer::parse(&bytes).map_err(|error| Fault::Damage(error.to_string()))?;
    let mut check = Check { layer: &layer, folders: layer.folders(), seen: 0, buffer: vec![0; PIECE] };
    check.folder(&place.join(FILES), "")?;
    match layer.entries().len() - check.seen {
        0 => Ok(()),
        missing => Err(Fault::Damage(format!("{missing} of its files are missing"))),
    }
}

struct Check<'a> {
    layer: &'a Layer,
    folders: BTreeSet<&'a str>,
    /// Entries that were found so far.
    seen: usize,
    buffer: Vec<u8>,
}

impl Check<'_> {
    /// Goes only into folders that the index has, so only so deep.
    fn folder(&mut self, path: &Path, name: &str) -> Result<(), Fault> {
        let found = fs::symlink_metadata(path)?;
        if !found.is_dir() || bits(&found) != 0o755 {
            return damage(name, "is no folder as it was, or others may use it otherwise");
        }
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let (path, part) = (entry.path(), entry.file_name());
            let Some(part) = part.to_str() else { return damage(&part.to_string_lossy(), "does not belong there") };
            let name = if name.is_empty() { part.to_owned() } else { format!("{name}/{part}") };
            match self.layer.get(&name) {
                Some(LayerEntry::File { sha256, size, executable }) => {
                    self.file(&path, &name, sha256, *size, mode(*executable))?;
                }
                Some(LayerEntry::Link(target)) => link(&path, &name, target)?,
                None if self.folders.contains(name.as_str()) => {
                    self.folder(&path, &name)?;
                    continue;
                }
                None => return damage(&name, "does not belong there"),
            }
            self.seen += 1;
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, name: &str, sha256: &Digest, size: u64, mode: u32) -> Result<(), Fault> {
        let fine = |found: &Metadata| found.is_file() && found.len() == size && bits(found) == mode;
        // Asked before it is opened, because opening a device may do something.
        if !fine(&fs::symlink_metadata(path)?) {
            return damage(name, "is another kind of file, has another size or another mode");
        }
        let mut file = open(path)?;
        let (mut hash, mut left) = (Sha256::new(), size);
        while left > 0 {
            match file.read(&mut self.buffer)? {
                0 => break,
                count => {
                    hash.update(&self.buffer[..count]);
                    left = left.saturating_sub(count as u64);
                }
            }
        }
        let same = Digest::new(hash.finalize().into()) == *sha256;
        if same && fine(&file.metadata()?) { Ok(()) } else { damage(name, "has other bytes") }
    }
}

fn link(path: &Path, name: &str, target: &LinkTarget) -> Result<(), Fault> {
    let found = fs::symlink_metadata(path)?;
    let same = found.is_symlink() && fs::read_link(path)?.as_os_str() == target.as_str();
    if same { Ok(()) } else { damage(name, "is another link") }
}

fn bits(found: &Metadata) -> u32 {
    found.permissions().mode() & 0o7777
}

/// Neither follows a link nor waits for whoever writes into a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)
}
