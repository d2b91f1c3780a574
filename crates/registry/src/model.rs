//! The nouns.

use crate::vault::Vault;
use crate::{MasterKey, SecretPolicy};
use bundle::Lock;
use policy::{Boundary, Limits};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Seconds since 1970.
pub type Timestamp = u64;

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Runs the host: everything, every tenant.
    Operator,
    /// Runs one tenant: its keys, servers, deployments, settings.
    Admin,
    /// Deploys servers of one tenant.
    Deploy,
    /// Calls servers of one tenant.
    Call,
}

/// What a key is good for within its tenant. `None` is everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scope {
    /// Names of servers.
    pub servers: Option<Vec<String>>,
    /// `server/tool`, or `server/prefix*`.
    pub tools: Option<Vec<String>>,
}

/// What may be used. `None` inherits: a key its tenant's, a tenant the host's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quota {
    pub requests_per_s: Option<f64>,
    pub burst: Option<u32>,
    pub concurrent: Option<u32>,
    pub cpu_s_per_min: Option<f64>,
    pub egress_bytes_per_min: Option<u64>,
    /// Of the disk, by everything that is deployed, and 1 MiB for each server's log. A tenant's alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
}

/// A key without its secret; that is shown once, when it is made, and only its hash is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Key {
    pub id: String,
    /// None for the operator's.
    pub tenant: Option<String>,
    pub role: Role,
    /// What people call it.
    pub name: String,
    pub scope: Scope,
    pub quota: Quota,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// SHA-256 of a token. Tokens are 256 random bits, so there is nothing to guess and no slow hash is needed.
pub type TokenHash = [u8; 32];

#[derive(Clone, Debug)]
pub struct Tenant {
    pub name: String,
    pub created_at: Timestamp,
    /// Share of a busy host, relative to other tenants.
    pub weight: u32,
    pub quota: Quota,
    /// Whether arguments and results are kept in the audit log, not only their digests.
    pub recording: bool,
    /// Whether every change of what a server runs needs the agreement of a second key.
    pub approval: bool,
    /// No server that was removed came further.
    pub step: u64,
    pub servers: BTreeMap<String, Arc<Server>>,
}

#[derive(Clone, Debug)]
pub struct Server {
    pub tenant: String,
    pub name: String,
    pub created_at: Timestamp,
    /// What callers reach.
    pub current: Option<Arc<Deployment>>,
    /// Counts the changes of what it runs.
    pub step: u64,
    /// Why nobody may call it, if so.
    pub quarantine: Option<String>,
}

/// One version of a server. Immutable; its id is a digest of its code and everything that decides how it runs.
#[derive(Clone, Debug)]
pub struct Deployment {
    pub id: String,
    pub tenant: String,
    pub server: String,
    pub created_at: Timestamp,
    /// Id of the key that made it.
    pub created_by: String,
    /// SHA-256 of the code, as hex.
    pub digest: String,
    /// Bytes of all its files.
    pub size: u64,
    /// Of the lock that it was last deployed with.
    pub lock: bundle::Digest,
    /// Who signed that lock beside the tenant.
    pub publishers: Vec<bundle::PublicKey>,
    /// It waits for a second key to agree.
    pub pending: bool,
    /// Another deployment became current while it waited, so nobody can agree to it any more.
    pub stale: bool,
    /// Who proposed it and when, if the tenant asked for two keys.
    pub proposed_by: Option<String>,
    pub proposed_at: Option<Timestamp>,
    /// Who agreed to that, and when.
    pub approved_by: Option<String>,
    pub approved_at: Option<Timestamp>,
    /// When callers last began to reach it; `None` for one that they never reached.
    pub activated_at: Option<Timestamp>,
    pub manifest: Manifest,
    /// Tools, resources, templates and prompts as the code itself showed them when it was deployed.
    pub surface: Box<RawValue>,
}

/// How a deployment asks to be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Manifest {
    pub wall: String,
    pub boundary: Boundary,
    pub jit: bool,
    pub limits: Limits,
    /// What stack traces call the file.
    pub file_name: String,
    /// Names of the secrets that it is bound to, tokens of providers aside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

impl Default for Manifest {
    fn default() -> Manifest {
        Manifest {
            wall: "isolate".to_owned(),
            boundary: Boundary::default(),
            jit: false,
            limits: Limits::default(),
            file_name: "server.js".to_owned(),
            secrets: Vec::new(),
        }
    }
}

