//! `bulkhead diff`: what differs between two deployments.

use super::deploy::{before, list, locked};
use super::names::{self, Place};
use super::{print_text, print_value, with_host};
use crate::client::{Client, ClientError, Connection};
use bundle::{Change, Drift};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Show what differs between two deployments in what they offer and what they may use.
///
/// Tools, resources, templates, prompts with all their text and schemas; hosts, secrets, limits, boundary, wall, jit. Characters that
/// cannot be seen are made visible. Code is not compared.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead diff acme/prices\n  \
    bulkhead diff acme/prices OLD NEW\n  \
    bulkhead diff acme/prices --json | jq -r '.changes[] | select(.widens) | .pointer'")]
pub struct Diff {
    /// Whose it is and what it is called
    #[arg(value_name = "TENANT/SERVER", value_parser = names::place)]
    server: Place,
    /// A deployment, as `bulkhead deployments` shows it [default: the one before NEW]
    #[arg(value_name = "OLD", value_parser = names::id)]
    old: Option<String>,
    /// Another one [default: the current one]
    #[arg(value_name = "NEW", value_parser = names::id)]
    new: Option<String>,
    /// Print {"old", "new", "changes"}
    #[arg(long)]
    json: bool,
}

impl Diff {
    pub fn run(self, connection: &Connection) -> ExitCode {
        with_host(connection, self.json, async |client| self.show(client).await)
    }

    async fn show(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let deployments = list(client, &self.server).await?;
        let none = |what: &str| {
            let hint = format!("`bulkhead deployments {}` lists what there is", self.server);
            ClientError::refused("not_found", format!("there is no deployment {what}"), Some(hint))
        };
        let current = || deployments.iter().find(|entry| entry["current"] == true)?["id"].as_str().map(str::to_owned);
        let new = self.new.clone().or_else(current).ok_or_else(|| none("yet"))?;
        let old = self.old.clone().or_else(|| before(&deployments)).ok_or_else(|| none("before the current one"))?;
        let changes =
            Drift::between(&locked(client, &self.server, &old).await?, &locked(client, &self.server, &new).await?);
        if self.json {
            let changes: Vec<Value> = changes.iter().map(as_json).collect();
            return Ok(print_value(&json!({ "old": old, "new": new, "changes": changes })));
        }
        if changes.is_empty() {
            super::talk("no difference in what they offer and may use");
            return Ok(ExitCode::SUCCESS);
        }
        let lines: Vec<String> = changes.iter().map(Change::to_string).collect();
        Ok(print_text(&lines.join("\n")))
    }
}

fn as_json(change: &Change) -> Value {
    let mut value = json!(change);
    value["widens"] = change.widens().into();
    value
}
