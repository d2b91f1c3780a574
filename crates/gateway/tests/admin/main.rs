//! The admin API: what each route gives, and what it says when it refuses.

#[path = "../stage/mod.rs"]
mod stage;

mod calls;
mod deployments;
mod document;
mod host;
mod keys;
mod logs;
mod requests;
mod secret_policy;
mod servers;
mod tampering;
mod tenants;
