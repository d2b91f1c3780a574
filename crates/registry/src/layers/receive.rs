//! An upload: the index, then the bytes of every file.

use super::FILES;
use crate::RegistryError;
use bundle::{Digest, File as Known, LAYER, Layer, LayerEntry, visible};
use sha2::{Digest as _, Sha256};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

/// Bytes that are read at a time.
const PIECE: u64 = 128 << 10;

/// The index that comes first. It has to be the one with this digest.
pub(super) fn index(reader: &mut impl Read, digest: &Digest) -> Result<Layer, RegistryError> {
    let mut length = [0; 4];
    reader.read_exact(&mut length).map_err(broken_off)?;
    let length = u64::from(u32::from_be_bytes(length));
    let most = Layer::LARGEST_INDEX as u64;
    if length > most {
        return Err(refused(format!(
            "the index of a layer has at most {most} bytes, this one is said to have {length}"
        )));
    }
    let mut bytes = Vec::new();
    reader.take(length).read_to_end(&mut bytes).map_err(broken_off)?;
    if (bytes.len() as u64) < length {
        return Err(broken_off(io::ErrorKind::UnexpectedEof.into()));
    }
    if Known::of(&bytes).sha256 != *digest {
        return Err(refused("the index is not the one with this digest".to_owned()));
    }
    Layer::parse(&bytes).map_err(|error| refused(format!("the layer is refused: {error}")))
}

/// Writes a layer into an empty folder that nobody else knows, and has it on the disk when it returns. Links come last: until
/// then there is none that a file could be written through.
pub(super) fn files(folder: &Path, layer: &Layer, reader: &mut impl Read) -> Result<(), RegistryError> {
    let mut index = new_file(&folder.join(LAYER))?;
    index.write_all(layer.bytes())?;
    let root = folder.join(FILES);
    make_folder(&root)?;
    for folder in layer.folders() {
        make_folder(&root.join(folder))?;
    }
    let mut buffer = vec![0; PIECE as usize];
    for (path, entry) in layer.entries() {
        let LayerEntry::File { sha256, size, executable } = entry else { continue };
        let mut file = new_file(&root.join(path.as_str()))?;
        if copy(reader, &mut file, *size, &mut buffer)? != *sha256 {
            return Err(refused(format!("the file `{}` is not the one of the index", visible(path.as_str()))));
        }
        // Whatever the umask says.
        file.set_permissions(Permissions::from_mode(mode(*executable)))?;
    }
    if reader.take(1).read_to_end(&mut Vec::new()).map_err(broken_off)? > 0 {
        return Err(refused("the upload has more than the files of the index".to_owned()));
    }
    for (path, entry) in layer.entries() {
        if let LayerEntry::Link(target) = entry {
            symlink(target.as_str(), root.join(path.as_str()))?;
        }
    }
    // Once for all files: one by one it would take minutes.
    rustix::fs::syncfs(&index).map_err(|error| RegistryError::from(io::Error::from(error)))
}

pub(super) fn mode(executable: bool) -> u32 {
    if executable { 0o755 } else { 0o644 }
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o755))
}

/// Copies exactly so many bytes, and says what they were.
fn copy(reader: &mut impl Read, file: &mut File, size: u64, buffer: &mut [u8]) -> Result<Digest, RegistryError> {
    let (mut hash, mut left) = (Sha256::new(), size);
    while left > 0 {
        let piece = left.min(PIECE) as usize;
        let count = match reader.read(&mut buffer[..piece]) {
            Ok(0) => return Err(broken_off(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(broken_off(error)),
        };
        hash.update(&buffer[..count]);
        file.write_all(&buffer[..count])?;
        left -= count as u64;
    }
    Ok(Digest::new(hash.finalize().into()))
}

fn refused(what: String) -> RegistryError {
    RegistryError::BadValue { what }
}

/// It is the sender who failed, not the disk.
fn broken_off(error: io::Error) -> RegistryError {
    refused(format!("the upload broke off: {}", error.kind()))
}
