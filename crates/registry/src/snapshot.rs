//! The directory in memory: read from the database once, then changed with it.

use crate::vault::{self, Vault};
use crate::{Deployment, Directory, Key, Manifest, MasterKey, RegistryError, Server, Tenant, TokenHash};
use bundle::{Lock, Seal};
use rusqlite::{Connection, Row};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a change does to the directory.
pub(crate) enum Edit {
    /// A tenant is made, or its settings are changed.
    Tenant(Arc<Tenant>),
    TenantGone(String),
    Key(TokenHash, Arc<Key>),
    KeyGone(TokenHash),
    Server(Arc<Server>),
    /// The tenant remembers how far it came.
    ServerGone {
        tenant: String,
        server: String,
        step: u64,
    },
    /// Something sealed of a tenant is changed.
    Vault(String, Arc<Vault>),
    Master(Arc<MasterKey>),
}

impl Edit {
    /// Whether it takes away something sealed, which is to be gone from the disk too.
    pub(crate) fn leaves_traces(&self) -> bool {
        matches!(self, Edit::Vault(..) | Edit::TenantGone(_))
    }
}

/// The directory after a change. What did not change is shared with the one before.
pub(crate) fn edited(directory: &Directory, edits: Vec<Edit>) -> Directory {
    let mut directory = directory.clone();
    directory.revision += 1;
    for edit in edits {
        match edit {
            Edit::Tenant(tenant) => {
                directory.tenants.insert(tenant.name.clone(), tenant);
            }
            Edit::TenantGone(name) => {
                directory.tenants.remove(&name);
                directory.vaults.remove(&name);
                directory.keys.retain(|_, key| key.tenant.as_deref() != Some(&name));
            }
            Edit::Key(hash, key) => {
                directory.keys.insert(hash, key);
            }
            Edit::KeyGone(hash) => {
                directory.keys.remove(&hash);
            }
            Edit::Server(server) => {
                if let Some(tenant) = directory.tenants.get_mut(&server.tenant) {
                    Arc::make_mut(tenant).servers.insert(server.name.clone(), server);
                }
            }
            Edit::ServerGone { tenant, server, step } => {
                if let Some(tenant) = directory.tenants.get_mut(&tenant) {
                    let tenant = Arc::make_mut(tenant);
                    tenant.servers.remove(&server);
                    tenant.step = tenant.step.max(step);
                }
            }
            Edit::Vault(tenant, vault) => {
                directory.vaults.insert(tenant, vault);
            }
            Edit::Master(key) => directory.master = Some(key),
        }
    }
    directory
}

/// The directory as the database has it.
pub(crate) fn load(connection: &Connection) -> Result<Directory, RegistryError> {
    let mut directory = Directory { revision: 1, vaults: vault::load(connection)?, ..Directory::default() };
    let mut tenants =
        connection.prepare("SELECT name, created_at, weight, quota, recording, approval, step FROM tenants")?;
    let mut rows = tenants.query([])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let tenant = Tenant {
            created_at: row.get(1)?,
            weight: row.get(2)?,
            quota: json(row, 3, "the quota of a tenant")?,
            recording: row.get(4)?,
            approval: row.get(5)?,
            step: row.get(6)?,
            servers: servers(connection, &name)?,
            name: name.clone(),
        };
        directory.tenants.insert(name, Arc::new(tenant));
    }
    let mut keys = connection.prepare(&format!("SELECT {KEY}, hash FROM keys WHERE revoked_at IS NULL"))?;
    let mut rows = keys.query([])?;
    while let Some(row) = rows.next()? {
        directory.keys.insert(row.get(KEY_COLUMNS)?, Arc::new(key(row)?));
    }
    Ok(directory)
}

