//! Layers: the files of programs. Each lies in the data directory as plain files, under its tenant's uid and its own digest, and
//! is verified whenever somebody asks for it.
//!
//! A layer is there when the database has its row; it is put on the disk before and taken off after. A host that dies in between
//! leaves folders without rows, which the next one removes.

mod check;
mod receive;
pub(crate) mod rows;

use crate::database::Database;
use crate::files::{self, locked};
use crate::{ReceivedLayer, Registry, RegistryError};
use bundle::{Digest, Layer};
use rows::Uid;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// What all layers of one tenant may take of the disk.
pub(crate) const MOST_BYTES: u64 = 8 << 30;

/// In the folder of a layer, beside its index: its files.
const FILES: &str = "files";
/// Beside the tenants' folders: what is not whole yet, and what is being removed.
const STAGING: &str = "staging";

pub(crate) struct Layers {
    dir: PathBuf,
    most: u64,
    /// Held while folders and rows are brought in line, so that nobody removes what somebody else has just put there.
    turn: Mutex<()>,
    /// What uploads that are under way will take.
    receiving: Mutex<HashMap<Uid, u64>>,
}

impl Registry {
    /// Takes a layer in, as [`Layer`] says it is uploaded. When it returns, all of it is on the disk; if it fails, nothing is.
    /// One that is there already, and whole, is answered without reading any of the upload; one that is damaged is replaced.
    pub fn receive_layer(
        &self,
        tenant: &str,
        digest: &Digest,
        mut reader: impl Read,
    ) -> Result<ReceivedLayer, RegistryError> {
        let (layers, database) = (self.layers(), self.database());
        let uid = database.read(|connection| rows::owner(connection, tenant))?;
        let found = layers.find(&uid, digest)?;
        if found == Found::Whole
            && let Some(size) = database.write(|transaction| rows::touch(transaction, tenant, digest), |size| size)?
        {
            return Ok(ReceivedLayer { digest: *digest, size, new: false });
        }
        let layer = receive::index(&mut reader, digest)?;
        database.write(|transaction| rows::drop_unused(transaction, Some(tenant)), |()| ())?;
        layers.tidy(database, &uid);
        self.disk().check_reserve(layer.disk())?;
        let _reserved = layers.reserve(database, tenant, uid, layer.disk())?;
        let coming = locked(&layers.receiving).get(&uid).copied().unwrap_or(0);
        let directory = self.directory();
        database.read(|connection| self.disk().check_tenant(connection, &directory, tenant, coming))?;
        let staging = layers.stage()?;
        receive::files(&staging.0, &layer, &mut reader)?;
        let new = layers.put(database, tenant, &uid, &layer, staging, found)?;
        Ok(ReceivedLayer { digest: *digest, size: layer.size(), new })
    }

    /// Bytes of all files of a layer, if it is there and whole: whoever asks wants to know whether to upload it.
    pub fn layer_size(&self, tenant: &str, digest: &Digest) -> Result<Option<u64>, RegistryError> {
        let read = |connection: &_| Ok((rows::owner(connection, tenant)?, rows::size(connection, tenant, digest)?));
        let (uid, size) = self.database().read(read)?;
        match size {
            Some(size) => Ok((self.layers().find(&uid, digest)? == Found::Whole).then_some(size)),
            None => Ok(None),
        }
    }

    /// The folder of a layer. Each time, all of it is verified, which takes as long as reading it does.
    pub fn layer(&self, tenant: &str, digest: &Digest) -> Result<PathBuf, RegistryError> {
        let find = || {
            let read = |connection: &_| Ok((rows::owner(connection, tenant)?, rows::size(connection, tenant, digest)?));
            let (uid, size) = self.database().read(read)?;
            size.map(|_| uid).ok_or_else(|| RegistryError::not_found("layer", &digest.to_string()))
        };
        let place = self.layers().place(&find()?, digest);
        // One that was forgotten meanwhile is not damaged, but gone.
        check::check(&place, digest).or_else(|error| find().and(Err(error)))?;
        Ok(place.join(FILES))
    }
}

impl Layers {
    /// What is not whole, and what a killed host did not get round to removing, goes away.
    pub(crate) fn open(dir: &Path, database: &Database, most: u64) -> io::Result<Layers> {
        let dir = dir.join("layers");
        // What cannot be removed does no harm.
        let _ = fs::remove_dir_all(dir.join(STAGING));
        files::create_dir(&dir.join(STAGING))?;
        let layers = Layers { dir, most, turn: Mutex::default(), receiving: Mutex::default() };
        let _ = database.write(|transaction| rows::drop_unused(transaction, None), |()| ());
        for home in fs::read_dir(&layers.dir)?.flatten() {
            let mut uid = Uid::default();
            if hex::decode_to_slice(home.file_name().as_encoded_bytes(), &mut uid).is_ok() {
                layers.tidy(database, &uid);
            }
        }
        Ok(layers)
    }

