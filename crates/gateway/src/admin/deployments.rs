//! Deployments.

mod queue;
mod upload;

use super::access::Asker;
use super::body::{self, Names, Query};
use super::error::Error;
use super::page::{self, PageQuery};
use super::{Admin, schema};
use crate::mcp::allowed::{NotAllowed, allowed};
use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use bundle::{Change, Contents, FileChange, Lock};
use bytes::Bytes;
use policy::Ask;
use registry::{Bundle, Deployment, Manifest, NewDeployment, Next, RegistryError, Role, Server, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;
use upload::{Accepted, DeploymentOrder, Upload};
use utoipa::{IntoParams, ToSchema};

pub use queue::Queue;

/// A body with the largest source that any host allows, and what is around it.
const LARGE: usize = 36 << 20;
/// Files of one answer.
const MOST_FILES: usize = 1000;

/// One version of a server.
#[derive(Serialize, ToSchema)]
pub struct DeploymentView {
    id: String,
    server: String,
    /// Whether it is what callers reach.
    current: bool,
    created_at: Timestamp,
    /// Id of the key that made it.
    created_by: String,
    /// SHA-256 of the code, as hex.
    digest: String,
    /// Bytes of all its files.
    size: u64,
    /// Digest of what was signed.
    lock_digest: String,
    /// Public keys of who signed it beside the tenant, as hex.
    publishers: Vec<String>,
    /// What it is now.
    state: Standing,
    /// Callers do not reach it before somebody with another key agreed.
    pending: bool,
    /// Names the proposal, while it waits: whoever agrees repeats it.
    proposal: Option<String>,
    /// Who proposed it, where the tenant asks for two keys.
    proposed_by: Option<String>,
    proposed_at: Option<Timestamp>,
    /// Who agreed to that.
    approved_by: Option<String>,
    approved_at: Option<Timestamp>,
    /// When callers last began to reach it; null if they never did.
    activated_at: Option<Timestamp>,
    #[schema(value_type = schema::Manifest)]
    manifest: Manifest,
}

/// What a deployment is now.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DeploymentState)]
pub enum Standing {
    /// Callers reach it.
    Current,
    /// It waits for a second key.
    Proposed,
    /// It waited, and another one became current meanwhile: it has to be proposed again.
    Stale,
    /// None of these.
    Earlier,
}

impl DeploymentView {
    pub fn of(deployment: &Deployment, server: &Server) -> DeploymentView {
        let current = server.current.as_ref().is_some_and(|current| current.id == deployment.id);
        let state = match deployment {
            Deployment { pending: true, .. } => Standing::Proposed,
            _ if current => Standing::Current,
            Deployment { stale: true, .. } => Standing::Stale,
            _ => Standing::Earlier,
        };
        DeploymentView {
            id: deployment.id.clone(),
            server: deployment.server.clone(),
            current,
            created_at: deployment.created_at,
            created_by: deployment.created_by.clone(),
            digest: deployment.digest.clone(),
            size: deployment.size,
            lock_digest: deployment.lock.to_string(),
            publishers: deployment.publishers.iter().map(ToString::to_string).collect(),
            state,
            pending: deployment.pending,
            proposal: server.proposal(deployment).map(|digest| digest.to_string()),
            proposed_by: deployment.proposed_by.clone(),
            proposed_at: deployment.proposed_at,
            approved_by: deployment.approved_by.clone(),
            approved_at: deployment.approved_at,
            activated_at: deployment.activated_at,
            manifest: deployment.manifest.clone(),
        }
    }
}

/// A deployment, all that it offers, and what was signed.
#[derive(Serialize, ToSchema)]
pub struct DeploymentDetail {
    #[serde(flatten)]
    deployment: DeploymentView,
    #[schema(value_type = schema::Surface)]
    surface: Box<RawValue>,
    #[schema(value_type = schema::Lock)]
    lock: Value,
    #[schema(value_type = schema::Seal)]
    seal: Value,
}

#[derive(Serialize, ToSchema)]
pub struct DeploymentPage {
    deployments: Vec<DeploymentView>,
    /// `cursor` of the next page.
    next: Option<String>,
}

/// A deployment that was stored.
#[derive(Serialize, ToSchema)]
pub struct DeploymentMade {
    server: String,
    /// Its id.
    deployment: String,
    /// Where MCP clients reach the server.
    url: String,
    /// Callers do not reach it before somebody with another key agreed.
    pending: bool,
    #[schema(value_type = schema::Surface)]
    surface: Box<RawValue>,
}

impl DeploymentMade {
    fn of(made: &Deployment, admin: &Admin) -> DeploymentMade {
        DeploymentMade {
            url: admin.app.public_url(&made.tenant, &made.server),
            server: made.server.clone(),
            deployment: made.id.clone(),
            pending: made.pending,
            surface: made.surface.clone(),
        }
    }
}

/// Deploy a version of a server, and the server itself if it is new.
///
/// Role: deploy. What is uploaded was sealed with a key of that role. Seal, files, manifest, step and drift are looked at
/// first; only then is the code initialised behind its wall, and what it shows must be what was signed. What is refused
/// changes nothing. The same content is the same deployment. With 202 it waits for approval.
#[utoipa::path(post, path = "/tenants/{tenant}/servers/{server}/deployments", tag = "deployments", operation_id = "deploy",
    params(("tenant" = String, Path), ("server" = String, Path)), request_body = DeploymentOrder,
    responses((status = CREATED, body = DeploymentMade), (status = ACCEPTED, body = DeploymentMade)))]
