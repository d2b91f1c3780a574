//! Providers of a tenant's, and who is connected to them.

use super::access::Asker;
use super::body::{self, Names, Query, SMALL};
use super::error::Error;
use super::secrets::{self, PolicyOrder};
use super::{Admin, schema};
use crate::connect::{ConnectError, kept_as, subject_of};
use crate::problem::chain;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use egress::{BareStar, Rules};
use registry::{ConnectionInfo, PolicyChange, ProviderInfo, Registry, Role, SecretPolicy, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// A provider without its client secret.
#[derive(Serialize, ToSchema)]
pub struct ProviderView {
    name: String,
    /// `authorize_url`, `token_url`, `client_id`, `scopes`, `grant`, `per` and so on.
    #[schema(value_type = Object)]
    settings: Value,
    /// The hosts that each server may send its tokens to. A server that is not named may not use them.
    #[schema(value_type = schema::SecretPolicy)]
    policy: SecretPolicy,
    /// Whether it has a client secret.
    confidential: bool,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<ProviderInfo> for ProviderView {
    fn from(info: ProviderInfo) -> ProviderView {
        let ProviderInfo { name, settings, policy, confidential, created_at, updated_at } = info;
        ProviderView { name, settings, policy, confidential, created_at, updated_at }
    }
}

#[derive(Serialize, ToSchema)]
pub struct ProviderList {
    providers: Vec<ProviderView>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderOrder {
    #[schema(value_type = Object)]
    settings: Value,
    #[schema(value_type = Option<String>)]
    client_secret: Option<SecretString>,
    /// A change of its policy, as in `PATCH`. Without it the policy stays; a new provider has none, so no server may use it.
    #[serde(default)]
    #[schema(required = false, value_type = schema::PolicyChange)]
    policy: PolicyChange,
}

/// Somebody's connection, without its tokens.
#[derive(Serialize, ToSchema)]
pub struct ConnectionView {
    provider: String,
    /// Whose it is; null for one that all callers of the tenant share.
    subject: Option<String>,
    /// Whether calls with this key use it.
    mine: bool,
    expires_at: Option<Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl ConnectionView {
    fn of(info: ConnectionInfo, asker: &Asker) -> ConnectionView {
        let subject = subject_of(&info.subject).map(str::to_owned);
        let mine = subject.as_ref().is_none_or(|subject| *subject == asker.caller.subject);
        let ConnectionInfo { provider, expires_at, created_at, updated_at, .. } = info;
        ConnectionView { provider, subject, mine, expires_at, created_at, updated_at }
    }
}

#[derive(Serialize, ToSchema)]
pub struct ConnectionList {
    connections: Vec<ConnectionView>,
}

/// A link for a browser, good once and for ten minutes. The browser shows a code in the end, for `confirm`.
#[derive(Serialize, ToSchema)]
pub struct LinkView {
    url: String,
    /// Which servers will use the connection, and the hosts that get its token.
    #[schema(value_type = schema::SecretPolicy)]
    policy: SecretPolicy,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeOrder {
    /// What the browser shows after the provider's consent: eight letters.
    #[schema(value_type = String)]
    code: SecretString,
}

#[derive(Serialize, ToSchema)]
pub struct Confirmed {
    /// The provider that calls have a token of now.
    connected: String,
}

#[derive(Serialize, ToSchema)]
pub struct Disconnected {
    /// Whether the provider was told, too.
    revoked: bool,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Whose {
    /// Somebody else's connection. Role: admin.
    subject: Option<String>,
}

fn refused(error: ConnectError) -> Error {
    let code = match error {
        ConnectError::NoProvider(_) => return Error::not_found(),
        ConnectError::Registry(error) => return error.into(),
        ConnectError::Full => "busy",
        ConnectError::NotAllowed { .. } => "secret_not_allowed",
        ConnectError::NotConnected(_) => "not_connected",
        ConnectError::NothingToConfirm(_) => "nothing_to_confirm",
        ConnectError::WrongCode { .. } => "wrong_code",
        ConnectError::TooManyCodes => "too_many_codes",
        ConnectError::Settings(_) | ConnectError::Unreadable(_) => "bad_provider",
        _ => "refused",
    };
    Error::new(StatusCode::UNPROCESSABLE_ENTITY, code, chain(&error))
}

/// Refuses URLs on this machine and on addresses that nothing here reaches. A developer's host reaches the ports it was given.
fn reachable(admin: &Admin, provider: &oauth::Provider) -> Result<(), Error> {
    let oauth::Provider { authorize_url, token_url, revoke_url, .. } = provider;
    let urls = [
        ("authorize_url", authorize_url.as_ref()),
        ("token_url", Some(token_url)),
        ("revoke_url", revoke_url.as_ref()),
    ];
    for (name, url) in urls.into_iter().filter_map(|(name, url)| Some((name, url?))) {
        let origin = url.origin().ascii_serialization();
        let checked =
            Rules::parse([origin.as_str()], BareStar::Refused).and_then(|rules| admin.app.check_rules(&rules));
        checked.map_err(|denied| {
            Error::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_provider", format!("`{name}`: {}", denied.message))
                .hint("a host for development reaches ports of its own machine: `bulkhead dev --loopback PORT`")
        })?;
    }
    Ok(())
}

/// Set a provider, or change it. Who is connected stays connected, unless it is another provider altogether.
///
/// Role: admin.
#[utoipa::path(put, path = "/tenants/{tenant}/providers/{name}", tag = "secrets", operation_id = "set_provider",
    params(("tenant" = String, Path), ("name" = String, Path)), request_body = ProviderOrder,
    responses((status = OK, body = ProviderView)))]
pub async fn set(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, name)): Names<(String, String)>,
    request: Request,
) -> Result<Json<ProviderView>, Error> {
    asker.runs(&admin.app.registry().directory(), &tenant)?;
    let ProviderOrder { settings, client_secret, policy } = body::json(request, SMALL).await?;
    secrets::check(&policy)?;
    let provider = admin.app.connect.check(settings.clone()).map_err(refused)?;
    reachable(&admin, &provider)?;
    let actor = asker.actor();
    let set =
        move |registry: &Registry| registry.set_provider_with(&actor, &tenant, &name, settings, client_secret, &policy);
    Ok(Json(admin.registry(set).await?.into()))
}

/// Change which servers may use a provider's tokens and which hosts they may go to. It counts from the next request on.
///
/// Role: admin.
#[utoipa::path(patch, path = "/tenants/{tenant}/providers/{name}", tag = "secrets", operation_id = "allow_provider",
    params(("tenant" = String, Path), ("name" = String, Path)), request_body = PolicyOrder,
    responses((status = OK, body = ProviderView)))]
