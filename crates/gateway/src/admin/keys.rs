//! Keys of tenants and of the operator.

use super::access::{Asker, at_least};
use super::body::{self, Names, Query, SMALL};
use super::error::Error;
use super::page::{self, PageQuery};
use super::{Admin, schema, scope};
use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use registry::{Key, NewKey, Quota, Role, Scope, Timestamp, now};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

/// A key without its secret.
#[derive(Serialize, ToSchema)]
pub struct KeyView {
    id: String,
    /// Null for the operator's.
    tenant: Option<String>,
    #[schema(value_type = schema::Role)]
    role: Role,
    /// What people call it.
    name: String,
    #[schema(value_type = schema::Scope)]
    scope: Scope,
    #[schema(value_type = schema::Quota)]
    quota: Quota,
    state: KeyState,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
}

/// Whether a key still opens anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    Active,
    Expired,
    Revoked,
}

impl KeyState {
    fn of(key: &Key) -> KeyState {
        match (key.revoked_at, key.expires_at) {
            (Some(_), _) => KeyState::Revoked,
            (None, Some(at)) if at <= now() => KeyState::Expired,
            _ => KeyState::Active,
        }
    }
}

impl From<Key> for KeyView {
    fn from(key: Key) -> KeyView {
        KeyView {
            state: KeyState::of(&key),
            id: key.id,
            tenant: key.tenant,
            role: key.role,
            name: key.name,
            scope: key.scope,
            quota: key.quota,
            created_at: key.created_at,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct KeyPage {
    keys: Vec<KeyView>,
    /// `cursor` of the next page.
    next: Option<String>,
}

/// A new key. Its token is shown this once.
#[derive(Serialize, ToSchema)]
pub struct KeyMade {
    key: KeyView,
    /// What goes after `Authorization: Bearer`.
    token: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyOrder {
    #[schema(value_type = schema::Role)]
    role: Role,
    /// What people call it.
    #[serde(default)]
    #[schema(required = false, max_length = 200)]
    name: String,
    /// Not wider than the maker's own.
    #[serde(default, deserialize_with = "body::object")]
    #[schema(required = false, value_type = schema::Scope)]
    scope: Scope,
    #[serde(default, deserialize_with = "body::object")]
    #[schema(required = false, value_type = schema::Quota)]
    quota: Quota,
    /// Seconds from now; or say `expires_at`. A key that expires makes none that outlives it.
    #[schema(minimum = 1)]
    expires_in_s: Option<u64>,
    /// Seconds since 1970.
    expires_at: Option<Timestamp>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OperatorKeyOrder {
    /// What people call it.
    #[serde(default)]
    #[schema(required = false, max_length = 200)]
    name: String,
    /// Seconds from now; or say `expires_at`. A key that expires makes none that outlives it.
    #[schema(minimum = 1)]
    expires_in_s: Option<u64>,
    /// Seconds since 1970.
    expires_at: Option<Timestamp>,
}

/// Make a key of a tenant.
///
/// Role: admin. Nobody makes a key that may more than their own. The token in the answer is shown this once.
#[utoipa::path(post, path = "/tenants/{tenant}/keys", tag = "keys", operation_id = "create_key",
    params(("tenant" = String, Path)), request_body = KeyOrder, responses((status = CREATED, body = KeyMade)))]
pub async fn create(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names(tenant): Names<String>,
    request: Request,
) -> Result<(StatusCode, Json<KeyMade>), Error> {
    asker.tenant(&admin.app.registry().directory(), &tenant)?;
    asker.role(Role::Admin)?;
    let order: KeyOrder = body::json(request, SMALL).await?;
    check_role(&asker, order.role)?;
    scope::check(&order.scope)?;
    scope::check_within(&order.scope, &asker.caller.scope)?;
    let new = NewKey {
        tenant: Some(tenant),
        role: order.role,
        name: order.name,
        scope: order.scope,
        quota: quota(&asker, &order.quota)?,
        expires_at: expiry(&asker, order.expires_in_s, order.expires_at)?,
    };
    make(&admin, &asker, new).await
}

/// List the keys of a tenant, revoked and expired ones too.
///
/// Role: admin. A key with a scope sees those that are within it.
#[utoipa::path(get, path = "/tenants/{tenant}/keys", tag = "keys", operation_id = "list_keys",
    params(("tenant" = String, Path), PageQuery), responses((status = OK, body = KeyPage)))]
pub async fn list(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names(tenant): Names<String>,
    Query(query): Query<PageQuery>,
) -> Result<Json<KeyPage>, Error> {
    asker.tenant(&admin.app.registry().directory(), &tenant)?;
    asker.role(Role::Admin)?;
    show(&admin, Some(tenant), query, move |key| scope::within(&key.scope, &asker.caller.scope)).await
}

/// Revoke a key of a tenant, at once. What it was connected to is disconnected.
///
/// Role: admin. A key with a scope revokes those that are within it.
#[utoipa::path(delete, path = "/tenants/{tenant}/keys/{id}", tag = "keys", operation_id = "revoke_key",
    params(("tenant" = String, Path), ("id" = String, Path)), responses((status = NO_CONTENT)))]
