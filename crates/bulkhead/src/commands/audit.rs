//! `bulkhead audit-log`: whether the record of all calls and changes is whole.

use super::table::field;
use super::{print_answer, print_text, print_value, with_host};
use crate::client::Connection;
use crate::report::{self, FAULT, REFUSED, USAGE};
use registry::VerifyError;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// The audit log: verify it, or print its head.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead audit-log verify --data bulkhead-data\n  \
    bulkhead audit-log head > somewhere-safe\n  \
    bulkhead audit-log verify --data bulkhead-data --expect \"$(cat somewhere-safe)\"")]
pub struct AuditLog {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Verify(Verify),
    Head(Head),
}

/// Check the whole chain of the audit log in a data directory, with or without a host that runs there.
///
/// Each line holds the hash of the one before, so that a gap or a change anywhere shows. Whoever could rewrite the file
/// could rewrite all of it; against that, keep its head elsewhere and give it with --expect.
///
/// Exit status: 0 it is whole, 1 it is not.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead audit-log verify --data bulkhead-data\n  \
    bulkhead audit-log verify --data bulkhead-data --expect 1042:9f2c… --json")]
struct Verify {
    /// The data directory [default: bulkhead-data] [env: BULKHEAD_DATA]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A head that was written down earlier: HASH, or SEQ:HASH
    #[arg(long, value_name = "HEAD")]
    expect: Option<String>,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
}

/// Print the number and hash of the last line, to keep elsewhere.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bulkhead audit-log head")]
struct Head {
    /// Print {"seq", "hash"}
    #[arg(long)]
    json: bool,
}

impl AuditLog {
    pub fn run(self, connection: &Connection) -> ExitCode {
        match self.action {
            Action::Verify(verify) => verify.run(),
            Action::Head(head) => head.run(connection),
        }
    }
}

impl Verify {
    fn run(self) -> ExitCode {
        let variable = || std::env::var_os("BULKHEAD_DATA").filter(|value| !value.is_empty()).map(PathBuf::from);
        let data = self.data.or_else(variable).unwrap_or_else(|| PathBuf::from("bulkhead-data"));
        let found = match registry::verify(&data, self.expect.as_deref()) {
            Ok(found) => found,
            Err(error) => {
                let (exit, code) = match &error {
                    VerifyError::Broken { .. } => (REFUSED, "audit_broken"),
                    VerifyError::BadHead { .. } => (USAGE, "bad_head"),
                    VerifyError::Unreadable { .. } => (FAULT, "audit_unreadable"),
                };
                return report::fail(exit, code, &error, error.hint().as_deref(), self.json);
            }
        };
        if self.json {
            return print_value(&json!({
                "ok": true, "lines": found.lines, "segments": found.segments, "first_seq": found.first_seq,
                "last_seq": found.last_seq, "head": found.head, "torn_bytes": found.torn_bytes,
            }));
        }
        if found.torn_bytes > 0 {
            let torn = found.torn_bytes;
            report::talk(&format!(
                "note: {torn} bytes at the end are a line that is being written, or was when the host died"
            ));
        }
        if found.first_seq > 1 {
            let gone = found.first_seq - 1;
            report::talk(&format!(
                "note: the first {gone} lines were let go of (`audit_log.keep_days`), as the log had announced"
            ));
        }
        print_text(&format!("ok: {} lines, head {}:{}", found.lines, found.last_seq, found.head))
    }
}

impl Head {
    fn run(self, connection: &Connection) -> ExitCode {
        with_host(connection, self.json, async |client| {
            let answer = client.get(&["audit", "head"]).await?;
            if self.json {
                return Ok(print_answer(&answer));
            }
            let head: Value = client.read(&answer)?;
            Ok(print_text(&super::table::cell(&format!("{}:{}", field(&head, "seq"), field(&head, "hash")))))
        })
    }
}