pub async fn allow(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, name)): Names<(String, String)>,
    request: Request,
) -> Result<Json<ProviderView>, Error> {
    asker.runs(&admin.app.registry().directory(), &tenant)?;
    let policy = PolicyOrder::read(request).await?;
    let actor = asker.actor();
    let made = admin.registry(move |registry| registry.allow_provider(&actor, &tenant, &name, &policy)).await?;
    Ok(Json(made.into()))
}

/// List the providers, by name.
///
/// Role: any key of the tenant.
#[utoipa::path(get, path = "/tenants/{tenant}/providers", tag = "secrets", operation_id = "list_providers",
    params(("tenant" = String, Path)), responses((status = OK, body = ProviderList)))]
pub async fn list(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names(tenant): Names<String>,
) -> Result<Json<ProviderList>, Error> {
    asker.tenant(&admin.app.registry().directory(), &tenant)?;
    let found = admin.registry(move |registry| registry.providers(&tenant)).await?;
    Ok(Json(ProviderList { providers: found.into_iter().map(ProviderView::from).collect() }))
}

/// Remove a provider, with everybody's connections to it.
///
/// Role: admin.
#[utoipa::path(delete, path = "/tenants/{tenant}/providers/{name}", tag = "secrets", operation_id = "remove_provider",
    params(("tenant" = String, Path), ("name" = String, Path)), responses((status = NO_CONTENT)))]
