//! Secrets of a tenant: set, replaced and removed here, and never shown.

use super::access::Asker;
use super::body::{self, Names, SMALL};
use super::error::Error;
use super::{Admin, schema};
use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use egress::Pattern;
use registry::{PolicyChange, Registry, Role, SecretInfo, SecretPolicy, Timestamp};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// A secret without its value, which nobody is shown.
#[derive(Serialize, ToSchema)]
pub struct SecretView {
    name: String,
    /// Counts how often it was set.
    version: u64,
    /// The hosts that each server may send it to. A server that is not named may not use it.
    #[schema(value_type = schema::SecretPolicy)]
    policy: SecretPolicy,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Servers whose current deployment is bound to it.
    servers: Vec<String>,
}

#[derive(Serialize, ToSchema)]
pub struct SecretList {
    secrets: Vec<SecretView>,
    /// Names that current deployments are bound to and that have no value.
    missing: Vec<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretOrder {
    /// 12 bytes to 16 KiB.
    #[schema(value_type = String)]
    value: SecretString,
    /// A change of its policy, as in `PATCH`. Without it the policy stays; a new secret has none, so no server may use it.
    #[serde(default)]
    #[schema(required = false, value_type = schema::PolicyChange)]
    policy: PolicyChange,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyOrder {
    #[schema(value_type = schema::PolicyChange)]
    policy: PolicyChange,
}

impl PolicyOrder {
    /// A change whose hosts requests can be held against.
    pub async fn read(request: Request) -> Result<PolicyChange, Error> {
        let PolicyOrder { policy } = body::json(request, SMALL).await?;
        check(&policy)?;
        Ok(policy)
    }
}

/// Refuses hosts that no request could ever match.
pub fn check(change: &PolicyChange) -> Result<(), Error> {
    change.hosts().try_for_each(|host| match Pattern::parse(host) {
        Ok(_) => Ok(()),
        Err(denied) => Err(Error::bad_body(format!("`policy`: {}", denied.message))),
    })
}

impl SecretView {
    fn of(info: SecretInfo, bound: &[(String, String)]) -> SecretView {
        let servers = bound.iter().filter(|(_, name)| *name == info.name).map(|(server, _)| server.clone()).collect();
        let SecretInfo { name, version, policy, created_at, updated_at } = info;
        SecretView { name, version, policy, created_at, updated_at, servers }
    }
}

/// Set a secret, or replace its value. The answer says which version it is now.
///
/// Role: admin.
#[utoipa::path(put, path = "/tenants/{tenant}/secrets/{name}", tag = "secrets", operation_id = "set_secret",
    params(("tenant" = String, Path), ("name" = String, Path)), request_body = SecretOrder,
    responses((status = OK, body = SecretView)))]
pub async fn set(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, name)): Names<(String, String)>,
    request: Request,
) -> Result<Json<SecretView>, Error> {
    asker.runs(&admin.app.registry().directory(), &tenant)?;
    let SecretOrder { value, policy } = body::json(request, SMALL).await?;
    check(&policy)?;
    let (actor, of) = (asker.actor(), tenant.clone());
    let set = move |registry: &Registry| registry.set_secret_with(&actor, &of, &name, value, &policy);
    let info = admin.registry(set).await?;
    Ok(Json(SecretView::of(info, &bound(&admin, &tenant))))
}

/// Change which servers may use a secret and which hosts it may go to. Its value stays. It counts from the next request on.
///
/// Role: admin.
#[utoipa::path(patch, path = "/tenants/{tenant}/secrets/{name}", tag = "secrets", operation_id = "allow_secret",
    params(("tenant" = String, Path), ("name" = String, Path)), request_body = PolicyOrder,
    responses((status = OK, body = SecretView)))]
