//! The commands that talk to a host, against one that answers what the test wants.

mod access;
mod calls;
mod connections;
mod policies;
mod records;
mod servers;
#[path = "../support/mod.rs"]
mod support;
mod tenants;

use serde_json::Value;
use support::fake::{FakeHost, Reply};
use support::{Run, bulkhead};

const KEY: &str = "bh_operator_0123456789012345678901234567890123456789012";

/// Runs a command against the host, with a key in the environment.
fn run<'a>(host: &FakeHost, args: impl IntoIterator<Item = &'a str>) -> Run {
    prepared(host, args).now()
}

/// The same, to be run when it is looked at.
fn prepared<'a>(host: &FakeHost, args: impl IntoIterator<Item = &'a str>) -> Run {
    bulkhead(args).with_env("BULKHEAD_URL", &host.url()).with_env("BULKHEAD_KEY", KEY)
}

fn output(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("stdout is not JSON: {error}\n{run:?}"))
}

fn always(reply: fn() -> Reply) -> FakeHost {
    FakeHost::start(move |_| reply())
}