pub async fn create(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, server)): Names<(String, String)>,
    request: Request,
) -> Result<(StatusCode, Json<DeploymentMade>), Error> {
    asker.tenant(&admin.app.registry().directory(), &tenant)?;
    asker.server_name(&server)?;
    asker.role(Role::Deploy)?;
    if !registry::is_name(&server) {
        return Err(RegistryError::BadName { kind: "server", name: server.chars().take(64).collect() }.into());
    }
    let _place = admin.deploying.enter(&tenant)?;
    let order: DeploymentOrder = body::json(request, LARGE).await?;
    let upload = {
        let (tenant, server) = (tenant.clone(), server.clone());
        admin.registry(move |registry| Ok(Upload::read(order, &tenant, &server, registry))).await??
    };
    permitted(&admin, &upload.lock)?;
    may_use_secrets(&admin, &tenant, &upload.lock).await?;
    let alone = admin.deploying.alone(&tenant, &server).await;
    let accepted = {
        let tenant = tenant.clone();
        admin.registry(move |registry| upload::fits(registry, &tenant, upload)).await??
    };
    let new = match accepted {
        Accepted::Known(current) => return Ok((StatusCode::CREATED, Json(DeploymentMade::of(&current, &admin)))),
        Accepted::New { id, new } => {
            let surface = initialise(&admin, &tenant, &id, &new).await?;
            NewDeployment { surface, ..*new }
        }
    };
    let actor = asker.actor();
    let made = admin
        .registry(move |registry| {
            let _alone = alone;
            registry.deploy(&actor, new)
        })
        .await?;
    let status = if made.pending { StatusCode::ACCEPTED } else { StatusCode::CREATED };
    Ok((status, Json(DeploymentMade::of(&made, &admin))))
}

/// What a deployment of this server has to be made for next.
#[derive(Serialize, ToSchema)]
pub struct NextStep {
    step: u64,
    /// What it would replace.
    current: Option<NextCurrent>,
    /// Whether every change of what it runs needs the agreement of a second key.
    approval: bool,
    /// Ports of loopback that servers may reach here: none but for who develops on their own machine.
    loopback: Vec<u16>,
}

#[derive(Serialize, ToSchema)]
pub struct NextCurrent {
    deployment: String,
    #[schema(value_type = schema::Lock)]
    lock: Value,
    quarantine: Option<String>,
}

/// Learn what a new deployment has to be made for.
///
/// Role: deploy. The server need not exist yet.
#[utoipa::path(get, path = "/tenants/{tenant}/servers/{server}/next", tag = "deployments", operation_id = "get_next_step",
    params(("tenant" = String, Path), ("server" = String, Path)), responses((status = OK, body = NextStep)))]
