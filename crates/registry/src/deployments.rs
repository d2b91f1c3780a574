//! Servers and their deployments.

use crate::approval::Consent;
use crate::clock::now;
use crate::layers::rows;
use crate::registry::{Change, Wish};
use crate::snapshot::{self, Edit, deployment_of};
use crate::tenants::find as tenant_of;
use crate::{Actor, ChangeEvent, Deployment, Directory, NewDeployment, Next, Registry, RegistryError, Server, name};
use bundle::{Digest, Lock, Seal};
use rusqlite::{Connection, Transaction};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

const MOST_SERVERS: usize = 1000;
const LARGEST_BUNDLE: usize = 33 << 20;
/// Of a server's deployments the newest are kept: at most so many, with files of at most so many bytes together, and layers
/// of at most so many. A layer that several run in counts once.
const KEPT_DEPLOYMENTS: i64 = 1000;
const KEPT_BYTES: i64 = 256 << 20;
const KEPT_LAYER_BYTES: i64 = 2 << 30;
/// Characters of a reason.
const LONGEST_REASON: usize = 2000;

impl Registry {
    /// What a lock has to be made for that is to be deployed next.
    pub fn next(&self, tenant: &str, server: &str) -> Result<Next, RegistryError> {
        next(&self.directory(), tenant, server)
    }

    /// Stores a deployment and makes it what callers reach, in one step; the server is made if there is none. The same
    /// content is the same deployment, however often it comes. Where the tenant asks for two keys, it waits for the second.
    /// The layer of a program has to be there.
    pub fn deploy(&self, actor: &Actor, new: NewDeployment) -> Result<Arc<Deployment>, RegistryError> {
        let server = new.lock.server.as_str();
        name::check("server", server)?;
        let size: usize = new.files.values().map(|file| file.len()).sum();
        if size > LARGEST_BUNDLE {
            return Err(RegistryError::BadValue { what: format!("a bundle has at most {LARGEST_BUNDLE} bytes") });
        }
        if new.layer != new.lock.layer() {
            return Err(RegistryError::BadValue { what: "the layer is not the one that the lock names".to_owned() });
        }
        self.disk().check_reserve(size as u64)?;
        let mut forgot = None;
        let deployed = self.change(|transaction, directory| {
            let Next { step, current } = next(directory, &new.tenant, server)?;
            let uid = tenant_uid(transaction, &new.tenant)?;
            let id = deployment_id(&uid, &new.lock);
            let known = tenant_of(directory, &new.tenant)?.servers.get(server);
            if let Some(current) = current.as_ref().filter(|current| current.id == id)
                && known.is_some_and(|server| server.quarantine.is_none())
            {
                return Ok(Wish::Granted(current.clone()));
            }
            new.lock.follows(step, current.map(|current| current.lock)).map_err(RegistryError::Replayed)?;
            let server = match known {
                Some(server) => server.clone(),
                None => create_server(transaction, directory, &new)?,
            };
            let size = size as u64 + layer_size(transaction, &new)?;
            store(transaction, actor, &new, &id, size)?;
            let deployment = deployment_of(transaction, &new.tenant, &server.name, &id)?;
            let wish = put_forward(transaction, directory, &server, deployment, actor, "server.deploy")?;
            forgot = prune(transaction, &new.tenant, &server.name)?.then_some(uid);
            // Everything that would be there is counted; if it is too much, nothing of it stays.
            self.disk().check_tenant(transaction, directory, &new.tenant, 0)?;
            Ok(wish)
        })?;
        if let Some(uid) = forgot {
            self.layers().tidy(self.database(), &uid);
        }
        Ok(deployed)
    }

    /// Whether a deployment waits, and its proposal is the one that was shown.
    pub fn check_proposal(&self, tenant: &str, server: &str, id: &str, proposal: &Digest) -> Result<(), RegistryError> {
        let directory = self.directory();
        let found = server_of(&directory, tenant, server)?;
        self.database().read(|connection| {
            let deployment = deployment_of(connection, tenant, server, id)?;
            waiting(connection, found, &deployment, proposal).map(drop)
        })
    }

