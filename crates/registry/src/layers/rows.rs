//! What the database knows of layers.

use crate::RegistryError;
use crate::clock::now;
use bundle::{Digest, Layer};
use rusqlite::{Connection, OptionalExtension, Transaction};
use std::collections::BTreeSet;

/// Seconds that a layer is kept which no deployment runs in: time to deploy it.
const KEPT: u64 = 3600;

pub(super) type Uid = [u8; 16];

pub(super) fn owner(connection: &Connection, tenant: &str) -> Result<Uid, RegistryError> {
    let mut statement = connection.prepare_cached("SELECT uid FROM tenants WHERE name = ?1")?;
    let uid = statement.query_row([tenant], |row| row.get(0)).optional()?;
    uid.ok_or_else(|| RegistryError::not_found("tenant", tenant))
}

/// Bytes of its files.
pub(crate) fn size(connection: &Connection, tenant: &str, digest: &Digest) -> Result<Option<u64>, RegistryError> {
    let mut statement = connection.prepare_cached("SELECT size FROM layers WHERE tenant = ?1 AND digest = ?2")?;
    Ok(statement.query_row([tenant, &digest.to_string()], |row| row.get(0)).optional()?)
}

/// Bytes of the disk that all layers of a tenant take.
pub(crate) fn disk(connection: &Connection, tenant: &str) -> Result<u64, RegistryError> {
    let mut statement = connection.prepare_cached("SELECT coalesce(sum(disk), 0) FROM layers WHERE tenant = ?1")?;
    Ok(statement.query_row([tenant], |row| row.get(0))?)
}

/// The names of all layers of a tenant; none if there is no such tenant.
pub(super) fn digests(connection: &Connection, uid: &Uid) -> Result<BTreeSet<String>, RegistryError> {
    let query = "SELECT digest FROM layers JOIN tenants ON tenants.name = layers.tenant WHERE uid = ?1";
    let mut statement = connection.prepare_cached(query)?;
    let digests = statement.query_map([uid], |row| row.get(0))?;
    Ok(digests.collect::<Result<_, _>>()?)
}

/// Somebody has it now, or has it again.
pub(super) fn put(transaction: &Transaction<'_>, tenant: &str, layer: &Layer) -> Result<(), RegistryError> {
    transaction.execute(
        "INSERT INTO layers (tenant, digest, size, disk, created_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (tenant, digest) DO UPDATE SET created_at = excluded.created_at",
        (tenant, layer.digest().to_string(), layer.size(), layer.disk(), now()),
    )?;
    Ok(())
}

/// Somebody came with it again. The bytes of its files, if it is there.
pub(super) fn touch(
    transaction: &Transaction<'_>,
    tenant: &str,
    digest: &Digest,
) -> Result<Option<u64>, RegistryError> {
    let query = "UPDATE layers SET created_at = ?1 WHERE tenant = ?2 AND digest = ?3 RETURNING size";
    let digest = digest.to_string();
    Ok(transaction.query_row(query, (now(), tenant, digest), |row| row.get(0)).optional()?)
}

/// Forgets the layers that no deployment runs in and nobody uploaded lately; of one tenant or of all.
pub(crate) fn drop_unused(transaction: &Transaction<'_>, tenant: Option<&str>) -> Result<(), RegistryError> {
    transaction.execute(
        "DELETE FROM layers WHERE (?1 IS NULL OR tenant = ?1) AND created_at <= ?2 AND NOT EXISTS (
             SELECT 1 FROM deployments WHERE deployments.tenant = layers.tenant AND deployments.layer = layers.digest
         )",
        (tenant, now().saturating_sub(KEPT)),
    )?;
    Ok(())
}