fn servers(connection: &Connection, tenant: &str) -> Result<BTreeMap<String, Arc<Server>>, RegistryError> {
    let mut servers = BTreeMap::new();
    let query = "SELECT name, created_at, current, step, quarantine FROM servers WHERE tenant = ?1";
    let mut statement = connection.prepare_cached(query)?;
    let mut rows = statement.query([tenant])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let (mut current, mut quarantine) = (None, row.get(4)?);
        if let Some(id) = row.get::<_, Option<String>>(2)? {
            match deployment_of(connection, tenant, &name, &id) {
                Ok(deployment) => current = Some(Arc::new(deployment)),
                // One damaged server is no reason to keep the others from running.
                Err(RegistryError::Corrupt { what, .. }) => {
                    quarantine = Some(format!("its deployment is damaged: {what}"))
                }
                Err(error) => return Err(error),
            }
        }
        let created_at = row.get(1)?;
        let server = Server {
            tenant: tenant.to_owned(),
            name: name.clone(),
            created_at,
            current,
            step: row.get(3)?,
            quarantine,
        };
        servers.insert(name, Arc::new(server));
    }
    Ok(servers)
}

pub(crate) const KEY: &str = "id, tenant, role, name, scope, quota, created_at, expires_at, revoked_at";
const KEY_COLUMNS: usize = 9;

pub(crate) fn key(row: &Row<'_>) -> Result<Key, RegistryError> {
    let role: String = row.get(2)?;
    Ok(Key {
        id: row.get(0)?,
        tenant: row.get(1)?,
        role: role.parse().map_err(|_| RegistryError::corrupt("the role of a key is none"))?,
        name: row.get(3)?,
        scope: json(row, 4, "the scope of a key")?,
        quota: json(row, 5, "the quota of a key")?,
        created_at: row.get(6)?,
        expires_at: row.get(7)?,
        revoked_at: row.get(8)?,
    })
}

pub(crate) const DEPLOYMENT: &str =
    "id, tenant, server, created_at, created_by, digest, size, lock, seal, surface, pending,
     stale, proposed_by, proposed_at, approved_by, approved_at, activated_at";

pub(crate) fn deployment(row: &Row<'_>) -> Result<Deployment, RegistryError> {
    let (lock, seal) = sealed(row, 7, 8)?;
    Ok(Deployment {
        id: row.get(0)?,
        tenant: row.get(1)?,
        server: row.get(2)?,
        created_at: row.get(3)?,
        created_by: row.get(4)?,
        digest: row.get(5)?,
        size: row.get(6)?,
        lock: lock.digest(),
        publishers: seal.publishers(),
        manifest: Manifest::from(&lock),
        surface: RawValue::from_string(row.get(9)?)
            .map_err(|_| RegistryError::corrupt("the surface of a deployment is no JSON"))?,
        pending: row.get(10)?,
        stale: row.get(11)?,
        proposed_by: row.get(12)?,
        proposed_at: row.get(13)?,
        approved_by: row.get(14)?,
        approved_at: row.get(15)?,
        activated_at: row.get(16)?,
    })
}

/// A lock and its seal. Whether they belong together is not asked here.
pub(crate) fn sealed(row: &Row<'_>, lock: usize, seal: usize) -> Result<(Lock, Seal), RegistryError> {
    let text = |column| row.get_ref(column)?.as_bytes().map_err(rusqlite::Error::from);
    let damaged = |what: &str, cause: &dyn std::fmt::Display| RegistryError::corrupt(format!("{what}: {cause}"));
    let lock = Lock::parse(text(lock)?).map_err(|cause| damaged("the lock of a deployment", &cause))?;
    let seal = Seal::parse(text(seal)?).map_err(|cause| damaged("the seal of a deployment", &cause))?;
    Ok((lock, seal))
}

/// A deployment that must be there.
pub(crate) fn deployment_of(
    connection: &Connection,
    tenant: &str,
    server: &str,
    id: &str,
) -> Result<Deployment, RegistryError> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {DEPLOYMENT} FROM deployments WHERE tenant = ?1 AND server = ?2 AND id = ?3"
    ))?;
    let mut rows = statement.query([tenant, server, id])?;
    match rows.next()? {
        Some(row) => deployment(row),
        None => Err(RegistryError::not_found("deployment", id)),
    }
}

fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize, what: &str) -> Result<T, RegistryError> {
    serde_json::from_str(row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?)
        .map_err(|cause| RegistryError::Corrupt { what: format!("{what} cannot be read"), cause: Some(cause.into()) })
}

pub(crate) fn to_json(value: &impl serde::Serialize) -> Result<String, RegistryError> {
    serde_json::to_string(value).map_err(|error| RegistryError::internal("a value is no JSON", error))
}