pub async fn next(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, server)): Names<(String, String)>,
) -> Result<Json<NextStep>, Error> {
    let approval = asker.tenant(&admin.app.registry().directory(), &tenant)?.approval;
    asker.server_name(&server)?;
    asker.role(Role::Deploy)?;
    let loopback = admin.app.loopback();
    let next = admin
        .registry(move |registry| {
            let Next { step, current } = registry.next(&tenant, &server)?;
            let quarantine = registry.directory().server(&tenant, &server).and_then(|server| server.quarantine.clone());
            let current = match current {
                None => None,
                Some(current) => {
                    let (lock, _) = registry.lock(&tenant, &server, &current.id)?;
                    Some(NextCurrent { deployment: current.id.clone(), lock: lock.value(), quarantine })
                }
            };
            Ok(NextStep { step, current, approval, loopback })
        })
        .await?;
    Ok(Json(next))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalOrder {
    /// For the deployment's lock, made with the approver's own key.
    #[schema(value_type = schema::Seal)]
    seal: Value,
    /// `proposal` of the deployment as it was shown. If it was replaced or overtaken since, nothing is agreed to.
    proposal: String,
}

/// Agree to a deployment that waits for it; callers reach it from then on.
///
/// Role: deploy. Neither the key nor the seal may be of the party that proposed it: a key, the keys that it made, and the keys
/// that those made are one party.
#[utoipa::path(post, path = "/tenants/{tenant}/servers/{server}/deployments/{id}/approve", tag = "deployments",
    operation_id = "approve", params(("tenant" = String, Path), ("server" = String, Path), ("id" = String, Path)),
    request_body = ApprovalOrder, responses((status = OK, body = DeploymentMade)))]
pub async fn approve(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, server, id)): Names<(String, String, String)>,
    request: Request,
) -> Result<Json<DeploymentMade>, Error> {
    asker.server(&admin.app.registry().directory(), &tenant, &server)?;
    asker.role(Role::Deploy)?;
    let ApprovalOrder { seal, proposal } = body::json(request, body::SMALL).await?;
    let proposal: bundle::Digest =
        proposal.parse().map_err(|_| Error::bad_body("`proposal` is the digest of a proposal: 64 digits of hex"))?;
    let directory = admin.app.registry().directory();
    let approval = upload::seal(&seal)?;
    let (key_id, key) = upload::sealing_key(&directory, &tenant, &server, &approval)?;
    let alone = admin.deploying.alone(&tenant, &server).await;
    let (actor, allowance) = (asker.actor(), admin.app.allowance());
    let made = admin
        .registry(move |registry| {
            let _alone = alone;
            let (lock, _) = registry.lock(&tenant, &server, &id)?;
            // Otherwise the seal is for what is not there any more, and would be called forged.
            registry.check_proposal(&tenant, &server, &id, &proposal)?;
            if let Err(error) = approval.verify(&lock, key_id.as_str(), &key) {
                return Ok(Err(upload::refused(&error.into())));
            }
            if let Err(refusal) = policy::permit(&ask(&Manifest::from(&lock)), &allowance) {
                return Ok(Err(refused(&refusal)));
            }
            if let Err(refusal) = allowed(registry, &tenant, &lock)? {
                return Ok(Err(secret_refused(refusal)));
            }
            registry.approve(&actor, &tenant, &server, &id, &approval, &proposal).map(Ok)
        })
        .await??;
    Ok(Json(DeploymentMade::of(&made, &admin)))
}

/// List the deployments of a server, newest first.
///
/// Role: deploy.
#[utoipa::path(get, path = "/tenants/{tenant}/servers/{server}/deployments", tag = "deployments",
    operation_id = "list_deployments", params(("tenant" = String, Path), ("server" = String, Path), PageQuery),
    responses((status = OK, body = DeploymentPage)))]