pub async fn allow(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, name)): Names<(String, String)>,
    request: Request,
) -> Result<Json<SecretView>, Error> {
    asker.runs(&admin.app.registry().directory(), &tenant)?;
    let policy = PolicyOrder::read(request).await?;
    let (actor, of) = (asker.actor(), tenant.clone());
    let info = admin.registry(move |registry| registry.allow_secret(&actor, &of, &name, &policy)).await?;
    Ok(Json(SecretView::of(info, &bound(&admin, &tenant))))
}

/// List the secrets, by name, without their values.
///
/// Role: deploy.
#[utoipa::path(get, path = "/tenants/{tenant}/secrets", tag = "secrets", operation_id = "list_secrets",
    params(("tenant" = String, Path)), responses((status = OK, body = SecretList)))]
pub async fn list(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names(tenant): Names<String>,
) -> Result<Json<SecretList>, Error> {
    asker.tenant(&admin.app.registry().directory(), &tenant)?;
    asker.role(Role::Deploy)?;
    asker.whole_tenant()?;
    let of = tenant.clone();
    let known = admin.registry(move |registry| registry.secrets(&of)).await?;
    let bound = bound(&admin, &tenant);
    let mut missing: Vec<_> = bound.iter().map(|(_, name)| name.clone()).collect();
    missing.retain(|name| known.iter().all(|info| info.name != *name));
    missing.sort();
    missing.dedup();
    Ok(Json(SecretList { secrets: known.into_iter().map(|info| SecretView::of(info, &bound)).collect(), missing }))
}

/// Remove a secret. Requests that need it are refused from then on.
///
/// Role: admin.
#[utoipa::path(delete, path = "/tenants/{tenant}/secrets/{name}", tag = "secrets", operation_id = "remove_secret",
    params(("tenant" = String, Path), ("name" = String, Path)), responses((status = NO_CONTENT)))]
pub async fn remove(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, name)): Names<(String, String)>,
) -> Result<StatusCode, Error> {
    asker.runs(&admin.app.registry().directory(), &tenant)?;
    let actor = asker.actor();
    admin.registry(move |registry| registry.remove_secret(&actor, &tenant, &name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Make a new key for all that the tenant has sealed, and seal it anew. The values stay.
///
/// Role: admin.
#[utoipa::path(post, path = "/tenants/{tenant}/secrets/rotate", tag = "secrets", operation_id = "rotate_secrets",
    params(("tenant" = String, Path)), responses((status = NO_CONTENT)))]
pub async fn rotate(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names(tenant): Names<String>,
) -> Result<StatusCode, Error> {
    asker.runs(&admin.app.registry().directory(), &tenant)?;
    let actor = asker.actor();
    admin.registry(move |registry| registry.rotate_tenant_key(&actor, &tenant)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Take the master key that the configuration names by now, and seal the tenants' keys with it.
///
/// Role: operator.
#[utoipa::path(post, path = "/host/master-key", tag = "secrets", operation_id = "rotate_master_key",
    responses((status = NO_CONTENT)))]
pub async fn rotate_master(State(admin): State<Arc<Admin>>, asker: Asker) -> Result<StatusCode, Error> {
    asker.operator()?;
    let (app, actor) = (admin.app.clone(), asker.actor());
    let key = tokio::task::spawn_blocking(move || app.master_key()).await.map_err(|error| Error::internal(&error))?;
    let key = key.map_err(|reason| Error::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_configuration", reason))?;
    admin.registry(move |registry| registry.rotate_master_key(&actor, key)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Which servers are bound to which secrets.
fn bound(admin: &Admin, tenant: &str) -> Vec<(String, String)> {
    let directory = admin.app.registry().directory();
    let servers = directory.tenants.get(tenant).into_iter().flat_map(|tenant| tenant.servers.values());
    let current = servers.filter_map(|server| server.current.as_ref());
    let named = current.flat_map(|current| {
        let names = current.manifest.secrets.iter().map(|name| (current.server.clone(), name.clone()));
        names.collect::<Vec<_>>()
    });
    named.collect()
}
