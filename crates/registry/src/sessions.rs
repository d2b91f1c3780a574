//! Sessions of the legacy protocol, so that they outlive the host.

use crate::{Registry, RegistryError, SessionRecord};

impl Registry {
    /// Stores sessions and removes others, all or none of them. Those of a tenant or a server that is gone by now are left
    /// out: they went with it.
    pub fn save_sessions(&self, put: &[SessionRecord], remove: &[String]) -> Result<(), RegistryError> {
        if put.is_empty() && remove.is_empty() {
            return Ok(());
        }
        self.database().write(
            |transaction| {
                let mut insert = transaction.prepare_cached(
                    "INSERT OR REPLACE INTO sessions
                         (id, tenant, server, owner, protocol_version, capabilities, created_at, used_at)
                     SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
                     WHERE EXISTS (SELECT 1 FROM tenants WHERE name = ?2)
                         AND (?3 IS NULL OR EXISTS (SELECT 1 FROM servers WHERE tenant = ?2 AND name = ?3))",
                )?;
                for session in put {
                    insert.execute((
                        &session.id,
                        &session.tenant,
                        &session.server,
                        &session.owner,
                        &session.protocol_version,
                        &session.capabilities,
                        session.created_at,
                        session.used_at,
                    ))?;
                }
                let mut delete = transaction.prepare_cached("DELETE FROM sessions WHERE id = ?1")?;
                for id in remove {
                    delete.execute([id])?;
                }
                Ok(())
            },
            |()| (),
        )
    }

    /// All sessions that were stored, the one used last first.
    pub fn sessions(&self) -> Result<Vec<SessionRecord>, RegistryError> {
        self.database().read(|connection| {
            let mut statement = connection.prepare(
                "SELECT id, tenant, server, owner, protocol_version, capabilities, created_at, used_at
                 FROM sessions ORDER BY used_at DESC, id",
            )?;
            let sessions = statement.query_map([], |row| {
                Ok(SessionRecord {
                    id: row.get(0)?,
                    tenant: row.get(1)?,
                    server: row.get(2)?,
                    owner: row.get(3)?,
                    protocol_version: row.get(4)?,
                    capabilities: row.get(5)?,
                    created_at: row.get(6)?,
                    used_at: row.get(7)?,
                })
            })?;
            Ok(sessions.collect::<Result<_, _>>()?)
        })
    }
}