pub async fn list(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, server)): Names<(String, String)>,
    Query(query): Query<PageQuery>,
) -> Result<Json<DeploymentPage>, Error> {
    let found = asker.server(&admin.app.registry().directory(), &tenant, &server)?;
    asker.role(Role::Deploy)?;
    let deployments = admin.registry(move |registry| registry.deployments(&tenant, &server)).await?;
    let page = page::cut(deployments, &query, |deployment| &deployment.id)?;
    let shown = page.entries.iter().map(|entry| DeploymentView::of(entry, &found)).collect();
    Ok(Json(DeploymentPage { deployments: shown, next: page.next }))
}

/// Look at a deployment, and at what it offers.
///
/// Role: deploy.
#[utoipa::path(get, path = "/tenants/{tenant}/servers/{server}/deployments/{id}", tag = "deployments",
    operation_id = "get_deployment", params(("tenant" = String, Path), ("server" = String, Path), ("id" = String, Path)),
    responses((status = OK, body = DeploymentDetail)))]
pub async fn get(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, server, id)): Names<(String, String, String)>,
) -> Result<Json<DeploymentDetail>, Error> {
    let found = asker.server(&admin.app.registry().directory(), &tenant, &server)?;
    asker.role(Role::Deploy)?;
    let (deployment, (lock, seal)) = admin
        .registry(move |registry| {
            Ok((registry.deployment(&tenant, &server, &id)?, registry.lock(&tenant, &server, &id)?))
        })
        .await?;
    let view = DeploymentView::of(&deployment, &found);
    let (lock, seal) = (lock.value(), seal.value());
    Ok(Json(DeploymentDetail { deployment: view, surface: deployment.surface, lock, seal }))
}

/// Make an earlier deployment current again.
///
/// Role: deploy. With 202 it waits for approval, as every change of what callers reach where the tenant asks for two keys.
#[utoipa::path(post, path = "/tenants/{tenant}/servers/{server}/deployments/{id}/activate", tag = "deployments",
    operation_id = "activate", params(("tenant" = String, Path), ("server" = String, Path), ("id" = String, Path)),
    responses((status = OK, body = DeploymentView), (status = ACCEPTED, body = DeploymentView)))]
pub async fn activate(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, server, id)): Names<(String, String, String)>,
) -> Result<(StatusCode, Json<DeploymentView>), Error> {
    asker.server(&admin.app.registry().directory(), &tenant, &server)?;
    asker.role(Role::Deploy)?;
    let alone = admin.deploying.alone(&tenant, &server).await;
    let (actor, allowance) = (asker.actor(), admin.app.allowance().clone());
    let place = (tenant.clone(), server.clone());
    let active = admin
        .registry(move |registry| {
            let _alone = alone;
            let wanted = registry.deployment(&tenant, &server, &id)?;
            // What was allowed when it was deployed need not be allowed today.
            if let Err(refusal) = policy::permit(&ask(&wanted.manifest), &allowance) {
                return Ok(Err(refused(&refusal)));
            }
            if let Err(refusal) = allowed(registry, &tenant, &registry.lock(&tenant, &server, &id)?.0)? {
                return Ok(Err(secret_refused(refusal)));
            }
            registry.activate(&actor, &tenant, &server, &id).map(Ok)
        })
        .await??;
    let status = if active.pending { StatusCode::ACCEPTED } else { StatusCode::OK };
    let now = asker.server(&admin.app.registry().directory(), &place.0, &place.1)?;
    Ok((status, Json(DeploymentView::of(&active, &now))))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FilesQuery {
    /// The deployment to compare with; without it, every file counts as new.
    from: Option<String>,
}

/// The files that differ.
#[derive(Serialize, ToSchema)]
pub struct FileChanges {
    /// The first 1000, by path. Files of a program's layer are below `layer/`.
    #[schema(value_type = Vec<schema::FileChange>)]
    files: Vec<FileChange>,
    /// How many differ.
    count: usize,
}

/// See which files a deployment has, or in which it differs from another.
///
/// Role: deploy.
#[utoipa::path(get, path = "/tenants/{tenant}/servers/{server}/deployments/{id}/files", tag = "deployments",
    operation_id = "list_file_changes",
    params(("tenant" = String, Path), ("server" = String, Path), ("id" = String, Path), FilesQuery),
    responses((status = OK, body = FileChanges)))]