    /// Removes the folders of a tenant's layers that the database does not have any more, or never had.
    pub(crate) fn tidy(&self, database: &Database, uid: &Uid) {
        let home = self.home(uid);
        let turn = locked(&self.turn);
        let (Ok(known), Ok(found)) = (database.read(|connection| rows::digests(connection, uid)), fs::read_dir(&home))
        else {
            return;
        };
        let unknown =
            found.flatten().filter(|entry| !entry.file_name().to_str().is_some_and(|name| known.contains(name)));
        let gone: Vec<_> = unknown.filter_map(|entry| self.take_away(&entry.path()).ok()).collect();
        let _ = fs::remove_dir(&home); // if it is empty
        // Others need not wait until every file is removed.
        drop(turn);
        drop(gone);
    }

    fn home(&self, uid: &Uid) -> PathBuf {
        self.dir.join(hex::encode(uid))
    }

    fn place(&self, uid: &Uid, digest: &Digest) -> PathBuf {
        self.home(uid).join(digest.to_string())
    }

    /// Reads all of it.
    fn find(&self, uid: &Uid, digest: &Digest) -> Result<Found, RegistryError> {
        let place = self.place(uid, digest);
        if !place.is_dir() {
            return Ok(Found::Nothing);
        }
        match check::check(&place, digest) {
            Ok(()) => Ok(Found::Whole),
            Err(RegistryError::Corrupt { .. }) => Ok(Found::Damaged),
            Err(error) => Err(error),
        }
    }

    /// A name that nobody has.
    fn staging(&self) -> Result<PathBuf, RegistryError> {
        let mut name = [0; 16];
        getrandom::fill(&mut name)?;
        Ok(self.dir.join(STAGING).join(hex::encode(name)))
    }

    /// An empty folder for an upload.
    fn stage(&self) -> Result<Staging, RegistryError> {
        let path = self.staging()?;
        files::create_dir(&path)?;
        Ok(Staging(path))
    }

    /// Moves a layer out of the way at once; it is removed with the result.
    fn take_away(&self, place: &Path) -> Result<Staging, RegistryError> {
        let path = self.staging()?;
        fs::rename(place, &path)?;
        Ok(Staging(path))
    }

    /// Makes sure that there will be room, however many uploads come at once.
    fn reserve(&self, database: &Database, tenant: &str, uid: Uid, disk: u64) -> Result<Reserved<'_>, RegistryError> {
        let mut receiving = locked(&self.receiving);
        let stored = database.read(|connection| rows::disk(connection, tenant))?;
        let coming = receiving.get(&uid).copied().unwrap_or(0);
        let needed = stored.saturating_add(coming).saturating_add(disk);
        if needed > self.most {
            let mib = |bytes: u64| bytes.div_ceil(1 << 20);
            return Err(RegistryError::Conflict {
                what: format!(
                    "with this one the tenant's layers would take {} MiB of the disk, {} are allowed",
                    mib(needed),
                    mib(self.most)
                ),
                hint: Some("delete servers that nobody needs any more; their layers are gone an hour later".to_owned()),
            });
        }
        receiving.insert(uid, coming + disk);
        Ok(Reserved { layers: self, uid, disk })
    }

    /// Makes a staged layer one of the tenant's, in the place of one that was found damaged. False if somebody else was
    /// quicker with the same one.
    fn put(
        &self,
        database: &Database,
        tenant: &str,
        uid: &Uid,
        layer: &Layer,
        staging: Staging,
        found: Found,
    ) -> Result<bool, RegistryError> {
        let turn = locked(&self.turn);
        let place = self.place(uid, &layer.digest());
        let mut damaged = None;
        let put = database.write(
            |transaction| {
                if rows::owner(transaction, tenant)? != *uid {
                    return Err(RegistryError::not_found("tenant", tenant)); // that was another of this name
                }
                if found == Found::Damaged && place.is_dir() {
                    damaged = Some(self.take_away(&place)?);
                }
                let known = rows::size(transaction, tenant, &layer.digest())?.is_some() && place.is_dir();
                if !known {
                    files::create_dir(&self.home(uid))?;
                    fs::rename(&staging.0, &place)?;
                    files::sync_dir(&self.home(uid))?;
                    files::sync_dir(&self.dir)?;
                }
                rows::put(transaction, tenant, layer)?;
                Ok(!known)
            },
            |new| new,
        );
        drop(turn);
        drop(damaged);
        if put.is_err() {
            self.tidy(database, uid);
        }
        put
    }
}

/// What there is of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    Damaged,
    Whole,
}

/// A folder that nobody needs: removed when it is dropped, unless it was moved elsewhere.
struct Staging(PathBuf);

impl Drop for Staging {
    fn drop(&mut self) {
        // What cannot be removed now is when the host starts again.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Room for one upload.
struct Reserved<'a> {
    layers: &'a Layers,
    uid: Uid,
    disk: u64,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut receiving = locked(&self.layers.receiving);
        if let Some(bytes) = receiving.get_mut(&self.uid) {
            *bytes = bytes.saturating_sub(self.disk);
            if *bytes == 0 {
                receiving.remove(&self.uid);
            }
        }
    }
}
