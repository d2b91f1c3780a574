//! What an author may have beyond a result: a client to ask and to tell, log levels, completion, and all that MCP lets a
//! server say of itself. The host's side of it is played by the test.

mod client;
mod questions;
#[path = "../support/mod.rs"]
mod support;
mod surface;
