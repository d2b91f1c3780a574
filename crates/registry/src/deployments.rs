//! Servers and their deployments.

use crate::clock::now;
use crate::registry::{Change, Wish};
use crate::snapshot::{self, Edit, deployment_of, to_json};
use crate::tenants::find as tenant_of;
use crate::{Actor, ChangeEvent, Deployment, NewDeployment, Registry, RegistryError, Server, name};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Transaction};
use sha2::{Digest, Sha256};
use std::sync::Arc;

const MOST_SERVERS: usize = 1000;
const LARGEST_SOURCE: usize = 32 << 20;
/// Of a server's deployments the newest are kept: at most so many, with sources of at most so many bytes together.
const KEPT_DEPLOYMENTS: i64 = 1000;
const KEPT_BYTES: i64 = 256 << 20;

impl Registry {
    /// Stores a deployment and makes it what callers reach, in one step; the server is made if there is none. The same
    /// content is the same deployment, however often it comes.
    pub fn deploy(&self, actor: &Actor, new: NewDeployment) -> Result<Arc<Deployment>, RegistryError> {
        name::check("server", &new.server)?;
        if new.source.len() > LARGEST_SOURCE {
            return Err(RegistryError::BadValue { what: format!("a source has at most {LARGEST_SOURCE} bytes") });
        }
        let digest = hex::encode(Sha256::digest(&new.source));
        let manifest = to_json(&new.manifest)?;
        self.change(|transaction, directory| {
            let tenant = tenant_of(directory, &new.tenant)?;
            let server = tenant.servers.get(&new.server);
            let id = deployment_id(&tenant_uid(transaction, &new.tenant)?, &new, &digest, &manifest);
            if let Some(current) = server.and_then(|server| server.current.as_ref()).filter(|d| d.id == id) {
                return Ok(Wish::Granted(current.clone()));
            }
            let server = match server {
                Some(server) => server.clone(),
                None => create_server(transaction, tenant.servers.len(), &new)?,
            };
            let deployment = match deployment_of(transaction, &new.tenant, &new.server, &id) {
                Err(RegistryError::NotFound { .. }) => store(transaction, actor, &new, id, &digest, &manifest)?,
                known => known?,
            };
            let wish = make_current(transaction, &server, deployment, actor, "server.deploy")?;
            prune(transaction, &new.tenant, &new.server)?;
            Ok(wish)
        })
    }

    /// Makes an earlier deployment what callers reach.
    pub fn activate(
        &self,
        actor: &Actor,
        tenant: &str,
        server: &str,
        deployment_id: &str,
    ) -> Result<Arc<Deployment>, RegistryError> {
        self.change(|transaction, directory| {
            let server = server_of(directory, tenant, server)?;
            if let Some(current) = server.current.as_ref().filter(|current| current.id == deployment_id) {
                return Ok(Wish::Granted(current.clone()));
            }
            let deployment = deployment_of(transaction, tenant, &server.name, deployment_id)?;
            make_current(transaction, server, deployment, actor, "server.activate")
        })
    }

    /// Newest first.
    pub fn deployments(&self, tenant: &str, server: &str) -> Result<Vec<Deployment>, RegistryError> {
        server_of(&self.directory(), tenant, server)?;
        self.database().read(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {} FROM deployments WHERE tenant = ?1 AND server = ?2 ORDER BY number DESC",
                snapshot::DEPLOYMENT
            ))?;
            let mut rows = statement.query([tenant, server])?;
            let mut deployments = Vec::new();
            while let Some(row) = rows.next()? {
                deployments.push(snapshot::deployment(row)?);
            }
            Ok(deployments)
        })
    }

    /// The code of a deployment. It is compared with its digest each time: nothing else may ever run.
    pub fn source(&self, tenant: &str, deployment_id: &str) -> Result<Bytes, RegistryError> {
        let (digest, source): (String, Vec<u8>) = self.database().read(|connection| {
            let query = "SELECT sources.digest, sources.bytes FROM deployments JOIN sources USING (tenant, digest)
                         WHERE deployments.tenant = ?1 AND deployments.id = ?2";
            let mut statement = connection.prepare_cached(query)?;
            let row = statement.query_row([tenant, deployment_id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            row.ok_or_else(|| RegistryError::not_found("deployment", deployment_id))
        })?;
        if hex::encode(Sha256::digest(&source)) != digest {
            return Err(RegistryError::corrupt(format!("the source of `{deployment_id}` does not fit its digest")));
        }
        Ok(source.into())
    }

    /// Removes a server with all its deployments and its log.
    pub fn delete_server(&self, actor: &Actor, tenant: &str, server: &str) -> Result<(), RegistryError> {
        self.change(|transaction, directory| {
            server_of(directory, tenant, server)?;
            transaction.execute("DELETE FROM servers WHERE tenant = ?1 AND name = ?2", [tenant, server])?;
            drop_unused_sources(transaction, tenant)?;
            let edits = vec![Edit::ServerGone { tenant: tenant.to_owned(), server: server.to_owned() }];
            Ok(Wish::Change(Change { edits, event: event(actor, tenant, server, "server.delete", None), answer: () }))
        })?;
        self.logs().remove_server(tenant, server);
        self.database().shrink();
        Ok(())
    }
}

fn server_of<'a>(
    directory: &'a crate::Directory,
    tenant: &str,
    server: &str,
) -> Result<&'a Arc<Server>, RegistryError> {
    tenant_of(directory, tenant)?.servers.get(server).ok_or_else(|| RegistryError::not_found("server", server))
}

