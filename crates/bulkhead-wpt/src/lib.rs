//! Runs web-platform-tests against the web APIs of the isolate.
//!
//! One isolate with the APIs installed is made first; each test file then runs in a fork of that process, just as
//! tenants' code does, with a time limit.
//!

// Not `forbid`: it forks and is preloaded, so three modules need `unsafe`, and say for what.
#![deny(unsafe_code)]

mod checkout;
#[allow(unsafe_code, reason = "a fork, and a pipe to it")]
mod child;
mod cli;
#[allow(unsafe_code, reason = "V8's callback scope, and a clock")]
mod realm;
mod report;
mod runner;
mod terminal;

#[allow(unsafe_code, reason = "takes the place of the carrier's `main`")]
mod entry {
    isolate_engine::entry!(crate::runner::main);
}
