//! Tenants.

use super::access::Asker;
use super::body::{self, Names, Query, SMALL};
use super::error::Error;
use super::page::{self, PageQuery};
use super::{Admin, schema};
use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use registry::{Quota, Tenant, TenantPatch, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
pub struct TenantView {
    name: String,
    created_at: Timestamp,
    /// Share of a busy host, relative to other tenants.
    weight: u32,
    #[schema(value_type = schema::Quota)]
    quota: Quota,
    /// Whether arguments and results are kept in the audit log, not only their digests.
    recording: bool,
    /// Whether a change of what a server shows or may use needs the agreement of a second key.
    approval: bool,
    /// Servers that this key may use.
    servers: usize,
}

impl TenantView {
    fn of(tenant: &Tenant, asker: &Asker) -> TenantView {
        TenantView {
            name: tenant.name.clone(),
            created_at: tenant.created_at,
            weight: tenant.weight,
            quota: tenant.quota.clone(),
            recording: tenant.recording,
            approval: tenant.approval,
            servers: tenant.servers.keys().filter(|name| asker.caller.may_use_server(name)).count(),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct TenantPage {
    tenants: Vec<TenantView>,
    /// `cursor` of the next page.
    next: Option<String>,
}

/// What can be changed about a tenant.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantChange {
    #[schema(minimum = 1, maximum = 1000)]
    weight: Option<u32>,
    /// Replaces the whole quota.
    #[serde(default, deserialize_with = "some_quota")]
    #[schema(required = false, value_type = schema::Quota)]
    quota: Option<Quota>,
    recording: Option<bool>,
    approval: Option<bool>,
}

impl From<TenantChange> for TenantPatch {
    fn from(change: TenantChange) -> TenantPatch {
        let TenantChange { weight, quota, recording, approval } = change;
        TenantPatch { weight, quota, recording, approval }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantOrder {
    /// Small letters, digits and hyphens.
    name: String,
    #[schema(minimum = 1, maximum = 1000)]
    weight: Option<u32>,
    #[serde(default, deserialize_with = "some_quota")]
    #[schema(required = false, value_type = schema::Quota)]
    quota: Option<Quota>,
    recording: Option<bool>,
    approval: Option<bool>,
}

fn some_quota<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Quota>, D::Error> {
    body::object(deserializer).map(Some)
}

/// A new tenant and its first keys, which are shown this once.
#[derive(Serialize, ToSchema)]
pub struct TenantMade {
    tenant: String,
    admin_key: String,
    deploy_key: String,
    call_key: String,
}

/// Create a tenant.
///
/// Role: operator. The keys in the answer are shown this once.
#[utoipa::path(post, path = "/tenants", tag = "tenants", operation_id = "create_tenant",
    request_body = TenantOrder, responses((status = CREATED, body = TenantMade)))]
pub async fn create(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    request: Request,
) -> Result<(StatusCode, Json<TenantMade>), Error> {
    asker.operator()?;
    let order: TenantOrder = body::json(request, SMALL).await?;
    let TenantOrder { name, weight, quota, recording, approval } = order;
    let settings = TenantPatch { weight, quota, recording, approval };
    let actor = asker.actor();
    let made = admin.registry(move |registry| registry.create_tenant_with(&actor, &name, settings)).await?;
    let made = TenantMade {
        tenant: made.tenant.name.clone(),
        admin_key: made.admin_key.expose().to_owned(),
        deploy_key: made.deploy_key.expose().to_owned(),
        call_key: made.call_key.expose().to_owned(),
    };
    Ok((StatusCode::CREATED, Json(made)))
}

/// List the tenants, by name.
///
/// Role: operator.
#[utoipa::path(get, path = "/tenants", tag = "tenants", operation_id = "list_tenants",
    params(PageQuery), responses((status = OK, body = TenantPage)))]
pub async fn list(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Query(query): Query<PageQuery>,
) -> Result<Json<TenantPage>, Error> {
    asker.operator()?;
    let directory = admin.app.registry().directory();
    let mut tenants: Vec<_> = directory.tenants.values().collect();
    tenants.sort_by(|a, b| a.name.cmp(&b.name));
    let page = page::cut_sorted(tenants, &query, |tenant| &tenant.name)?;
    let tenants = page.entries.into_iter().map(|tenant| TenantView::of(tenant, &asker)).collect();
    Ok(Json(TenantPage { tenants, next: page.next }))
}

/// Look at a tenant.
///
/// Role: any key of the tenant.
#[utoipa::path(get, path = "/tenants/{tenant}", tag = "tenants", operation_id = "get_tenant",
    params(("tenant" = String, Path)), responses((status = OK, body = TenantView)))]
pub async fn get(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names(name): Names<String>,
) -> Result<Json<TenantView>, Error> {
    let tenant = asker.tenant(&admin.app.registry().directory(), &name)?;
    Ok(Json(TenantView::of(&tenant, &asker)))
}

/// Change a tenant.
///
/// Role: admin for `recording` and to turn `approval` on; operator for `weight`, `quota`, and to turn `approval` off.
#[utoipa::path(patch, path = "/tenants/{tenant}", tag = "tenants", operation_id = "change_tenant",
    params(("tenant" = String, Path)), request_body = TenantChange, responses((status = OK, body = TenantView)))]
pub async fn change(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names(name): Names<String>,
    request: Request,
) -> Result<Json<TenantView>, Error> {
    asker.runs(&admin.app.registry().directory(), &name)?;
    let change: TenantChange = body::json(request, SMALL).await?;
    // An admin who could turn it off alone would need no second key for anything.
    if change.weight.is_some() || change.quota.is_some() || change.approval == Some(false) {
        asker.operator()?;
    }
    let (actor, of) = (asker.actor(), name.clone());
    admin.registry(move |registry| registry.update_tenant(&actor, &of, change.into())).await?;
    let tenant = asker.tenant(&admin.app.registry().directory(), &name)?;
    Ok(Json(TenantView::of(&tenant, &asker)))
}

/// So long a deletion waits for providers to be told that tokens are void.
const PATIENCE: Duration = Duration::from_secs(30);

/// Delete a tenant with its keys, servers, deployments and connections.
///
/// Role: operator.
#[utoipa::path(delete, path = "/tenants/{tenant}", tag = "tenants", operation_id = "delete_tenant",
    params(("tenant" = String, Path)), responses((status = NO_CONTENT)))]
pub async fn delete(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names(name): Names<String>,
) -> Result<StatusCode, Error> {
    asker.tenant(&admin.app.registry().directory(), &name)?;
    asker.operator()?;
    let actor = asker.actor();
    // Its tokens go in any case; its providers are told as far as they answer.
    let _ = tokio::time::timeout(PATIENCE, admin.app.connect.remove_of_tenant(&name)).await;
    admin.registry(move |registry| registry.delete_tenant(&actor, &name)).await?;
    Ok(StatusCode::NO_CONTENT)
}