    /// Makes a pending deployment what callers reach. `proposal` names what the approver saw ([`Server::proposal`]). Neither who
    /// asks nor the key of the seal may be one party with those who proposed it; whoever asks has verified the seal.
    pub fn approve(
        &self,
        actor: &Actor,
        tenant: &str,
        server: &str,
        id: &str,
        approval: &Seal,
        proposal: &Digest,
    ) -> Result<Arc<Deployment>, RegistryError> {
        self.change(|transaction, directory| {
            let found = server_of(directory, tenant, server)?;
            let deployment = deployment_of(transaction, tenant, server, id)?;
            let (proposer, proposed_for) = waiting(transaction, found, &deployment, proposal)?;
            let (lock, seal) = sealed(transaction, tenant, server, id)?;
            let mut proposed = vec![proposer.as_str()];
            // Who sealed an upload is part of it; a lock that was made for an earlier step is only gone back to.
            if lock.step.number == proposed_for {
                proposed.extend(seal.key().map(|key| key.as_str()));
            }
            let agreed: Vec<&str> =
                [actor.0.as_str()].into_iter().chain(approval.key().map(|key| key.as_str())).collect();
            let consent = Consent::of_two(transaction, &proposed, &agreed)?;
            transaction.execute(
                "UPDATE deployments SET approval = ?1 WHERE tenant = ?2 AND server = ?3 AND id = ?4",
                (text(approval.bytes())?, tenant, server, id),
            )?;
            let deployment = Deployment { approved_by: Some(actor.0.clone()), approved_at: Some(now()), ..deployment };
            make_current(transaction, found, deployment, actor, "server.approve", consent)
        })
    }

    /// Makes an earlier deployment what callers reach. The current one again ends its quarantine. Where the tenant asks for
    /// two keys, it waits for the second.
    pub fn activate(
        &self,
        actor: &Actor,
        tenant: &str,
        server: &str,
        deployment_id: &str,
    ) -> Result<Arc<Deployment>, RegistryError> {
        self.change(|transaction, directory| {
            let server = server_of(directory, tenant, server)?;
            if let Some(current) = server.current.as_ref().filter(|current| current.id == deployment_id)
                && server.quarantine.is_none()
            {
                return Ok(Wish::Granted(current.clone()));
            }
            let deployment = deployment_of(transaction, tenant, &server.name, deployment_id)?;
            if deployment.pending && tenant_of(directory, tenant)?.approval {
                return Err(RegistryError::Conflict {
                    what: format!("deployment {deployment_id} is proposed already, and waits for a second key"),
                    hint: Some(format!("with another key: bulkhead approve {tenant}/{} {deployment_id}", server.name)),
                });
            }
            put_forward(transaction, directory, server, deployment, actor, "server.activate")
        })
    }

    /// Lets nobody call the server any more, until something else is deployed or somebody looked at it. Nothing happens
    /// if it runs another deployment by now.
    pub fn quarantine(
        &self,
        actor: &Actor,
        tenant: &str,
        server: &str,
        deployment_id: &str,
        reason: &str,
    ) -> Result<(), RegistryError> {
        self.change(|transaction, directory| {
            let found = server_of(directory, tenant, server)?;
            let runs = found.current.as_ref().is_some_and(|current| current.id == deployment_id);
            if !runs || found.quarantine.is_some() {
                return Ok(Wish::Granted(()));
            }
            let reason: String = reason.chars().take(LONGEST_REASON).collect();
            transaction.execute(
                "UPDATE servers SET quarantine = ?1 WHERE tenant = ?2 AND name = ?3",
                [&reason, tenant, server],
            )?;
            let detail = serde_json::json!({ "deployment": deployment_id, "reason": reason });
            let event = event(actor, tenant, server, "server.quarantine", Some(detail));
            let edit = Edit::Server(Arc::new(Server { quarantine: Some(reason), ..Server::clone(found) }));
            Ok(Wish::Change(Change { edits: vec![edit], event, answer: () }))
        })
    }

