//! What is asked of the registry, and what it answers.

use crate::{Deployment, Quota, Role, Scope, Tenant, Timestamp, Token};
use bundle::{Digest, Lock, Seal};
use bytes::Bytes;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::PathBuf;
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
    pub approval: Option<bool>,
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

/// A deployment to make. Whoever asks has verified it, and the wall has initialised it.
#[derive(Clone, Debug)]
pub struct NewDeployment {
    pub tenant: String,
    pub lock: Lock,
    pub seal: Seal,
    pub files: BTreeMap<String, Bytes>,
    /// What it runs in, if it runs a program: uploaded before.
    pub layer: Option<Digest>,
    /// What the code showed when it was initialised.
    pub surface: Box<RawValue>,
}

/// What a new lock for a server has to fit.
#[derive(Clone, Debug)]
pub struct Next {
    pub step: u64,
    /// What it replaces.
    pub current: Option<Arc<Deployment>>,
}

/// A deployment as it lies on the disk, verified.
#[derive(Clone, Debug)]
pub struct Bundle {
    pub lock: Lock,
    /// The code, if it is a module.
    pub source: Bytes,
    /// The folder that it runs in, if it is a program.
    pub layer: Option<PathBuf>,
}

/// A layer that is on the disk now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedLayer {
    pub digest: Digest,
    /// Bytes of all its files.
    pub size: u64,
    /// It was not there before.
    pub new: bool,
}
