//! A folder as the files of a deployment.

use crate::error::Error;
use crate::stage::Kind;
use crate::walk::{Most, resolve, walk};
use bundle::{Digest, Layer, LayerEntry, LayerPath, LinkTarget};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Mode, OFlags, open};
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Names what of a folder is left out, as a `.gitignore` does. It is left out itself.
pub const IGNORE: &str = ".bulkheadignore";
const IGNORE_BYTES: u64 = 256 << 10;
/// What is the author's and not the program's: anywhere, and beside the manifest.
const GIT: &str = ".git";
const OWN: [&str; 3] = [IGNORE, "bulkhead.lock", "bulkhead.lock.new"];

/// Files and folders; a layer has its own bounds on either.
const MOST: Most = Most { entries: 120_000, bytes: 1 << 30, depth: 64 };
const BUFFER: usize = 64 << 10;

/// What of a folder is uploaded: all but `.git`, the lock of the last deploy and what [`IGNORE`] names. Refuses what cannot be part of a deployment,
/// by its name.
pub fn pack(folder: &Path) -> Result<Layer, Error> {
    let ignored = ignored(folder)?;
    let (mut files, mut entries) = (Vec::new(), Vec::new());
    walk(folder, &MOST, &mut |path, found| {
        let kind = Kind::of(found);
        let own = path.file_name().is_some_and(|name| name == GIT) || OWN.iter().any(|own| path == Path::new(own));
        if own || ignored.matched(path, matches!(kind, Kind::Folder)).is_ignore() {
            return Ok(false);
        }
        match kind {
            Kind::Folder => {}
            // Not read before all of them are counted.
            Kind::File => files.push((name(path)?, found.len())),
            Kind::Link => entries.push((name(path)?, LayerEntry::Link(link(folder, path)?))),
            Kind::Other(why) => return Err(Error::content(path, why)),
        }
        Ok(true)
    })?;
    for (path, size) in files {
        let (sha256, executable) = copy(folder, &path, size, &mut io::sink())?;
        entries.push((path, LayerEntry::File { sha256, size, executable }));
    }
    Layer::new(entries).map_err(|source| Error::Layer { path: folder.to_owned(), source })
}

/// Writes what is uploaded of a packed folder. Fails when the folder is not as it was, and then nobody takes what was
/// written.
pub fn write_layer(folder: &Path, layer: &Layer, mut out: impl Write) -> Result<(), Error> {
    out.write_all(&layer.head()).map_err(Error::Write)?;
    for (path, entry) in layer.entries() {
        if let LayerEntry::File { sha256, size, executable } = entry
            && copy(folder, path, *size, &mut out)? != (*sha256, *executable)
        {
            return Err(Error::Changed(folder.join(path.as_str())));
        }
    }
    out.flush().map_err(Error::Write)
}

fn ignored(folder: &Path) -> Result<Gitignore, Error> {
    let path = folder.join(IGNORE);
    let wrong = |why: String| Error::content(IGNORE, why);
    let mut builder = GitignoreBuilder::new(folder);
    if path.symlink_metadata().is_ok() {
        let mut text = String::new();
        let read = file(&path)?.take(IGNORE_BYTES + 1).read_to_string(&mut text);
        if read.map_err(Error::path(&path))? as u64 > IGNORE_BYTES {
            return Err(wrong(format!("it is longer than {IGNORE_BYTES} bytes")));
        }
        for line in text.lines() {
            builder.add_line(None, line).map_err(|error| wrong(error.to_string()))?;
        }
    }
    builder.build().map_err(|error| wrong(error.to_string()))
}

fn name(path: &Path) -> Result<LayerPath, Error> {
    let text = path.to_str().ok_or_else(|| Error::content(path, "its name is no text"))?;
    text.parse().map_err(|wrong: bundle::Wrong| Error::content(path, wrong.to_string()))
}

/// As it is, or the shortest way to the same place if it wanders.
fn link(folder: &Path, path: &Path) -> Result<LinkTarget, Error> {
    let target = fs::read_link(folder.join(path)).map_err(Error::path(folder.join(path)))?;
    let leads_out = || Error::content(path, "it leads out of the folder");
    let place = resolve(folder, path, &target).ok_or_else(leads_out)?;
    if let Some(plain) = target.to_str().and_then(|text| text.parse().ok()) {
        return Ok(plain);
    }
    let from = path.parent().unwrap_or(Path::new(""));
    let shared = from.iter().zip(place.iter()).take_while(|(a, b)| a == b).count();
    let up = from.iter().skip(shared).map(|_| "..".as_ref());
    let short: PathBuf = up.chain(place.iter().skip(shared)).collect();
    let short = short.to_str().ok_or_else(|| Error::content(path, "it leads to what is no text"))?;
    short.parse().map_err(|wrong: bundle::Wrong| Error::content(path, wrong.to_string()))
}

/// A plain file, and nothing that has taken its place.
fn file(path: &Path) -> Result<File, Error> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = open(path, flags, Mode::empty()).map_err(io::Error::from).map_err(Error::path(path))?;
    let file = File::from(opened);
    let found = file.metadata().map_err(Error::path(path))?;
    if found.is_file() { Ok(file) } else { Err(Error::Changed(path.to_owned())) }
}

/// Passes the bytes of a file on; gives their digest, and whether it is a program.
fn copy(folder: &Path, path: &LayerPath, size: u64, out: &mut impl Write) -> Result<(Digest, bool), Error> {
    let whole = folder.join(path.as_str());
    let mut from = file(&whole)?;
    let executable = from.metadata().map_err(Error::path(&whole))?.permissions().mode() & 0o100 != 0;
    let (mut hash, mut left) = (Sha256::new(), size);
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::path(&whole)(error)),
        };
        // Never more than was announced: what follows would be taken for the next file.
        left = left.checked_sub(count as u64).ok_or_else(|| Error::Changed(whole.clone()))?;
        if count == 0 {
            break;
        }
        hash.update(&buffer[..count]);
        out.write_all(&buffer[..count]).map_err(Error::Write)?;
    }
    if left > 0 {
        return Err(Error::Changed(whole));
    }
    Ok((Digest::new(hash.finalize().into()), executable))
}

#[cfg(test)]
mod tests;
