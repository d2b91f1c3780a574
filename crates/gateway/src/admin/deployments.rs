//! Deployments.

mod queue;

use super::access::Asker;
use super::body::{self, Names, Query};
use super::error::Error;
use super::page::{self, PageQuery};
use super::{Admin, schema};
use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use bytes::Bytes;
use policy::Ask;
use registry::{Deployment, Manifest, NewDeployment, RegistryError, Role, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;
use utoipa::ToSchema;

pub use queue::Queue;

/// A body with the largest source that any host allows, and what is around it.
const LARGE: usize = 33 << 20;

/// Bytes of a file's name.
const FILE_NAME: usize = 200;

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
    /// SHA-256 of the source, as hex.
    digest: String,
    /// Bytes of the source.
    size: u64,
    #[schema(value_type = schema::Manifest)]
    manifest: Manifest,
}

impl DeploymentView {
    pub fn of(deployment: &Deployment, current: bool) -> DeploymentView {
        DeploymentView {
            id: deployment.id.clone(),
            server: deployment.server.clone(),
            current,
            created_at: deployment.created_at,
            created_by: deployment.created_by.clone(),
            digest: deployment.digest.clone(),
            size: deployment.size,
            manifest: deployment.manifest.clone(),
        }
    }
}

/// A deployment and all that it offers.
#[derive(Serialize, ToSchema)]
pub struct DeploymentDetail {
    #[serde(flatten)]
    deployment: DeploymentView,
    #[schema(value_type = schema::Surface)]
    surface: Box<RawValue>,
}

#[derive(Serialize, ToSchema)]
pub struct DeploymentPage {
    deployments: Vec<DeploymentView>,
    /// `cursor` of the next page.
    next: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeploymentOrder {
    /// The text of the entry module.
    source: String,
    #[serde(default, deserialize_with = "body::object")]
    #[schema(required = false, value_type = schema::Manifest)]
    manifest: Manifest,
}

/// A deployment that callers reach from now on.
#[derive(Serialize, ToSchema)]
pub struct DeploymentMade {
    server: String,
    /// Its id.
    deployment: String,
    /// Where MCP clients reach the server.
    url: String,
    #[schema(value_type = schema::Surface)]
    surface: Box<RawValue>,
}

/// Deploy a version of a server, and the server itself if it is new.
///
/// Role: deploy. The code is initialised behind its wall first; what does not initialise is refused with the reason and
/// changes nothing. The same code with the same manifest is the same deployment.
#[utoipa::path(post, path = "/tenants/{tenant}/servers/{server}/deployments", tag = "deployments", operation_id = "deploy",
    params(("tenant" = String, Path), ("server" = String, Path)), request_body = DeploymentOrder,
    responses((status = CREATED, body = DeploymentMade)))]
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
    let DeploymentOrder { source, manifest } = body::json(request, LARGE).await?;
    check_manifest(&admin, &manifest)?;
    let source = Bytes::from(source);
    let alone = admin.deploying.alone(&tenant, &server).await;
    let surface = initialise(&admin, &tenant, &server, source.clone(), &manifest).await?;
    let new = NewDeployment { tenant, server, source, manifest, surface };
    let actor = asker.actor();
    let made = admin
        .registry(move |registry| {
            let _alone = alone;
            registry.deploy(&actor, new)
        })
        .await?;
    let made = DeploymentMade {
        url: admin.app.public_url(&made.tenant, &made.server),
        server: made.server.clone(),
        deployment: made.id.clone(),
        surface: made.surface.clone(),
    };
    Ok((StatusCode::CREATED, Json(made)))
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
    let current = found.current.as_ref().map(|current| current.id.as_str());
    let shown = page.entries.iter().map(|entry| DeploymentView::of(entry, current == Some(&entry.id))).collect();
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
    let deployments = admin.registry(move |registry| registry.deployments(&tenant, &server)).await?;
    let deployment = deployments.into_iter().find(|entry| entry.id == id).ok_or_else(Error::not_found)?;
    let current = found.current.as_ref().is_some_and(|current| current.id == deployment.id);
    let view = DeploymentView::of(&deployment, current);
    Ok(Json(DeploymentDetail { deployment: view, surface: deployment.surface }))
}

/// Make an earlier deployment current again.
///
/// Role: deploy.
#[utoipa::path(post, path = "/tenants/{tenant}/servers/{server}/deployments/{id}/activate", tag = "deployments",
    operation_id = "activate", params(("tenant" = String, Path), ("server" = String, Path), ("id" = String, Path)),
    responses((status = OK, body = DeploymentView)))]
pub async fn activate(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, server, id)): Names<(String, String, String)>,
) -> Result<Json<DeploymentView>, Error> {
    asker.server(&admin.app.registry().directory(), &tenant, &server)?;
    asker.role(Role::Deploy)?;
    let alone = admin.deploying.alone(&tenant, &server).await;
    let (actor, allowance) = (asker.actor(), admin.app.allowance().clone());
    let active = admin
        .registry(move |registry| {
            let _alone = alone;
            let deployments = registry.deployments(&tenant, &server)?;
            // What was allowed when it was deployed need not be allowed today.
            if let Some(wanted) = deployments.iter().find(|deployment| deployment.id == id)
                && let Err(refusal) = policy::permit(&ask(&wanted.manifest), &allowance)
            {
                return Ok(Err(refused(&refusal)));
            }
            registry.activate(&actor, &tenant, &server, &id).map(Ok)
        })
        .await??;
    Ok(Json(DeploymentView::of(&active, true)))
}

/// Runs the code's initialisation behind its wall and brings back what it offers.
async fn initialise(
    admin: &Admin,
    tenant: &str,
    server: &str,
    source: Bytes,
    manifest: &Manifest,
) -> Result<Box<RawValue>, Error> {
    admin.app.try_deployment(tenant, server, source, manifest).await.map_err(|failure| match failure.code.as_str() {
        "busy" | "compartment_lost" | "wall_unavailable" => {
            Error::new(StatusCode::SERVICE_UNAVAILABLE, failure.code, failure.message).retry_after(1)
        }
        _ => Error::new(StatusCode::UNPROCESSABLE_ENTITY, failure.code, failure.message),
    })
}

/// Refuses before anything is started.
fn check_manifest(admin: &Admin, manifest: &Manifest) -> Result<(), Error> {
    let name = &manifest.file_name;
    if name.is_empty() || name.len() > FILE_NAME || name.chars().any(char::is_control) {
        let message = format!("`manifest.file_name` must have 1 to {FILE_NAME} bytes and no control characters");
        return Err(Error::bad_body(message));
    }
    policy::permit(&ask(manifest), &admin.app.allowance()).map_err(|refusal| refused(&refusal))?;
    Ok(())
}

fn ask(manifest: &Manifest) -> Ask {
    Ask { limits: manifest.limits.clone(), boundary: manifest.boundary, jit: manifest.jit }
}

fn refused(refusal: &policy::Refusal) -> Error {
    Error::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", refusal.to_string())
        .hint("GET /admin/v1/limits says what this host allows")
}
