//! Commands that talk to a host. Each is a struct of its flags with a `run`.

mod allow;
mod audit;
mod call;
mod calls;
mod deploy;
mod diff;
mod egress;
mod host;
mod key;
mod logs;
mod names;
mod project;
mod provider;
mod publisher;
mod quota;
mod secret;
mod server;
mod table;
mod tenant;

pub use audit::AuditLog;
pub use call::{Call, Tools};
pub use calls::Calls;
pub use deploy::{Approve, Deploy, Deployments, Rollback};
pub use diff::Diff;
pub use egress::Egress;
pub use host::{Host, LimitsCommand, Reload};
pub use key::Key;
pub use logs::Logs;
pub use project::Init;
pub use provider::{Connect, Connections, Disconnect, Provider};
pub use publisher::Publisher;
pub use secret::Secret;
pub use server::Server;
pub use tenant::Tenant;

use crate::client::{Answer, Client, ClientError, Connection};
use crate::report;
use crate::terminal;
use serde_json::Value;
use std::process::ExitCode;

/// Runs what needs a host.
fn with_host(
    connection: &Connection,
    as_json: bool,
    work: impl AsyncFnOnce(&Client) -> Result<ExitCode, ClientError>,
) -> ExitCode {
    let done = Client::new(connection).and_then(|client| {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ClientError::Runtime)?;
        runtime.block_on(work(&client))
    });
    done.unwrap_or_else(|error| error.explain(as_json))
}

/// Prints an answer as the host wrote it.
fn print_answer(answer: &Answer) -> ExitCode {
    report::data(&terminal::json(&answer.text()), ExitCode::SUCCESS)
}

fn print_value(value: &Value) -> ExitCode {
    report::data(&terminal::json(&value.to_string()), ExitCode::SUCCESS)
}

/// Prints words of the host, escaped.
fn print_text(text: &str) -> ExitCode {
    report::data(text, ExitCode::SUCCESS)
}

/// Says something that may hold words of the host.
fn talk(text: &str) {
    report::talk(&terminal::text(text));
}