pub async fn remove(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, name)): Names<(String, String)>,
) -> Result<StatusCode, Error> {
    asker.runs(&admin.app.registry().directory(), &tenant)?;
    admin.app.connect.leave(&tenant, &name);
    let of = tenant.clone();
    let connected = admin.registry(move |registry| registry.connections(&of)).await?;
    for connection in connected.into_iter().filter(|connection| connection.provider == name) {
        let subject = subject_of(&connection.subject).unwrap_or_default();
        // The provider may be gone; what is kept here goes in any case.
        if let Err(error) = admin.app.connect.disconnect(&tenant, &name, subject).await {
            tracing::warn!(tenant, provider = name, %error, "a token could not be revoked");
        }
    }
    let actor = asker.actor();
    admin.registry(move |registry| registry.remove_provider(&actor, &tenant, &name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Get a link by which a browser connects whoever asks; for a provider that all callers share, the tenant. The browser shows a
/// code in the end, with which the connection is confirmed.
///
/// Role: any key of the tenant; admin for a connection that all share.
#[utoipa::path(post, path = "/tenants/{tenant}/providers/{name}/connect", tag = "secrets", operation_id = "connect",
    params(("tenant" = String, Path), ("name" = String, Path)), responses((status = OK, body = LinkView)))]
pub async fn connect(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, name)): Names<(String, String)>,
) -> Result<Json<LinkView>, Error> {
    let subject = whose(&admin, &asker, &tenant, &name, None)?;
    let ticket = admin.app.connect.ticket(&tenant, &name, &subject, &asker.caller, None).map_err(refused)?;
    let policy = admin.app.connect.used(&tenant, &name).map_err(refused)?;
    Ok(Json(LinkView { url: admin.app.connect_url(&ticket), policy }))
}

/// Confirm a connection with the code that the browser shows after the provider's consent. Whoever asked for the link
/// confirms, and nobody else.
///
/// Role: any key of the tenant; admin for a connection that all share.
#[utoipa::path(post, path = "/tenants/{tenant}/providers/{name}/confirm", tag = "secrets", operation_id = "confirm",
    params(("tenant" = String, Path), ("name" = String, Path)), request_body = CodeOrder,
    responses((status = OK, body = Confirmed)))]
pub async fn confirm(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, name)): Names<(String, String)>,
    request: Request,
) -> Result<Json<Confirmed>, Error> {
    whose(&admin, &asker, &tenant, &name, None)?;
    let CodeOrder { code } = body::json(request, SMALL).await?;
    admin.app.connect.confirm(&tenant, &name, &asker.caller, code.expose_secret()).await.map_err(refused)?;
    Ok(Json(Confirmed { connected: name }))
}

/// Remove the connection of whoever asks, or of somebody else; at the provider too if it can be told.
///
/// Role: any key of the tenant; admin for that of somebody else, and for one that all share.
#[utoipa::path(delete, path = "/tenants/{tenant}/providers/{name}/connect", tag = "secrets", operation_id = "disconnect",
    params(("tenant" = String, Path), ("name" = String, Path), Whose), responses((status = OK, body = Disconnected)))]
pub async fn disconnect(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, name)): Names<(String, String)>,
    Query(query): Query<Whose>,
) -> Result<Json<Disconnected>, Error> {
    let subject = whose(&admin, &asker, &tenant, &name, query.subject)?;
    let (of, provider, kept) = (tenant.clone(), name.clone(), kept_as(&subject));
    let there = admin.registry(move |registry| registry.connection(&of, &provider, &kept)).await?;
    if there.is_none() {
        return Err(Error::not_found());
    }
    let revoked = admin.app.connect.disconnect(&tenant, &name, &subject).await.map_err(refused)?;
    Ok(Json(Disconnected { revoked }))
}

/// List connections: one's own, or for an admin everybody's.
///
/// Role: any key of the tenant.
#[utoipa::path(get, path = "/tenants/{tenant}/connections", tag = "secrets", operation_id = "list_connections",
    params(("tenant" = String, Path)), responses((status = OK, body = ConnectionList)))]
pub async fn connections(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names(tenant): Names<String>,
) -> Result<Json<ConnectionList>, Error> {
    asker.tenant(&admin.app.registry().directory(), &tenant)?;
    let all = asker.role(Role::Admin).is_ok() && asker.whole_tenant().is_ok();
    let found = admin.registry(move |registry| registry.connections(&tenant)).await?;
    let shown = found.into_iter().map(|info| ConnectionView::of(info, &asker));
    Ok(Json(ConnectionList { connections: shown.filter(|connection| all || connection.mine).collect() }))
}

/// Whose connection it is about: empty for one that all share.
fn whose(admin: &Admin, asker: &Asker, tenant: &str, name: &str, other: Option<String>) -> Result<String, Error> {
    asker.tenant(&admin.app.registry().directory(), tenant)?;
    let shared = admin.app.connect.is_shared(tenant, name).map_err(refused)?;
    if shared || other.is_some() {
        asker.runs(&admin.app.registry().directory(), tenant)?;
    }
    Ok(if shared { String::new() } else { other.unwrap_or_else(|| asker.caller.subject.clone()) })
}
