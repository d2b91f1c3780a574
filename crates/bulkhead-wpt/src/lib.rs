//! Runs web-platform-tests against the web APIs of the isolate.
//!
//! One isolate with the APIs installed is made first; each test file then runs in a fork of that process, just as
//! tenants' code does, with a time limit.

#![forbid(unsafe_code)]

mod checkout;
mod child;
mod cli;
mod realm;
mod report;
mod runner;
mod terminal;

isolate_engine::entry!(crate::runner::main);