pub async fn revoke(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, id)): Names<(String, String)>,
) -> Result<StatusCode, Error> {
    asker.tenant(&admin.app.registry().directory(), &tenant)?;
    asker.role(Role::Admin)?;
    let (actor, own) = (asker.actor(), asker.caller.scope.clone());
    let revoked = id.clone();
    admin
        .registry(move |registry| {
            // One that is not there and one that is none of theirs look the same.
            let there = registry.key(Some(&tenant), &id)?;
            if !there.is_some_and(|key| scope::within(&key.scope, &own)) {
                return Ok(None);
            }
            registry.revoke_key(&actor, Some(&tenant), &id).map(Some)
        })
        .await?
        .ok_or_else(Error::not_found)?;
    drop_tokens(&admin, revoked).await;
    Ok(StatusCode::NO_CONTENT)
}

/// So long a revocation waits for providers to be told; the rest goes on without it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Removes what a key was connected to.
async fn drop_tokens(admin: &Admin, id: String) {
    let app = admin.app.clone();
    let removed = tokio::spawn(async move { app.connect.remove_of_key(&id).await });
    // What is not done by then is done later, or by the next sweep.
    let _ = tokio::time::timeout(PATIENCE, removed).await;
}

/// Make an operator's key.
///
/// Role: operator. The token in the answer is shown this once.
#[utoipa::path(post, path = "/keys", tag = "keys", operation_id = "create_operator_key",
    request_body = OperatorKeyOrder, responses((status = CREATED, body = KeyMade)))]
pub async fn create_operator(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    request: Request,
) -> Result<(StatusCode, Json<KeyMade>), Error> {
    asker.operator()?;
    let order: OperatorKeyOrder = body::json(request, SMALL).await?;
    let new = NewKey {
        tenant: None,
        role: Role::Operator,
        name: order.name,
        scope: Scope::default(),
        quota: Quota::default(),
        expires_at: expiry(&asker, order.expires_in_s, order.expires_at)?,
    };
    make(&admin, &asker, new).await
}

/// List the operator's keys, revoked and expired ones too.
///
/// Role: operator.
#[utoipa::path(get, path = "/keys", tag = "keys", operation_id = "list_operator_keys",
    params(PageQuery), responses((status = OK, body = KeyPage)))]
pub async fn list_operator(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Query(query): Query<PageQuery>,
) -> Result<Json<KeyPage>, Error> {
    asker.operator()?;
    show(&admin, None, query, |_| true).await
}

/// Revoke an operator's key, at once. The last one that does not expire stays.
///
/// Role: operator.
#[utoipa::path(delete, path = "/keys/{id}", tag = "keys", operation_id = "revoke_operator_key",
    params(("id" = String, Path)), responses((status = NO_CONTENT)))]
pub async fn revoke_operator(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names(id): Names<String>,
) -> Result<StatusCode, Error> {
    asker.operator()?;
    let actor = asker.actor();
    let revoked = id.clone();
    admin.registry(move |registry| registry.revoke_key(&actor, None, &id)).await?;
    drop_tokens(&admin, revoked).await;
    Ok(StatusCode::NO_CONTENT)
}

async fn make(admin: &Admin, asker: &Asker, new: NewKey) -> Result<(StatusCode, Json<KeyMade>), Error> {
    let actor = asker.actor();
    let (key, token) = admin.registry(move |registry| registry.create_key(&actor, new)).await?;
    Ok((StatusCode::CREATED, Json(KeyMade { key: key.into(), token: token.expose().to_owned() })))
}