impl From<&Lock> for Manifest {
    fn from(lock: &Lock) -> Manifest {
        let own = lock.secrets.iter().filter(|binding| binding.connection.is_none());
        let mut secrets: Vec<_> = own.map(|binding| binding.name.to_string()).collect();
        secrets.dedup();
        Manifest {
            wall: lock.wall.as_str().to_owned(),
            boundary: lock.boundary,
            jit: lock.jit,
            limits: lock.limits(),
            file_name: lock.program.file().to_owned(),
            secrets,
        }
    }
}

/// Everything that decides who may call what, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    /// Rises with every change.
    pub revision: u64,
    pub tenants: HashMap<String, Arc<Tenant>>,
    /// Keys that are not revoked, by the hash of their token. Expiry is for the reader to check.
    pub keys: HashMap<TokenHash, Arc<Key>>,
    /// What is sealed stays sealed here, and is opened when it is asked for.
    pub(crate) vaults: HashMap<String, Arc<Vault>>,
    pub(crate) master: Option<Arc<MasterKey>>,
}

impl Server {
    /// Names the proposal of a deployment that waits: what a second key agrees to.
    pub fn proposal(&self, deployment: &Deployment) -> Option<bundle::Digest> {
        let current = self.current.as_ref().map(|current| &current.lock);
        deployment.pending.then(|| bundle::proposal(&deployment.lock, self.step + 1, current))
    }
}

impl Directory {
    pub fn server(&self, tenant: &str, server: &str) -> Option<&Arc<Server>> {
        self.tenants.get(tenant)?.servers.get(server)
    }
}

/// A secret, opened. Whoever takes its value looks at its policy first.
#[derive(Clone, Debug)]
pub struct Secret {
    pub value: SecretString,
    pub policy: SecretPolicy,
}

/// A secret without its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretInfo {
    pub name: String,
    /// Counts its values.
    pub version: u64,
    pub policy: SecretPolicy,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Where the users of a tenant get tokens for an upstream.
#[derive(Clone, Debug)]
pub struct Provider {
    pub name: String,
    /// A JSON object.
    pub settings: serde_json::Value,
    /// Which servers may use its tokens, and where.
    pub policy: SecretPolicy,
    pub client_secret: Option<SecretString>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A provider without its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderInfo {
    pub name: String,
    pub settings: serde_json::Value,
    pub policy: SecretPolicy,
    /// Whether it has a client secret.
    pub confidential: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A connection of somebody to a provider, without its tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionInfo {
    pub provider: String,
    /// Whose it is.
    pub subject: String,
    pub expires_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A session of the legacy protocol, as far as it outlives the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    pub id: String,
    pub tenant: String,
    /// None for the tenant's aggregate endpoint.
    pub server: Option<String>,
    /// Key id or subject it belongs to.
    pub owner: String,
    pub protocol_version: String,
    /// The client's capabilities, JSON.
    pub capabilities: String,
    pub created_at: Timestamp,
    pub used_at: Timestamp,
}

/// Who does something: the key's id, or `host` for the host itself.
#[derive(Clone, Debug)]
pub struct Actor(pub String);

/// One line of the audit log, before it has its number, time and hashes.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "nearly all are calls, and none lives longer than its line takes")]
pub enum AuditEvent {
    Call(CallEvent),
    Change(ChangeEvent),
    /// The host started, stopped, or repaired something.
    Host {
        what: String,
        detail: String,
    },
}

/// A call that reached a tool, a resource or a prompt, or was refused on its way there.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CallEvent {
    /// What the receipt and the tool's log call it; empty for one that was refused.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub call: String,
    pub tenant: String,
    pub server: String,
    /// Key id, or `sub` of a token.
    pub caller: String,
    /// `tools/call`, `resources/read`, `prompts/get`, `completion/complete`.
    pub method: String,
    pub name: String,
    pub deployment: String,
    pub wall: String,
    pub boundary: String,
    /// `ok`, or the code of the failure.
    pub outcome: String,
    pub cpu_us: u64,
    pub time_us: u64,
    pub wait_us: u64,
    pub peak_memory_kb: u64,
    pub cpu_limit_ms: u64,
    pub time_limit_ms: u64,
    pub memory_limit_mb: u64,
    pub host_calls: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
    /// Secrets that were masked in what came back.
    pub masked: u64,
    /// SHA-256 of the arguments, as hex.
    pub arguments_sha256: String,
    /// Only where the tenant turned recording on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// What of the two was to be recorded and is not: the line says so.
    #[serde(skip)]
    pub left_out: Vec<&'static str>,
    /// W3C trace id, when the call was traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// A change of the registry.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ChangeEvent {
    pub tenant: Option<String>,
    pub actor: String,
    /// `tenant.create`, `key.revoke`, `server.deploy` …
    pub action: String,
    /// What it was done to.
    pub subject: String,
    /// JSON; never a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<serde_json::Value>,
}
