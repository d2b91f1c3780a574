//! Deployments as they lie on the disk. Nothing of one is used before all of it was verified.

use crate::deployments::{deployment_id, sealed, tenant_uid};
use crate::{Bundle, Registry, RegistryError, TokenHash};
use bundle::{Contents, KeyId, Layer, Lock, MacKey, Seal, Surface};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension};
use std::collections::BTreeMap;

impl Registry {
    /// The id that a deployment with this lock has, or would have.
    pub fn deployment_id(&self, tenant: &str, lock: &Lock) -> Result<String, RegistryError> {
        self.database().read(|connection| Ok(deployment_id(&tenant_uid(connection, tenant)?, lock)))
    }

    /// The lock of a deployment and its seal, as they are kept.
    pub fn lock(&self, tenant: &str, server: &str, id: &str) -> Result<(Lock, Seal), RegistryError> {
        self.database().read(|connection| sealed(connection, tenant, server, id))
    }

    /// The files of a deployment, with those of its layer, by what its lock says of them.
    pub fn contents(&self, tenant: &str, server: &str, id: &str) -> Result<Contents, RegistryError> {
        let damaged = |what: &dyn std::fmt::Display| {
            RegistryError::corrupt(format!("the files of deployment `{id}` cannot be compared: {what}"))
        };
        let (lock, files) = self.database().read(|connection| {
            let (lock, _) = sealed(connection, tenant, server, id)?;
            let files = if lock.layer().is_some() { files(connection, tenant, &lock)? } else { BTreeMap::new() };
            Ok((lock, files))
        })?;
        let Some(digest) = lock.layer() else { return Ok(Contents::new(&lock, None)) };
        let index = files.get(lock.program.file()).ok_or_else(|| damaged(&"its index is gone"))?;
        let layer = Layer::parse(index).map_err(|error| damaged(&error))?;
        if layer.digest() != digest {
            return Err(damaged(&"its index is another"));
        }
        Ok(Contents::new(&lock, Some(&layer)))
    }

    /// The code of a deployment. Each time it is read, the seal, every file, its layer, the manifest, the surface and the id
    /// itself are verified: nothing else may ever run.
    pub fn bundle(&self, tenant: &str, server: &str, id: &str) -> Result<Bundle, RegistryError> {
        let damaged = |what: &dyn std::fmt::Display| {
            RegistryError::corrupt(format!("deployment `{id}` is not what was deployed: {what}"))
        };
        let (lock, mut files) = self.database().read(|connection| {
            let (lock, seal) = sealed(connection, tenant, server, id)?;
            if deployment_id(&tenant_uid(connection, tenant)?, &lock) != id || lock.server.as_str() != server {
                return Err(damaged(&"its lock is that of another"));
            }
            let files = files(connection, tenant, &lock)?;
            let (key_id, key) = mac_key(connection, &seal)?.ok_or_else(|| damaged(&"its seal names no known key"))?;
            bundle::verify(&lock, &seal, &files, &key_id, &key).map_err(|refused| damaged(&refused))?;
            let (surface, approval) = shown(connection, tenant, server, id)?;
            if Surface::new(surface).as_ref() != Ok(&lock.surface) {
                return Err(damaged(&"its surface is not that of the lock"));
            }
            if let Some(approval) = approval {
                let approval = Seal::parse(approval.as_bytes()).map_err(|error| damaged(&error))?;
                let (id, key) =
                    mac_key(connection, &approval)?.ok_or_else(|| damaged(&"its approval names no known key"))?;
                approval.verify(&lock, id.as_str(), &key).map_err(|error| damaged(&error))?;
            }
            Ok((lock, files))
        })?;
        // Others need the database while a large layer is read.
        let Some(digest) = lock.layer() else {
            let source = files.remove(lock.program.file()).unwrap_or_default();
            return Ok(Bundle { lock, source, layer: None });
        };
        let layer = self.layer(tenant, &digest).map_err(|error| match error {
            RegistryError::NotFound { .. } => damaged(&error),
            other => other,
        })?;
        Ok(Bundle { lock, source: Bytes::new(), layer: Some(layer) })
    }
}

fn files(connection: &Connection, tenant: &str, lock: &Lock) -> Result<BTreeMap<String, Bytes>, RegistryError> {
    let mut files = BTreeMap::new();
    let mut statement = connection.prepare_cached("SELECT bytes FROM files WHERE tenant = ?1 AND digest = ?2")?;
    for (path, file) in &lock.files {
        let digest = hex::encode(file.sha256.bytes());
        let bytes = statement.query_row([tenant, &digest], |row| row.get::<_, Vec<u8>>(0)).optional()?;
        // What is missing is found out by whoever compares.
        files.extend(bytes.map(|bytes| (path.to_string(), Bytes::from(bytes))));
    }
    Ok(files)
}

/// What the seal was made with. A key that was revoked since made it all the same.
fn mac_key(connection: &Connection, seal: &Seal) -> Result<Option<(KeyId, MacKey)>, RegistryError> {
    let Some(id) = seal.key() else { return Ok(None) };
    let mut statement = connection.prepare_cached("SELECT hash FROM keys WHERE id = ?1")?;
    let hash: Option<TokenHash> = statement.query_row([id.as_str()], |row| row.get(0)).optional()?;
    Ok(hash.map(|hash| (id.clone(), MacKey::from_token_hash(&hash))))
}

fn shown(
    connection: &Connection,
    tenant: &str,
    server: &str,
    id: &str,
) -> Result<(serde_json::Value, Option<String>), RegistryError> {
    let query = "SELECT surface, approval FROM deployments WHERE tenant = ?1 AND server = ?2 AND id = ?3";
    let (surface, approval): (String, _) =
        connection.prepare_cached(query)?.query_row([tenant, server, id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let surface = serde_json::from_str(&surface)
        .map_err(|_| RegistryError::corrupt(format!("the surface of deployment `{id}` is no JSON")))?;
    Ok((surface, approval))
}
