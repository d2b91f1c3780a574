#![forbid(unsafe_code)]
//! Who exists and what is deployed: tenants, keys, servers, deployments, the layers that programs run in, sessions, sealed
//! secrets, the audit log and the tools' own logs.
//!
//! All of it lies in one data directory that one host owns. Readers look at the [`Directory`], a snapshot in memory that is
//! replaced after each committed change, so that no request ever waits for the disk to learn who may do what.

mod approval;
mod audit;
mod bundles;
mod clock;
mod connections;
mod database;
mod deployments;
mod disk;
mod error;
mod files;
mod keeper;
mod keys;
mod layers;
mod lock;
mod logs;
mod master;
mod model;
mod name;
mod operator;
mod outbox;
mod policy_place;
mod providers;
mod reach;
mod registry;
mod requests;
mod rotation;
mod seal;
mod secret_policy;
mod secrets;
mod sessions;
mod snapshot;
mod tenants;
mod token;
mod vault;

pub use audit::{AuditError, AuditHealth, AuditLog, CallFilter, CallLine, Head, Recent, Verified, VerifyError, verify};
pub use clock::{now, rfc3339_now};
pub use error::{Cause, Holder, OpenError, RegistryError};
pub use logs::{ToolLine, ToolLogs};
pub use master::{MasterKey, MasterKeyError};
pub use model::*;
pub use name::is_name;
pub use policy_place::AllowedPlace;
pub use reach::{Reach, Sendable};
pub use registry::{Health, OpenOptions, Registry};
pub use requests::{Bundle, NewDeployment, NewKey, NewTenant, Next, ReceivedLayer, TenantPatch};
pub use secret_policy::{PolicyChange, SecretPolicy};
pub use token::{Token, token_hash};
