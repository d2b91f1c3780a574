//! Servers that speak the protocol themselves: made with either version of the official TypeScript SDK, or a fetch handler.
//! They are bundled as their authors would and run behind the real wall. `scripts/examples.sh` has what they need.

mod bundled;
mod client;
mod examples;
mod hostile;
mod speaking;
#[path = "../support/mod.rs"]
mod support;
