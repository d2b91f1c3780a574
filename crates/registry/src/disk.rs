//! What a tenant may take of the disk, and what stays free of all tenants: a full disk ends everybody's calls.

use crate::layers::rows;
use crate::{Directory, Registry, RegistryError};
use rusqlite::Connection;
use std::path::{Path, PathBuf};

/// Everything that one tenant has deployed: code, what it shows, layers, and a log for each server.
pub(crate) const TENANT_BYTES: u64 = 10 << 30;
/// Below this much free space, tenants deploy and record nothing. Calls go on and are written down.
pub(crate) const RESERVE_BYTES: u64 = 256 << 20;
/// A disk with less than this free is full.
const FULL_BYTES: u64 = 1 << 20;
/// The log of one server, at most.
const LOG_BYTES: u64 = 1 << 20;

pub(crate) struct Disk {
    dir: PathBuf,
    tenant_bytes: u64,
    reserve_bytes: u64,
}

impl Disk {
    pub fn new(dir: &Path, tenant_bytes: u64, reserve_bytes: u64) -> Disk {
        Disk { dir: dir.to_owned(), tenant_bytes, reserve_bytes }
    }

    /// Bytes that are free. A disk that does not say is not watched; when it is full, writing fails as it always did.
    fn free(&self) -> Option<u64> {
        let found = rustix::fs::statvfs(&self.dir).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// What is wrong, if hardly anything is free: soon not even the lines of calls can be written.
    pub fn trouble(&self) -> Option<String> {
        let full = self.free().is_some_and(|free| free < FULL_BYTES);
        full.then(|| "the disk is full: less than 1 MiB is free for the data directory".to_owned())
    }

    /// Whether so many bytes more can be taken without touching the reserve.
    pub fn check_reserve(&self, more: u64) -> Result<(), RegistryError> {
        let Some(free) = self.free() else { return Ok(()) };
        if free >= self.reserve_bytes.saturating_add(more) {
            return Ok(());
        }
        Err(RegistryError::DiskReserved { free_mb: free >> 20, reserve_mb: self.reserve_bytes >> 20 })
    }

    /// Whether a tenant that takes so many bytes more stays within what it may take.
    pub fn check_tenant(
        &self,
        connection: &Connection,
        directory: &Directory,
        tenant: &str,
        more: u64,
    ) -> Result<(), RegistryError> {
        let found = directory.tenants.get(tenant).ok_or_else(|| RegistryError::not_found("tenant", tenant))?;
        let most = found.quota.disk_bytes.unwrap_or(self.tenant_bytes);
        let needed = used(connection, tenant)?.saturating_add(more);
        if needed <= most {
            return Ok(());
        }
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        Err(RegistryError::Quota {
            what: format!(
                "with this the tenant's deployments and layers, and 1 MiB for each server's log, would take {} MiB ({needed} bytes) of the \
                 disk, {} MiB ({most} bytes) are allowed (`disk_bytes`)",
                mib(needed),
                mib(most)
            ),
        })
    }
}

/// Bytes of the disk that a tenant takes.
fn used(connection: &Connection, tenant: &str) -> Result<u64, RegistryError> {
    let sum = |query: &str| -> Result<u64, RegistryError> {
        Ok(connection.prepare_cached(query)?.query_row([tenant], |row| row.get(0))?)
    };
    let files = sum("SELECT coalesce(sum(length(bytes)), 0) FROM files WHERE tenant = ?1")?;
    let texts = sum("SELECT coalesce(sum(octet_length(lock) + octet_length(seal) + octet_length(surface)), 0)
         FROM deployments WHERE tenant = ?1")?;
    let servers = sum("SELECT count(*) FROM servers WHERE tenant = ?1")?;
    Ok(files + texts + servers * LOG_BYTES + rows::disk(connection, tenant)?)
}

impl Registry {
    /// Bytes of the disk that a tenant takes, as far as its quota counts them.
    pub fn disk_used(&self, tenant: &str) -> Result<u64, RegistryError> {
        self.database().read(|connection| used(connection, tenant))
    }

    /// Whether the disk is so full that tenants may write nothing more than the audit log needs.
    pub fn is_short_of_disk(&self) -> bool {
        self.disk().check_reserve(0).is_err()
    }
}
