//! Inside the jail. This library is preloaded into the executable that carries V8 and takes over before its `main`.
//!
//! One process starts, jails itself and becomes the base zygote; all others are forks of it:
//! a deployment zygote loads one server, and its forks are the compartments that serve calls.
//! Nothing here is trusted by the host once a tenant's code has run: what holds is the jail, and the
//! host's own measuring and killing.

mod account;
mod channel;
mod compartment;
mod natives;
mod realm;
mod rejections;
mod server;
mod start;
mod zygote;

#[global_allocator]
static ALLOCATOR: isolate_engine::Allocator = isolate_engine::Allocator;

#[cfg(not(feature = "standalone"))]
isolate_engine::entry!(crate::start::main);

#[cfg(feature = "standalone")]
isolate_engine::interpose!();

pub use start::main;
