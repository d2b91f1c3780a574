//! What is asked of the registry, and what it answers.

use crate::{Manifest, Quota, Role, Scope, Tenant, Timestamp, Token};
use bytes::Bytes;
use serde_json::value::RawValue;
use std::sync::Arc;

/// A tenant, and the secrets of its first three keys: nobody can read them again.
#[derive(Clone, Debug)]
pub struct NewTenant {
    pub tenant: Arc<Tenant>,
    pub admin_key: Token,
    pub deploy_key: Token,
    pub call_key: Token,
}

/// What to change of a tenant; `None` leaves it as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TenantPatch {
    pub weight: Option<u32>,
    pub quota: Option<Quota>,
    pub recording: Option<bool>,
}

/// A key to make.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// None for an operator's.
    pub tenant: Option<String>,
    pub role: Role,
    pub name: String,
    pub scope: Scope,
    pub quota: Quota,
    pub expires_at: Option<Timestamp>,
}

/// A deployment to make, which the wall has initialised already.
#[derive(Clone, Debug)]
pub struct NewDeployment {
    pub tenant: String,
    pub server: String,
    pub source: Bytes,
    pub manifest: Manifest,
    /// What the code showed when it was initialised.
    pub surface: Box<RawValue>,
}
