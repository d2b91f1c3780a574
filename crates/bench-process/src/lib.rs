#![forbid(unsafe_code)]
//! What the benchmark and the soak have in common: servers, a host with the wall, and a look at the process tree.

pub mod host;
pub mod processes;
pub mod server;