    pub fn deployment(&self, tenant: &str, server: &str, id: &str) -> Result<Deployment, RegistryError> {
        self.database().read(|connection| deployment_of(connection, tenant, server, id))
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

    /// What waits for a second key, newest first: server and deployment.
    pub fn proposals(&self, tenant: &str) -> Result<Vec<(String, String)>, RegistryError> {
        self.database().read(|connection| {
            let query = "SELECT server, id FROM deployments WHERE tenant = ?1 AND pending ORDER BY number DESC";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map([tenant], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Removes a server with all its deployments and its log.
    pub fn delete_server(&self, actor: &Actor, tenant: &str, server: &str) -> Result<(), RegistryError> {
        let uid = self.change(|transaction, directory| {
            let step = server_of(directory, tenant, server)?.step;
            transaction.execute("DELETE FROM servers WHERE tenant = ?1 AND name = ?2", [tenant, server])?;
            transaction.execute("UPDATE tenants SET step = max(step, ?1) WHERE name = ?2", (step, tenant))?;
            drop_unused(transaction, tenant)?;
            let edits = vec![Edit::ServerGone { tenant: tenant.to_owned(), server: server.to_owned(), step }];
            let (event, answer) =
                (event(actor, tenant, server, "server.delete", None), tenant_uid(transaction, tenant)?);
            Ok(Wish::Change(Change { edits, event, answer }))
        })?;
        self.layers().tidy(self.database(), &uid);
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

fn next(directory: &Directory, tenant: &str, server: &str) -> Result<Next, RegistryError> {
    let tenant = tenant_of(directory, tenant)?;
    Ok(match tenant.servers.get(server) {
        Some(server) => Next { step: server.step + 1, current: server.current.clone() },
        None => Next { step: tenant.step + 1, current: None },
    })
}

pub(crate) fn tenant_uid(connection: &Connection, tenant: &str) -> Result<[u8; 16], RegistryError> {
    Ok(connection.query_row("SELECT uid FROM tenants WHERE name = ?1", [tenant], |row| row.get(0))?)
}

/// A digest of everything that decides how it runs, whose it is and what it shows. Two tenants never share an id, so
/// whatever is kept under it is not shared either.
pub(crate) fn deployment_id(tenant: &[u8; 16], lock: &Lock) -> String {
    hex::encode(&Sha256::new().chain_update(tenant).chain_update(lock.content().bytes()).finalize()[..16])
}

fn text(canonical: Vec<u8>) -> Result<String, RegistryError> {
    String::from_utf8(canonical).map_err(|error| RegistryError::internal("canonical JSON is no text", error))
}

pub(crate) fn sealed(
    connection: &Connection,
    tenant: &str,
    server: &str,
    id: &str,
) -> Result<(Lock, Seal), RegistryError> {
    let query = "SELECT lock, seal FROM deployments WHERE tenant = ?1 AND server = ?2 AND id = ?3";
    let mut statement = connection.prepare_cached(query)?;
    let mut rows = statement.query([tenant, server, id])?;
    match rows.next()? {
        Some(row) => snapshot::sealed(row, 0, 1),
        None => Err(RegistryError::not_found("deployment", id)),
    }
}

fn create_server(
    transaction: &Transaction<'_>,
    directory: &Directory,
    new: &NewDeployment,
) -> Result<Arc<Server>, RegistryError> {
    let tenant = tenant_of(directory, &new.tenant)?;
    let count = tenant.servers.len();
    if count >= MOST_SERVERS {
        return Err(RegistryError::Conflict {
            what: format!("the tenant has {count} servers, which is the most"),
            hint: Some("delete those that nobody needs any more".to_owned()),
        });
    }
    let server = Server {
        tenant: new.tenant.clone(),
        name: new.lock.server.to_string(),
        created_at: now(),
        current: None,
        step: tenant.step,
        quarantine: None,
    };
    transaction.execute(
        "INSERT INTO servers (tenant, name, created_at, step) VALUES (?1, ?2, ?3, ?4)",
        (&server.tenant, &server.name, server.created_at, server.step),
    )?;
    Ok(Arc::new(server))
}

/// Who proposed a deployment that waits, and for which step. One that does not wait, or not as it was shown, is refused with the
/// reason.
fn waiting(
    connection: &Connection,
    server: &Server,
    deployment: &Deployment,
    shown: &Digest,
) -> Result<(String, u64), RegistryError> {
    let (id, place) = (&deployment.id, format!("{}/{}", server.tenant, server.name));
    let is_current = server.current.as_ref().is_some_and(|current| current.id == *id);
    let stale = || {
        let now = server.current.as_ref().map_or("nothing", |current| current.id.as_str());
        RegistryError::Stale {
            what: format!("the proposal of deployment {id} is stale: another one became current since, now {now}"),
            hint: Some(format!("propose it again, for what runs now: bulkhead rollback {place} {id}")),
        }
    };
    if deployment.stale {
        return Err(stale());
    }
    if !deployment.pending {
        let why = if is_current { "it is current already" } else { "it is not proposed" };
        let hint = format!("bulkhead deployments {place} shows what waits");
        return Err(RegistryError::Conflict {
            what: format!("deployment {id} does not wait for approval: {why}"),
            hint: Some(hint),
        });
    }
    if server.proposal(deployment).as_ref() != Some(shown) {
        return Err(RegistryError::Stale {
            what: format!("the proposal of deployment {id} was replaced since it was shown"),
            hint: Some(format!("look at it again: bulkhead approve {place} {id}")),
        });
    }
    let query = "SELECT proposed_by, proposed_step FROM deployments WHERE tenant = ?1 AND server = ?2 AND id = ?3";
    let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Option<_>>(0)?, row.get::<_, Option<u64>>(1)?));
    match connection.prepare_cached(query)?.query_row([&server.tenant, &server.name, id], row)? {
        (Some(by), Some(step)) if step == server.step + 1 => Ok((by, step)),
        (Some(_), Some(_)) => Err(stale()),
        _ => Err(RegistryError::corrupt(format!("nobody has proposed the deployment `{id}`, and it waits"))),
    }
}

/// The same content that comes again has a new lock, for the step that it came with.
fn store(
    transaction: &Transaction<'_>,
    actor: &Actor,
    new: &NewDeployment,
    id: &str,
    size: u64,
) -> Result<(), RegistryError> {
    let digest = |file: &bundle::File| hex::encode(file.sha256.bytes());
    let code = new.lock.files.get(new.lock.program.file()).map(digest).unwrap_or_default();
    let number: i64 = transaction.query_row(
        "INSERT INTO deployments
             (id, tenant, server, created_at, created_by, digest, size, lock, seal, surface, pending, layer)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, ?11)
         ON CONFLICT (tenant, server, id) DO UPDATE
             SET lock = excluded.lock, seal = excluded.seal, approval = NULL, pending = 0
         RETURNING number",
        (
            id,
            &new.tenant,
            new.lock.server.as_str(),
            now(),
            &actor.0,
            code,
            size,
            text(new.lock.bytes())?,
            text(new.seal.bytes())?,
            new.surface.get(),
            new.layer.map(|layer| layer.to_string()),
        ),
        |row| row.get(0),
    )?;
    for (path, bytes) in &new.files {
        let Some(digest) = new.lock.files.get(path.as_str()).map(digest) else { continue };
        transaction.execute(
            "INSERT INTO files (tenant, digest, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
            (&new.tenant, &digest, &bytes[..]),
        )?;
        transaction.execute(
            "INSERT INTO deployment_files (deployment, tenant, digest) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
            (number, &new.tenant, &digest),
        )?;
    }
    Ok(())
}

fn describe(deployment: &Deployment, server: &Server) -> serde_json::Value {
    serde_json::json!({
        "deployment": deployment.id, "digest": deployment.digest, "size": deployment.size, "lock": deployment.lock,
        "wall": deployment.manifest.wall, "boundary": deployment.manifest.boundary,
        "instead_of": server.current.as_ref().map(|current| &current.id),
        "proposed_by": deployment.proposed_by, "approved_by": deployment.approved_by,
    })
}

/// Makes a deployment current where one key is enough, and proposes it where two are needed. Every way to change what callers
/// reach goes through here, or through [`Registry::approve`].
fn put_forward(
    transaction: &Transaction<'_>,
    directory: &Directory,
    server: &Server,
    deployment: Deployment,
    actor: &Actor,
    action: &str,
) -> Result<Wish<Arc<Deployment>>, RegistryError> {
    match Consent::of_one(tenant_of(directory, &server.tenant)?) {
        Some(consent) => {
            // Nobody proposed it this time, and nobody agreed.
            let alone =
                Deployment { proposed_by: None, proposed_at: None, approved_by: None, approved_at: None, ..deployment };
            make_current(transaction, server, alone, actor, action, consent)
        }
        None => propose(transaction, server, deployment, actor),
    }
}

/// It waits for a second key. Callers reach what they reached before.
fn propose(
    transaction: &Transaction<'_>,
    server: &Server,
    deployment: Deployment,
    actor: &Actor,
) -> Result<Wish<Arc<Deployment>>, RegistryError> {
    let at = now();
    transaction.execute(
        "UPDATE deployments SET pending = 1, stale = 0, approval = NULL, approved_by = NULL, approved_at = NULL,
             proposed_by = ?1, proposed_step = ?2, proposed_at = ?3
         WHERE tenant = ?4 AND server = ?5 AND id = ?6",
        (&actor.0, server.step + 1, at, &server.tenant, &server.name, &deployment.id),
    )?;
    let deployment = Arc::new(Deployment {
        pending: true,
        stale: false,
        proposed_by: Some(actor.0.clone()),
        proposed_at: Some(at),
        approved_by: None,
        approved_at: None,
        ..deployment
    });
    let detail = describe(&deployment, server);
    // The one in quarantine may be proposed again; its lock is another one then.
    let is_current = server.current.as_ref().is_some_and(|current| current.id == deployment.id);
    let current = if is_current { Some(deployment.clone()) } else { server.current.clone() };
    let edit = Edit::Server(Arc::new(Server { current, ..server.clone() }));
    let event = event(actor, &server.tenant, &server.name, "server.propose", Some(detail));
    Ok(Wish::Change(Change { edits: vec![edit], event, answer: deployment }))
}

fn make_current(
    transaction: &Transaction<'_>,
    server: &Server,
    deployment: Deployment,
    actor: &Actor,
    action: &str,
    _: Consent,
) -> Result<Wish<Arc<Deployment>>, RegistryError> {
    let (step, at) = (server.step + 1, now());
    let deployment = Deployment { pending: false, stale: false, activated_at: Some(at), ..deployment };
    // What else waits was proposed for the step that is taken now.
    transaction.execute(
        "UPDATE deployments SET pending = 0, stale = 1 WHERE pending AND tenant = ?1 AND server = ?2",
        (&server.tenant, &server.name),
    )?;
    transaction.execute(
        "UPDATE deployments SET pending = 0, stale = 0, activated_at = ?1, proposed_by = ?2, proposed_at = ?3,
             approved_by = ?4, approved_at = ?5
         WHERE tenant = ?6 AND server = ?7 AND id = ?8",
        (
            at,
            &deployment.proposed_by,
            deployment.proposed_at,
            &deployment.approved_by,
            deployment.approved_at,
            &server.tenant,
            &server.name,
            &deployment.id,
        ),
    )?;
    transaction.execute(
        "UPDATE servers SET current = ?1, step = ?2, quarantine = NULL WHERE tenant = ?3 AND name = ?4",
        (&deployment.id, step, &server.tenant, &server.name),
    )?;
    let detail = describe(&deployment, server);
    let deployment = Arc::new(deployment);
    let current = Some(deployment.clone());
    let edit = Edit::Server(Arc::new(Server { current, step, quarantine: None, ..server.clone() }));
    let event = event(actor, &server.tenant, &server.name, action, Some(detail));
    Ok(Wish::Change(Change { edits: vec![edit], event, answer: deployment }))
}

/// Forgets the oldest deployments of a server that has many, but never its current one. Whether there were any.
fn prune(transaction: &Transaction<'_>, tenant: &str, server: &str) -> Result<bool, RegistryError> {
    let pruned = transaction.execute(
        "WITH sizes AS (
             SELECT number, id, deployments.size - coalesce(layers.size, 0) AS files,
                 iif(row_number() OVER (PARTITION BY layer ORDER BY number DESC) = 1, coalesce(layers.size, 0), 0) AS layer
             FROM deployments
                 LEFT JOIN layers ON layers.tenant = deployments.tenant AND layers.digest = deployments.layer
             WHERE deployments.tenant = ?1 AND server = ?2
         )
         DELETE FROM deployments WHERE number IN (
             SELECT number FROM (
                 SELECT number, id, row_number() OVER newest AS place,
                     sum(files) OVER newest AS files, sum(layer) OVER newest AS layers
                 FROM sizes WINDOW newest AS (ORDER BY number DESC)
             )
             WHERE (place > ?3 OR files > ?4 OR layers > ?5)
                 AND id IS NOT (SELECT current FROM servers WHERE tenant = ?1 AND name = ?2)
         )",
        (tenant, server, KEPT_DEPLOYMENTS, KEPT_BYTES, KEPT_LAYER_BYTES),
    )?;
    if pruned > 0 {
        drop_unused(transaction, tenant)?;
    }
    Ok(pruned > 0)
}

/// Bytes of what it runs in.
fn layer_size(transaction: &Transaction<'_>, new: &NewDeployment) -> Result<u64, RegistryError> {
    let Some(digest) = &new.layer else { return Ok(0) };
    rows::size(transaction, &new.tenant, digest)?.ok_or_else(|| RegistryError::Conflict {
        what: format!("the layer `{digest}` is not there"),
        hint: Some("upload it first; one that no deployment runs in is kept for an hour".to_owned()),
    })
}

/// Forgets what no deployment has any more. What is on the disk beside the database goes when that is on record.
fn drop_unused(transaction: &Transaction<'_>, tenant: &str) -> Result<(), RegistryError> {
    rows::drop_unused(transaction, Some(tenant))?;
    transaction.execute(
        "DELETE FROM files WHERE tenant = ?1 AND NOT EXISTS (
             SELECT 1 FROM deployment_files
             WHERE deployment_files.tenant = files.tenant AND deployment_files.digest = files.digest
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
