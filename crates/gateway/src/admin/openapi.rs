//! The routes and the document that describes them. Both come from the same list, so that neither lacks what the other has.

use super::error::{Error, ErrorBody};
use super::{Admin, calls, deployments, egress, host, keys, layers, logs, providers, secrets, servers, tenants};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use std::sync::{Arc, OnceLock};
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, ResponseBuilder, SecurityRequirement};
use utoipa::{OpenApi as _, ToSchema as _};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Where the routes are nested.
const PREFIX: &str = "/admin/v1";

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Bulkhead admin API",
        description = "Tenants, keys, servers, deployments, calls, logs and limits of one Bulkhead host.\n\n\
            Every route but this document needs a key: `Authorization: Bearer <key>`. A key of a tenant sees its own \
            tenant; everything else is not there, whether it exists or not. A body that has what a route does not know \
            is refused.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    components(schemas(ErrorBody)),
    tags(
        (name = "tenants", description = "Owners of servers and keys"),
        (name = "keys", description = "What callers show"),
        (name = "servers", description = "Named MCP servers of a tenant"),
        (name = "deployments", description = "Versions of a server's code"),
        (name = "secrets", description = "What the host puts into requests of servers, which never have it"),
        (name = "calls", description = "What was called, from the audit log"),
        (name = "logs", description = "What tools wrote"),
        (name = "host", description = "The host itself"),
    ),
)]
struct Frame;

/// Each route once.
pub fn router() -> OpenApiRouter<Arc<Admin>> {
    OpenApiRouter::with_openapi(Frame::openapi())
        .routes(routes!(tenants::create, tenants::list))
        .routes(routes!(tenants::get, tenants::change, tenants::delete))
        .routes(routes!(keys::create, keys::list))
        .routes(routes!(keys::revoke))
        .routes(routes!(keys::create_operator, keys::list_operator))
        .routes(routes!(keys::revoke_operator))
        .routes(routes!(servers::list))
        .routes(routes!(servers::get, servers::delete))
        .routes(routes!(servers::quarantine))
        .routes(routes!(deployments::create, deployments::list))
        .routes(routes!(deployments::get))
        .routes(routes!(deployments::activate))
        .routes(routes!(deployments::approve))
        .routes(routes!(deployments::files))
        .routes(routes!(deployments::next))
        .routes(routes!(egress::look))
        .routes(routes!(layers::get, layers::put))
        .routes(routes!(secrets::list))
        .routes(routes!(secrets::set, secrets::allow, secrets::remove))
        .routes(routes!(secrets::rotate))
        .routes(routes!(secrets::rotate_master))
        .routes(routes!(providers::list))
        .routes(routes!(providers::set, providers::allow, providers::remove))
        .routes(routes!(providers::connect, providers::disconnect))
        .routes(routes!(providers::confirm))
        .routes(routes!(providers::connections))
        .routes(routes!(host::me))
        .routes(routes!(logs::read))
        .routes(routes!(calls::list))
        .routes(routes!(host::limits))
        .routes(routes!(host::look))
        .routes(routes!(host::audit_head))
        .routes(routes!(host::reload))
        .routes(routes!(serve))
}

/// This document.
///
/// No key needed.
#[utoipa::path(get, path = "/openapi.json", tag = "host", operation_id = "get_document", security(()),
    responses((status = OK, body = Object)))]
async fn serve() -> Result<impl IntoResponse, Error> {
    // Anybody may ask for it, so it is made once.
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = match TEXT.get() {
        Some(text) => text,
        None => {
            let text = document().to_pretty_json().map_err(|error| Error::internal(&error))?;
            TEXT.get_or_init(|| text + "\n")
        }
    };
    Ok(([(header::CONTENT_TYPE, "application/json")], text.as_str()))
}

/// The whole API, OpenAPI 3.1.
fn document() -> OpenApi {
    let (_, mut document) = router().split_for_parts();
    document.info.contact = None;
    for (path, mut item) in std::mem::take(&mut document.paths.paths) {
        let operations = [&mut item.get, &mut item.post, &mut item.patch, &mut item.put, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            if operation.security.is_none() {
                guard(operation);
            }
            describe(operation);
        }
        document.paths.paths.insert(format!("{PREFIX}{path}"), item);
    }
    let components = document.components.get_or_insert_default();
    let bearer = SecurityScheme::Http(Http::builder().scheme(HttpAuthScheme::Bearer).build());
    components.security_schemes.insert("key".to_owned(), bearer.into());
    document
}

/// What is true of every route that needs a key.
fn guard(operation: &mut Operation) {
    operation.security = Some(vec![SecurityRequirement::new("key", Vec::<String>::new())]);
    let body = ContentBuilder::new().schema(Some(Ref::from_schema_name(ErrorBody::name()))).build();
    let refused = ResponseBuilder::new().description("Refused.").content("application/json", body).build();
    operation.responses.responses.insert("default".to_owned(), RefOr::T(refused));
}

/// The standard wants a description for each answer; the status says it all.
fn describe(operation: &mut Operation) {
    for (status, answer) in &mut operation.responses.responses {
        if let RefOr::T(answer) = answer
            && answer.description.is_empty()
        {
            let reason = status.parse().ok().and_then(|status: StatusCode| status.canonical_reason());
            answer.description = reason.unwrap_or("See above").to_owned();
        }
    }
}
