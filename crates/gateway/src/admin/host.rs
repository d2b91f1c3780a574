//! The host itself.

use super::access::Asker;
use super::error::Error;
use super::{Admin, schema};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use policy::Limits;
use registry::Role;
use sandbox::PoolState;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// What a deployment may ask for.
#[derive(Serialize, ToSchema)]
pub struct LimitsView {
    /// What this host allows at most.
    #[schema(value_type = schema::Limits)]
    most: Limits,
    /// The least with which anything runs.
    #[schema(value_type = schema::Limits)]
    least: Limits,
    /// What a deployment has that asks for nothing.
    #[schema(value_type = schema::Limits)]
    default: Limits,
    /// Whether this host allows `jit`.
    jit: bool,
}

#[derive(Serialize, ToSchema)]
pub struct HostView {
    version: String,
    uptime_s: u64,
    tenants: usize,
    servers: usize,
    /// By name.
    walls: BTreeMap<String, PoolView>,
    /// What is wrong with the data directory, in words; empty when all is well.
    problems: Vec<String>,
}

/// Who asks.
#[derive(Serialize, ToSchema)]
pub struct MeView {
    /// Id of the key; null for a token of the issuer.
    key: Option<String>,
    /// What the audit log calls them.
    subject: String,
    #[schema(value_type = schema::Role)]
    role: Role,
    /// Null for an operator.
    tenant: Option<String>,
}

/// What a wall's pool holds right now.
#[derive(Serialize, ToSchema)]
pub struct PoolView {
    deployments: usize,
    /// Compartments that wait ready.
    spares: usize,
    /// Compartments that serve many calls.
    shared: usize,
    /// Calls.
    running: usize,
    /// Calls that wait for a place.
    waiting: usize,
    /// Of those, the most of one tenant.
    longest_line: usize,
}

impl From<PoolState> for PoolView {
    fn from(state: PoolState) -> PoolView {
        PoolView {
            deployments: state.deployments,
            spares: state.spares,
            shared: state.shared,
            running: state.running,
            waiting: state.waiting,
            longest_line: state.longest_line,
        }
    }
}

/// The last line of the audit log. Whoever writes it down can prove later that nothing before it was changed.
#[derive(Serialize, ToSchema)]
pub struct AuditHead {
    /// Its number.
    seq: u64,
    /// Its hash, as hex.
    hash: String,
}

/// What a deployment may ask for.
///
/// Role: any key.
#[utoipa::path(get, path = "/limits", tag = "host", operation_id = "get_limits",
    responses((status = OK, body = LimitsView)))]
pub async fn limits(State(admin): State<Arc<Admin>>, _asker: Asker) -> Json<LimitsView> {
    let allowance = admin.app.allowance();
    Json(LimitsView {
        most: allowance.most.clone(),
        least: Limits::LEAST,
        default: Limits::default(),
        jit: allowance.jit,
    })
}

/// Look at the host.
///
/// Role: operator.
#[utoipa::path(get, path = "/host", tag = "host", operation_id = "get_host", responses((status = OK, body = HostView)))]
pub async fn look(State(admin): State<Arc<Admin>>, asker: Asker) -> Result<Json<HostView>, Error> {
    asker.operator()?;
    let directory = admin.app.registry().directory();
    let pools = admin.app.pool_state().into_iter();
    Ok(Json(HostView {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_s: admin.app.uptime().as_secs(),
        tenants: directory.tenants.len(),
        servers: directory.tenants.values().map(|tenant| tenant.servers.len()).sum(),
        walls: pools.map(|(wall, state)| (wall.to_owned(), state.into())).collect(),
        problems: admin.app.registry().health().problems,
    }))
}

/// The last line of the audit log.
///
/// Role: operator.
#[utoipa::path(get, path = "/audit/head", tag = "host", operation_id = "get_audit_head",
    responses((status = OK, body = AuditHead)))]
pub async fn audit_head(State(admin): State<Arc<Admin>>, asker: Asker) -> Result<Json<AuditHead>, Error> {
    asker.operator()?;
    let head = admin.registry(|registry| Ok(registry.audit().head())).await?;
    Ok(Json(AuditHead { seq: head.seq, hash: head.hash }))
}

/// A configuration that was read again.
#[derive(Serialize, ToSchema)]
pub struct ReloadView {
    /// Keys that differ from what the host runs with and take effect when it starts again.
    at_start: Vec<String>,
}

/// Read the configuration again. One that is wrong is refused with the reason and changes nothing.
///
/// Role: operator.
#[utoipa::path(post, path = "/reload", tag = "host", operation_id = "reload",
    responses((status = OK, body = ReloadView)))]
pub async fn reload(State(admin): State<Arc<Admin>>, asker: Asker) -> Result<Json<ReloadView>, Error> {
    asker.operator()?;
    let app = admin.app.clone();
    let reloaded = tokio::task::spawn_blocking(move || app.reload()).await.map_err(|error| Error::internal(&error))?;
    match reloaded {
        Ok(at_start) => Ok(Json(ReloadView { at_start })),
        Err(reason) => Err(Error::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_configuration", reason)
            .hint("nothing was changed; `bulkhead config check` says more")),
    }
}

/// Learn whose key this is.
///
/// Role: any.
#[utoipa::path(get, path = "/me", tag = "keys", operation_id = "get_me", responses((status = OK, body = MeView)))]
pub async fn me(asker: Asker) -> Json<MeView> {
    let caller = asker.caller;
    let key = caller.key.map(|key| key.id.clone());
    Json(MeView { key, subject: caller.subject, role: caller.role, tenant: caller.tenant })
}
