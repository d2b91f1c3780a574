//! Servers.

use super::Admin;
use super::access::Asker;
use super::body::{self, Names, Query, SMALL};
use super::deployments::DeploymentView;
use super::error::Error;
use super::page::{self, PageQuery};
use super::schema;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use registry::{Role, Server, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
pub struct ServerView {
    tenant: String,
    name: String,
    /// Where MCP clients reach it.
    url: String,
    created_at: Timestamp,
    /// What callers reach; null before the first deployment.
    current: Option<DeploymentView>,
    /// Whether it can be called.
    state: Standing,
    /// Why nobody may call it, if so.
    quarantine: Option<String>,
    /// Deployments that wait for a second key, newest first; for keys that may deploy.
    proposals: Vec<String>,
}

/// Whether a server can be called.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ServerState)]
pub enum Standing {
    Ready,
    Quarantined,
    /// Nobody agreed to its first deployment yet.
    AwaitingApproval,
}

impl ServerView {
    fn of(server: &Server, admin: &Admin, proposals: &[(String, String)]) -> ServerView {
        let waiting = proposals.iter().filter(|(of, _)| *of == server.name);
        let state = match server {
            Server { quarantine: Some(_), .. } => Standing::Quarantined,
            Server { current: None, .. } => Standing::AwaitingApproval,
            _ => Standing::Ready,
        };
        ServerView {
            tenant: server.tenant.clone(),
            name: server.name.clone(),
            url: admin.app.public_url(&server.tenant, &server.name),
            created_at: server.created_at,
            current: server.current.as_ref().map(|current| DeploymentView::of(current, server)),
            state,
            quarantine: server.quarantine.clone(),
            proposals: waiting.map(|(_, id)| id.clone()).collect(),
        }
    }
}

/// What waits in a tenant, for those who may know.
async fn proposals(admin: &Admin, asker: &Asker, tenant: &str) -> Result<Vec<(String, String)>, Error> {
    if asker.role(Role::Deploy).is_err() {
        return Ok(Vec::new());
    }
    let tenant = tenant.to_owned();
    admin.registry(move |registry| registry.proposals(&tenant)).await
}

#[derive(Serialize, ToSchema)]
pub struct ServerPage {
    servers: Vec<ServerView>,
    /// `cursor` of the next page.
    next: Option<String>,
}

/// A server and what it offers to this key.
#[derive(Serialize, ToSchema)]
pub struct ServerDetail {
    #[serde(flatten)]
    server: ServerView,
    #[schema(value_type = Option<schema::Surface>)]
    surface: Option<Box<RawValue>>,
}

/// List the servers of a tenant, by name.
///
/// Role: any key of the tenant; it sees those it may use.
#[utoipa::path(get, path = "/tenants/{tenant}/servers", tag = "servers", operation_id = "list_servers",
    params(("tenant" = String, Path), PageQuery), responses((status = OK, body = ServerPage)))]
pub async fn list(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names(tenant): Names<String>,
    Query(query): Query<PageQuery>,
) -> Result<Json<ServerPage>, Error> {
    let tenant = asker.tenant(&admin.app.registry().directory(), &tenant)?;
    let servers = tenant.servers.values().filter(|server| asker.caller.may_use_server(&server.name));
    let page = page::cut_sorted(servers.collect(), &query, |server| &server.name)?;
    let waiting = proposals(&admin, &asker, &tenant.name).await?;
    let servers = page.entries.into_iter().map(|server| ServerView::of(server, &admin, &waiting)).collect();
    Ok(Json(ServerPage { servers, next: page.next }))
}

/// Look at a server, its current deployment, and what it offers.
///
/// Role: any key of the tenant that may use the server; it sees the tools it may use.
#[utoipa::path(get, path = "/tenants/{tenant}/servers/{server}", tag = "servers", operation_id = "get_server",
    params(("tenant" = String, Path), ("server" = String, Path)), responses((status = OK, body = ServerDetail)))]
pub async fn get(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, server)): Names<(String, String)>,
) -> Result<Json<ServerDetail>, Error> {
    let server = asker.server(&admin.app.registry().directory(), &tenant, &server)?;
    let surface = match &server.current {
        Some(current) => Some(visible(&current.surface, &server.name, &asker)?),
        None => None,
    };
    let waiting = proposals(&admin, &asker, &tenant).await?;
    Ok(Json(ServerDetail { server: ServerView::of(&server, &admin, &waiting), surface }))
}

