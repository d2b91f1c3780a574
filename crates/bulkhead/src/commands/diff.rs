//! `bulkhead diff`: what differs between two deployments.

use super::deploy::{Files, before, list, lock_of};
use super::names::{self, Place};
use super::table::field;
use super::{print_text, print_value, with_host};
use crate::client::{Client, ClientError, Connection};
use crate::terminal;
use bundle::{Change, Drift};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Show what differs between two deployments: their files, what they offer, and what they may use.
///
/// Files by their digests; tools, resources, templates, prompts with all their text and schemas; hosts, secrets, limits,
/// boundary, wall, jit, command. Characters that cannot be seen are made visible.
///
/// Without names: from the current one to the newest that is proposed; if none is, from the one before to the current one. With one
/// name: a proposed one is compared with the current one, and the current one with an earlier one.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead diff acme/prices\n  \
    bulkhead diff acme/prices PROPOSED\n  \
    bulkhead diff acme/prices OLD NEW\n  \
    bulkhead diff acme/prices --json | jq -r '.changes[] | select(.widens) | .pointer'")]
pub struct Diff {
    /// Whose it is and what it is called
    #[arg(value_name = "TENANT/SERVER", value_parser = names::place)]
    server: Place,
    /// A deployment, as `bulkhead deployments` shows it
    #[arg(value_name = "OLD", value_parser = names::id)]
    old: Option<String>,
    /// Another one
    #[arg(value_name = "NEW", value_parser = names::id)]
    new: Option<String>,
    /// Print {"old", "old_state", "new", "new_state", "changes", "files", "files_changed"}
    #[arg(long)]
    json: bool,
}

impl Diff {
    pub fn run(self, connection: &Connection) -> ExitCode {
        with_host(connection, self.json, async |client| self.show(client).await)
    }

    async fn show(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let deployments = list(client, &self.server).await?;
        let (old, new) = self.sides(&deployments)?;
        let state = |id: &str| {
            let found = deployments.iter().find(|entry| entry["id"] == id);
            found.map_or("-".to_owned(), |entry| field(entry, "state"))
        };
        let changes =
            Drift::between(&lock_of(client, &self.server, &old).await?, &lock_of(client, &self.server, &new).await?);
        let files = Files::between(client, &self.server, Some(&old), &new).await?;
        if self.json {
            let changes: Vec<Value> = changes.iter().map(as_json).collect();
            return Ok(print_value(&json!({
                "old": old, "old_state": state(&old), "new": new, "new_state": state(&new),
                "changes": changes, "files": files.files, "files_changed": files.count,
            })));
        }
        let mut lines = vec![format!("from {old} ({})", state(&old)), format!("to   {new} ({})", state(&new))];
        lines.extend(files.lines());
        lines.extend(changes.iter().map(Change::to_string));
        if lines.len() == 2 {
            lines.push("no difference in their files, in what they offer and in what they may use".to_owned());
        }
        let lines: Vec<_> = lines.iter().map(|line| terminal::text(line)).collect();
        Ok(print_text(&lines.join("\n")))
    }

    /// What is compared, the older side first.
    fn sides(&self, deployments: &[Value]) -> Result<(String, String), ClientError> {
        let none = |what: &str| {
            let hint = format!("`bulkhead deployments {}` lists what there is", self.server);
            ClientError::refused("not_found", format!("there is no deployment {what}"), Some(hint))
        };
        let named = |found: Option<&Value>| found.and_then(|entry| entry["id"].as_str()).map(str::to_owned);
        let current =
            || named(deployments.iter().find(|entry| entry["current"] == true)).ok_or_else(|| none("that runs"));
        let waits = |entry: &&Value| matches!(entry["state"].as_str(), Some("proposed" | "stale"));
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => Ok((old.clone(), new.clone())),
            (Some(one), None) => {
                let current = current()?;
                let proposed = deployments.iter().filter(waits).any(|entry| entry["id"] == **one && *one != current);
                Ok(if proposed { (current, one.clone()) } else { (one.clone(), current) })
            }
            (None, _) => {
                let current = current()?;
                let pending = deployments.iter().find(|entry| entry["state"] == "proposed" && entry["id"] != *current);
                match named(pending) {
                    Some(proposed) => Ok((current, proposed)),
                    None => Ok((before(deployments).ok_or_else(|| none("before the current one"))?, current)),
                }
            }
        }
    }
}

pub fn as_json(change: &Change) -> Value {
    let mut value = json!(change);
    value["widens"] = change.widens().into();
    value["text"] = change.to_string().into();
    value
}