async fn show(
    admin: &Admin,
    tenant: Option<String>,
    query: PageQuery,
    seen: impl Fn(&Key) -> bool + Send + 'static,
) -> Result<Json<KeyPage>, Error> {
    let limit = page::limit(query.limit)?;
    let after = query.cursor;
    let found = admin.registry(move |registry| registry.keys(tenant.as_deref(), after.as_deref(), limit + 1, seen));
    let mut keys = found.await?.ok_or_else(page::no_such_cursor)?;
    let more = keys.len() > limit;
    keys.truncate(limit);
    let next = keys.last().filter(|_| more).map(|key| key.id.clone());
    Ok(Json(KeyPage { keys: keys.into_iter().map(KeyView::from).collect(), next }))
}

/// A tenant's key is never an operator's, and nobody makes a key above their own.
fn check_role(asker: &Asker, role: Role) -> Result<(), Error> {
    if !at_least(asker.caller.role, role) {
        let own = asker.caller.role;
        return Err(Error::forbidden(format!("a key with the role `{own}` makes no key with the role `{role}`")));
    }
    if role == Role::Operator {
        return Err(Error::bad_body("`role`: a tenant has no key with the role `operator`")
            .hint("POST /admin/v1/keys makes keys for operators"));
    }
    Ok(())
}

/// What the new key may use. One with a quota makes none with more, else it had only to make itself another.
fn quota(asker: &Asker, asked: &Quota) -> Result<Quota, Error> {
    let own = &asker.caller.quota;
    if asked.disk_bytes.is_some() {
        return Err(Error::bad_body("`quota.disk_bytes`: the disk is counted by tenant, a key has no part of its own"));
    }
    Ok(Quota {
        requests_per_s: at_most("requests_per_s", asked.requests_per_s, own.requests_per_s)?,
        burst: at_most("burst", asked.burst, own.burst)?,
        concurrent: at_most("concurrent", asked.concurrent, own.concurrent)?,
        cpu_s_per_min: at_most("cpu_s_per_min", asked.cpu_s_per_min, own.cpu_s_per_min)?,
        egress_bytes_per_min: at_most("egress_bytes_per_min", asked.egress_bytes_per_min, own.egress_bytes_per_min)?,
        disk_bytes: None,
    })
}

fn at_most<T: PartialOrd + Display>(name: &str, asked: Option<T>, own: Option<T>) -> Result<Option<T>, Error> {
    match (asked, own) {
        (Some(asked), Some(own)) if asked > own => {
            Err(Error::forbidden(format!("`quota.{name}`: this key has {own} and makes no key with more")))
        }
        (asked, own) => Ok(asked.or(own)),
    }
}

/// When the new key expires. Whoever comes with a key or token that ends makes none that outlives it: otherwise its expiry
/// meant nothing.
fn expiry(asker: &Asker, in_s: Option<u64>, at: Option<Timestamp>) -> Result<Option<Timestamp>, Error> {
    let asked = match (in_s, at) {
        (Some(_), Some(_)) => return Err(Error::bad_body("`expires_in_s` and `expires_at` exclude each other")),
        (Some(seconds), None) => Some(now().saturating_add(seconds)),
        (None, at) => at,
    };
    if asked.is_some_and(|at| at <= now()) {
        return Err(Error::bad_body("the key would be expired from the start"));
    }
    match (asked, asker.caller.expires_at) {
        (Some(asked), Some(own)) if asked > own => {
            Err(Error::forbidden(format!("this key or token expires at {own} and makes no key that outlives it")))
        }
        (asked, own) => Ok(asked.or(own)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Caller;
    use axum::http::HeaderMap;

    /// An admin who came with a token of the issuer.
    fn with_token(ends: Timestamp) -> Asker {
        let caller = Caller {
            key: None,
            subject: "oauth:ann".to_owned(),
            tenant: Some("acme".to_owned()),
            role: Role::Admin,
            scope: Scope::default(),
            quota: Quota::default(),
            quota_id: "acme/oauth:ann".to_owned(),
            expires_at: Some(ends),
        };
        Asker { caller, credentials: HeaderMap::new() }
    }

    #[test]
    fn a_token_makes_no_key_that_outlives_it() {
        let soon = now() + 300;
        let asker = with_token(soon);
        let made = |in_s, at| expiry(&asker, in_s, at).ok();
        assert_eq!(made(None, None), Some(Some(soon)), "not one that never expires");
        assert_eq!(made(None, Some(soon - 1)), Some(Some(soon - 1)));
        assert_eq!(made(None, Some(soon + 1)), None);
        assert_eq!(made(Some(86_400), None), None);
    }
}