/// Delete a server with its deployments and logs.
///
/// Role: admin.
#[utoipa::path(delete, path = "/tenants/{tenant}/servers/{server}", tag = "servers", operation_id = "delete_server",
    params(("tenant" = String, Path), ("server" = String, Path)), responses((status = NO_CONTENT)))]
pub async fn delete(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, server)): Names<(String, String)>,
) -> Result<StatusCode, Error> {
    asker.server(&admin.app.registry().directory(), &tenant, &server)?;
    asker.role(Role::Admin)?;
    let alone = admin.deploying.alone(&tenant, &server).await;
    let actor = asker.actor();
    admin
        .registry(move |registry| {
            let _alone = alone;
            registry.delete_server(&actor, &tenant, &server)
        })
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Why a server is put into quarantine.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QuarantineOrder {
    /// Callers are told; at most 2000 characters are kept.
    reason: String,
}

/// Put a server into quarantine: callers are refused until a deployment is made current, the present one or another.
///
/// Role: admin. One key is enough, also where changes of what a server runs need two.
#[utoipa::path(post, path = "/tenants/{tenant}/servers/{server}/quarantine", tag = "servers",
    operation_id = "quarantine_server", params(("tenant" = String, Path), ("server" = String, Path)),
    request_body = QuarantineOrder, responses((status = OK, body = ServerView)))]
pub async fn quarantine(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, server)): Names<(String, String)>,
    request: Request,
) -> Result<Json<ServerView>, Error> {
    asker.server(&admin.app.registry().directory(), &tenant, &server)?;
    asker.role(Role::Admin)?;
    let QuarantineOrder { reason } = body::json(request, SMALL).await?;
    let alone = admin.deploying.alone(&tenant, &server).await;
    let found = asker.server(&admin.app.registry().directory(), &tenant, &server)?;
    let current = found.current.as_ref().map(|current| current.id.clone()).ok_or_else(|| {
        Error::new(
            StatusCode::CONFLICT,
            "conflict",
            format!("the server `{server}` runs nothing, so nobody can call it"),
        )
    })?;
    let (actor, of, name) = (asker.actor(), tenant.clone(), server.clone());
    admin
        .registry(move |registry| {
            let _alone = alone;
            registry.quarantine(&actor, &of, &name, &current, &reason)
        })
        .await?;
    let now = asker.server(&admin.app.registry().directory(), &tenant, &server)?;
    let waiting = proposals(&admin, &asker, &tenant).await?;
    Ok(Json(ServerView::of(&now, &admin, &waiting)))
}

/// The surface without what this key may not use: other tools, and all that is no tool.
fn visible(surface: &RawValue, server: &str, asker: &Asker) -> Result<Box<RawValue>, Error> {
    if asker.caller.scope.tools.is_none() {
        return Ok(surface.to_owned());
    }
    only(surface, |tool| asker.caller.may_use_tool(server, tool)).map_err(|error| Error::internal(&error))
}

fn only(surface: &RawValue, may_use: impl Fn(&str) -> bool) -> Result<Box<RawValue>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let mut surface: BTreeMap<String, Box<RawValue>> = serde_json::from_str(surface.get())?;
    if let Some(tools) = surface.get_mut("tools") {
        let mut list: Vec<Box<RawValue>> = serde_json::from_str(tools.get())?;
        list.retain(|tool| serde_json::from_str::<Named>(tool.get()).is_ok_and(|tool| may_use(&tool.name)));
        *tools = serde_json::value::to_raw_value(&list)?;
    }
    surface.retain(|list, _| !matches!(list.as_str(), "resources" | "resourceTemplates" | "templates" | "prompts"));
    serde_json::value::to_raw_value(&surface)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_out_of_scope_are_not_shown() {
        let surface = r#"{"name":"s","prompts":[{"name":"p"}],"resources":[{"uri":"r://"}],"resourceTemplates":[],
            "tools":[{"name":"a","description":"x"},{"name":"b"},{"description":"none"}]}"#;
        let surface = RawValue::from_string(surface.to_owned()).unwrap();
        let shown = only(&surface, |tool| tool == "a").unwrap();
        assert_eq!(shown.get(), r#"{"name":"s","tools":[{"name":"a","description":"x"}]}"#);
    }
}