fn tenant_uid(connection: &Connection, tenant: &str) -> Result<[u8; 16], RegistryError> {
    Ok(connection.query_row("SELECT uid FROM tenants WHERE name = ?1", [tenant], |row| row.get(0))?)
}

/// A digest of everything that decides how it runs, whose it is and what it shows. Two tenants never share an id, so
/// whatever is kept under it is not shared either.
fn deployment_id(tenant: &[u8; 16], new: &NewDeployment, digest: &str, manifest: &str) -> String {
    let mut hash = Sha256::new();
    for part in [tenant, new.server.as_bytes(), digest.as_bytes(), manifest.as_bytes(), new.surface.get().as_bytes()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex::encode(&hash.finalize()[..16])
}

fn create_server(
    transaction: &Transaction<'_>,
    count: usize,
    new: &NewDeployment,
) -> Result<Arc<Server>, RegistryError> {
    if count >= MOST_SERVERS {
        return Err(RegistryError::Conflict {
            what: format!("the tenant has {count} servers, which is the most"),
            hint: Some("delete those that nobody needs any more".to_owned()),
        });
    }
    let server = Server { tenant: new.tenant.clone(), name: new.server.clone(), created_at: now(), current: None };
    transaction.execute(
        "INSERT INTO servers (tenant, name, created_at) VALUES (?1, ?2, ?3)",
        (&server.tenant, &server.name, server.created_at),
    )?;
    Ok(Arc::new(server))
}

fn store(
    transaction: &Transaction<'_>,
    actor: &Actor,
    new: &NewDeployment,
    id: String,
    digest: &str,
    manifest: &str,
) -> Result<Deployment, RegistryError> {
    let deployment = Deployment {
        id,
        tenant: new.tenant.clone(),
        server: new.server.clone(),
        created_at: now(),
        created_by: actor.0.clone(),
        digest: digest.to_owned(),
        size: new.source.len() as u64,
        manifest: new.manifest.clone(),
        surface: new.surface.clone(),
    };
    transaction.execute(
        "INSERT INTO sources (tenant, digest, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        (&deployment.tenant, digest, &new.source[..]),
    )?;
    transaction.execute(
        "INSERT INTO deployments (id, tenant, server, created_at, created_by, digest, size, manifest, surface)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        (
            &deployment.id,
            &deployment.tenant,
            &deployment.server,
            deployment.created_at,
            &deployment.created_by,
            digest,
            deployment.size,
            manifest,
            deployment.surface.get(),
        ),
    )?;
    Ok(deployment)
}

fn make_current(
    transaction: &Transaction<'_>,
    server: &Server,
    deployment: Deployment,
    actor: &Actor,
    action: &str,
) -> Result<Wish<Arc<Deployment>>, RegistryError> {
    transaction.execute(
        "UPDATE servers SET current = ?1 WHERE tenant = ?2 AND name = ?3",
        [&deployment.id, &server.tenant, &server.name],
    )?;
    let detail = serde_json::json!({
        "deployment": deployment.id, "digest": deployment.digest, "size": deployment.size, "wall": deployment.manifest.wall,
        "boundary": deployment.manifest.boundary, "instead_of": server.current.as_ref().map(|current| &current.id),
    });
    let deployment = Arc::new(deployment);
    let edit = Edit::Server(Arc::new(Server { current: Some(deployment.clone()), ..server.clone() }));
    let event = event(actor, &server.tenant, &server.name, action, Some(detail));
    Ok(Wish::Change(Change { edits: vec![edit], event, answer: deployment }))
}

/// Forgets the oldest deployments of a server that has many, but never its current one.
fn prune(transaction: &Transaction<'_>, tenant: &str, server: &str) -> Result<(), RegistryError> {
    let pruned = transaction.execute(
        "DELETE FROM deployments WHERE number IN (
             SELECT number FROM (
                 SELECT number, id, row_number() OVER newest AS place, sum(size) OVER newest AS bytes
                 FROM deployments WHERE tenant = ?1 AND server = ?2
                 WINDOW newest AS (ORDER BY number DESC)
             )
             WHERE (place > ?3 OR bytes > ?4)
                 AND id != (SELECT current FROM servers WHERE tenant = ?1 AND name = ?2)
         )",
        (tenant, server, KEPT_DEPLOYMENTS, KEPT_BYTES),
    )?;
    if pruned > 0 {
        drop_unused_sources(transaction, tenant)?;
    }
    Ok(())
}

fn drop_unused_sources(transaction: &Transaction<'_>, tenant: &str) -> Result<(), RegistryError> {
    transaction.execute(
        "DELETE FROM sources WHERE tenant = ?1 AND NOT EXISTS (
             SELECT 1 FROM deployments
             WHERE deployments.tenant = sources.tenant AND deployments.digest = sources.digest
         )",
        [tenant],
    )?;
    Ok(())
}

fn event(actor: &Actor, tenant: &str, server: &str, action: &str, detail: Option<serde_json::Value>) -> ChangeEvent {
    ChangeEvent {
        tenant: Some(tenant.to_owned()),
        actor: actor.0.clone(),
        action: action.to_owned(),
        subject: format!("{tenant}/{server}"),
        detail,
    }
}
