//! Connecting, renewing and revoking against a real provider on loopback.

mod flow;
mod hostile;
mod keeper;
#[path = "../provider/mod.rs"]
mod provider;
mod settings;
mod support;
