//! Who asks, and whether they may.

use super::Admin;
use super::body::Charge;
use super::error::Error;
use crate::auth::Caller;
use crate::quota::Exceeded;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use registry::{Actor, Directory, Role, Server, Tenant};
use std::sync::Arc;

/// Whoever sent a request, once their key or token was found good. Everything a handler decides about them starts here.
///
/// It must be the first extractor of a handler, so that a stranger hears nothing but "who are you".
pub struct Asker {
    pub caller: Caller,
    /// What it was that they showed; a stream shows it again to learn whether it still counts.
    pub credentials: HeaderMap,
}

impl FromRequestParts<Arc<Admin>> for Asker {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, admin: &Arc<Admin>) -> Result<Asker, Response> {
        let caller = admin.app.authenticate(&parts.headers).await?;
        if let Some(tenant) = &caller.tenant {
            let too_much = |exceeded: Exceeded| {
                let error = Error::new(StatusCode::TOO_MANY_REQUESTS, "quota_exceeded", exceeded.to_string());
                error.retry_after(u32::try_from(exceeded.retry_after_s()).unwrap_or(u32::MAX)).into_response()
            };
            admin.app.ask(tenant).map_err(too_much)?;
        }
        let mut credentials = HeaderMap::new();
        if let Some(value) = parts.headers.get(header::AUTHORIZATION) {
            credentials.insert(header::AUTHORIZATION, value.clone());
        }
        // What they send counts for them.
        let holder = caller.tenant.clone().unwrap_or_else(|| caller.subject.clone());
        parts.extensions.insert(Charge { held: admin.app.held.clone(), holder });
        Ok(Asker { caller, credentials })
    }
}

/// The higher, the more one may do.
fn rank(role: Role) -> u8 {
    match role {
        Role::Call => 0,
        Role::Deploy => 1,
        Role::Admin => 2,
        Role::Operator => 3,
    }
}

pub fn at_least(has: Role, needed: Role) -> bool {
    rank(has) >= rank(needed)
}

impl Asker {
    pub fn actor(&self) -> Actor {
        Actor(self.caller.subject.clone())
    }

    /// For what belongs to no tenant. That these routes exist is no secret, so whoever lacks the role is told.
    pub fn operator(&self) -> Result<(), Error> {
        self.role(Role::Operator)
    }

    /// Refuses whoever has less than this role. Ask it after [`Asker::tenant`]: who is not of a tenant must not even
    /// learn that a role is missing.
    pub fn role(&self, needed: Role) -> Result<(), Error> {
        if at_least(self.caller.role, needed) { Ok(()) } else { Err(Error::needs_role(needed, self.caller.role)) }
    }

    pub fn tenant(&self, directory: &Directory, tenant: &str) -> Result<Arc<Tenant>, Error> {
        match directory.tenants.get(tenant) {
            Some(found) if self.caller.of_tenant(tenant) => Ok(found.clone()),
            _ => Err(Error::not_found()),
        }
    }

    /// What a tenant trusts only those with who run all of it.
    pub fn runs(&self, directory: &Directory, tenant: &str) -> Result<Arc<Tenant>, Error> {
        let found = self.tenant(directory, tenant)?;
        self.role(Role::Admin)?;
        self.whole_tenant()?;
        Ok(found)
    }

    /// A server that exists and that the caller may know of.
    pub fn server(&self, directory: &Directory, tenant: &str, server: &str) -> Result<Arc<Server>, Error> {
        let found = self.tenant(directory, tenant)?;
        self.server_name(server)?;
        found.servers.get(server).cloned().ok_or_else(Error::not_found)
    }

    /// A server that the caller may know of, whether it exists or not.
    pub fn server_name(&self, server: &str) -> Result<(), Error> {
        if self.caller.may_use_server(server) { Ok(()) } else { Err(Error::not_found()) }
    }

    /// What concerns a tenant as a whole is not for a key that is good for some of its servers.
    pub fn whole_tenant(&self) -> Result<(), Error> {
        let scope = &self.caller.scope;
        if scope.servers.is_none() && scope.tools.is_none() {
            return Ok(());
        }
        Err(Error::forbidden(
            "this concerns the whole tenant, and this key is good for some of its servers or tools only",
        ))
    }
}