pub async fn files(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, server, id)): Names<(String, String, String)>,
    Query(FilesQuery { from }): Query<FilesQuery>,
) -> Result<Json<FileChanges>, Error> {
    asker.server(&admin.app.registry().directory(), &tenant, &server)?;
    asker.role(Role::Deploy)?;
    // The index of a layer has up to 16 MiB.
    let _place = admin.deploying.enter(&tenant)?;
    let mut files = admin
        .registry(move |registry| {
            let old = from.map_or(Ok(Contents::default()), |from| registry.contents(&tenant, &server, &from))?;
            Ok(old.changes(&registry.contents(&tenant, &server, &id)?))
        })
        .await?;
    let count = files.len();
    files.truncate(MOST_FILES);
    Ok(Json(FileChanges { files, count }))
}

/// Runs the code's initialisation behind its wall and brings back what it shows, which is what was signed.
async fn initialise(admin: &Admin, tenant: &str, id: &str, new: &NewDeployment) -> Result<Box<RawValue>, Error> {
    let lock = new.lock.clone();
    let bundle = match new.layer {
        Some(digest) => {
            let tenant = tenant.to_owned();
            let layer = admin.registry(move |registry| registry.layer(&tenant, &digest)).await?;
            Bundle { lock, source: Bytes::new(), layer: Some(layer) }
        }
        None => {
            let source = new.files.get(new.lock.program.file()).cloned().unwrap_or_default();
            Bundle { lock, source, layer: None }
        }
    };
    admin.app.try_deployment(tenant, id, bundle).await.map_err(|failure| match failure.code.as_str() {
        "busy" | "compartment_lost" | "wall_unavailable" => {
            Error::new(StatusCode::SERVICE_UNAVAILABLE, failure.code, failure.message).retry_after(1)
        }
        _ => Error::new(StatusCode::UNPROCESSABLE_ENTITY, failure.code, failure.message),
    })
}

/// Refuses before anything is started.
fn permitted(admin: &Admin, lock: &Lock) -> Result<(), Error> {
    policy::permit(&ask(&Manifest::from(lock)), &admin.app.allowance()).map_err(|refusal| refused(&refusal))?;
    let refuse = |message: String| Error::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", message);
    let any_host = admin.app.settings().any_host;
    let rules = crate::mcp::offer::rules(lock, any_host).map_err(|denied| refuse(denied.message))?;
    admin.app.check_rules(&rules).map_err(|denied| refuse(denied.message))?;
    crate::mcp::credentials::bindings(lock).map_err(|denied| refuse(denied.message))?;
    Ok(())
}

/// Whether every secret that the lock binds may be used by this server and may go where the lock sends it.
async fn may_use_secrets(admin: &Admin, tenant: &str, lock: &Lock) -> Result<(), Error> {
    let (tenant, lock) = (tenant.to_owned(), lock.clone());
    admin.registry(move |registry| allowed(registry, &tenant, &lock)).await?.map_err(secret_refused)
}

fn secret_refused(refused: NotAllowed) -> Error {
    Error::new(StatusCode::FORBIDDEN, "secret_not_allowed", refused.message)
        .hint(format!("an admin of the tenant allows it with `{}`", refused.command))
}

fn ask(manifest: &Manifest) -> Ask {
    Ask { limits: manifest.limits.clone(), boundary: manifest.boundary, jit: manifest.jit }
}

fn refused(refusal: &policy::Refusal) -> Error {
    Error::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", refusal.to_string())
        .hint("GET /admin/v1/limits says what this host allows")
}

/// Differences, with the words for them.
pub fn changes(changes: &[Change]) -> Value {
    let shown = |change: &Change| {
        let mut value = json!(change);
        value["widens"] = change.widens().into();
        value["text"] = change.to_string().into();
        value
    };
    changes.iter().map(shown).collect()
}
