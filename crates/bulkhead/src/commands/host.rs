//! `bulkhead host`, `limits` and `reload`: the host itself.

use super::table::{self, Table, field};
use super::{print_answer, print_text, talk, with_host};
use crate::client::Connection;
use policy::LimitName;
use reqwest::Method;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Show the host: version, walls, what runs and what is wrong.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead host\n  \
    bulkhead host --json | jq .walls.isolate.running")]
pub struct Host {
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

impl Host {
    pub fn run(self, connection: &Connection) -> ExitCode {
        with_host(connection, self.json, async |client| {
            let answer = client.get(&["host"]).await?;
            if self.json {
                return Ok(print_answer(&answer));
            }
            Ok(print_text(&table::object(&client.read(&answer)?)))
        })
    }
}

/// Show what a deployment may ask for on this host.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bulkhead limits")]
pub struct LimitsCommand {
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

impl LimitsCommand {
    pub fn run(self, connection: &Connection) -> ExitCode {
        with_host(connection, self.json, async |client| {
            let answer = client.get(&["limits"]).await?;
            if self.json {
                return Ok(print_answer(&answer));
            }
            let limits: Value = client.read(&answer)?;
            let mut table = Table::new(&["limit", "least", "default", "most", ""]);
            for name in LimitName::ALL {
                let of = |kind: &str| field(&limits[kind], name.as_str());
                let about = name.describe().trim_end_matches('.').to_owned();
                table.row([name.as_str().to_owned(), of("least"), of("default"), of("most"), about]);
            }
            let jit = if limits["jit"] == true { "allowed" } else { "not allowed" };
            Ok(print_text(&format!("{}\njit is {jit}", table.text())))
        })
    }
}

/// Have the host read its configuration again. One with a mistake is refused and changes nothing.
///
/// Some keys take effect only when the host starts (docs/configuration.md); those that changed are named.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bulkhead config check && bulkhead reload")]
pub struct Reload {
    /// Print {"reloaded", "at_start"}
    #[arg(long)]
    json: bool,
}

impl Reload {
    pub fn run(self, connection: &Connection) -> ExitCode {
        with_host(connection, self.json, async |client| {
            let answer: Value = client.read(&client.answer(client.admin(Method::POST, &["reload"], &[])).await?)?;
            let at_start = answer["at_start"].as_array().cloned().unwrap_or_default();
            if self.json {
                return Ok(super::print_value(&json!({ "reloaded": true, "at_start": at_start })));
            }
            talk("the configuration was read again");
            if !at_start.is_empty() {
                let keys: Vec<_> = at_start.iter().map(|key| format!("`{}`", table::word(key))).collect();
                talk(&format!("note: {} take effect when the host starts again; the old values stay", keys.join(", ")));
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}
