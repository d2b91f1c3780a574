//! Every route of the host.

use crate::admin;
use crate::app::App;
use crate::auth::Resource;
use crate::connect;
use crate::mcp;
use crate::observe::health;
use crate::problem;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use http::{HeaderMap, StatusCode, header};
use registry::Role;
use std::sync::Arc;

/// Routes beside the admin API's, which its own document lists: method, path.
pub const ROUTES: &[(&str, &str)] = &[
    ("POST", "/{tenant}/{server}/mcp"),
    ("GET", "/{tenant}/{server}/mcp"),
    ("DELETE", "/{tenant}/{server}/mcp"),
    ("POST", "/{tenant}/mcp"),
    ("GET", "/{tenant}/mcp"),
    ("DELETE", "/{tenant}/mcp"),
    ("GET", "/.well-known/oauth-protected-resource/{tenant}/{server}/mcp"),
    ("GET", "/.well-known/oauth-protected-resource/{tenant}/mcp"),
    ("GET", "/connect/{ticket}"),
    ("POST", "/connect/{ticket}"),
    ("GET", "/connect/callback"),
    ("POST", "/connect/cancel"),
    ("GET", "/metrics"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
];

pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/{tenant}/{server}/mcp", any(mcp::server))
        .route("/{tenant}/mcp", any(mcp::aggregate))
        .route("/.well-known/oauth-protected-resource/{tenant}/{server}/mcp", get(server_metadata))
        .route("/.well-known/oauth-protected-resource/{tenant}/mcp", get(tenant_metadata))
        .route("/connect/callback", get(connect::callback))
        .route("/connect/cancel", post(connect::cancel))
        .route("/connect/{ticket}", get(connect::show).post(connect::begin))
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .with_state(app.clone())
        .nest("/admin/v1", admin::routes(app.clone()))
        .fallback(|| async { problem::response(StatusCode::NOT_FOUND, "not_found", "there is nothing here", None) })
        .layer(middleware::from_fn_with_state(app, guard))
}

/// Before anything else: is this request meant for this host at all?
async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match app.guard(request.headers(), request.uri()) {
        None => next.run(request).await,
        Some(refusal) => refusal,
    }
}

async fn server_metadata(State(app): State<Arc<App>>, Path((tenant, server)): Path<(String, String)>) -> Response {
    metadata(&app, &Resource::Server { tenant: &tenant, server: &server })
}

async fn tenant_metadata(State(app): State<Arc<App>>, Path(tenant): Path<String>) -> Response {
    metadata(&app, &Resource::Tenant { tenant: &tenant })
}

/// The same for every name, whether it exists or not.
fn metadata(app: &App, resource: &Resource<'_>) -> Response {
    match app.metadata(resource) {
        Some(document) => axum::Json(document).into_response(),
        None => problem::response(StatusCode::NOT_FOUND, "not_found", "this host takes keys only, no tokens", None),
    }
}

async fn metrics(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    if !app.settings().metrics_public {
        match app.authenticate(&headers).await {
            Ok(caller) if caller.role == Role::Operator => {}
            Ok(_) => return problem::response(StatusCode::NOT_FOUND, "not_found", "there is nothing here", None),
            Err(refusal) => return refusal,
        }
    }
    let text = app.metrics_text();
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
}

async fn readyz(State(app): State<Arc<App>>) -> Response {
    let report = app.readiness();
    health::response(&report)
}
