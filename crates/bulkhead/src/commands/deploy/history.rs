//! `bulkhead deployments`, `rollback` and `approve`: the versions that a server has.

use crate::client::{Client, ClientError, Connection};
use crate::commands::names::{self, Place};
use crate::commands::table::{Table, field, when};
use crate::commands::{print_answer, print_text, print_value, talk, with_host};
use bundle::{Lock, Seal, canonical};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use std::process::ExitCode;

/// List the deployments of a server, newest first.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead deployments acme/prices\n  \
    bulkhead deployments acme/prices --json | jq -r '.deployments[].id'")]
pub struct Deployments {
    /// Whose it is and what it is called
    #[arg(value_name = "TENANT/SERVER", value_parser = names::place)]
    server: Place,
    /// Print {"deployments"}
    #[arg(long)]
    json: bool,
}

pub async fn list(client: &Client, place: &Place) -> Result<Vec<Value>, ClientError> {
    client.list(&["tenants", &place.tenant, "servers", &place.server, "deployments"], "deployments").await
}

impl Deployments {
    pub fn run(self, connection: &Connection) -> ExitCode {
        with_host(connection, self.json, async |client| {
            let deployments = list(client, &self.server).await?;
            if self.json {
                return Ok(print_value(&json!({ "deployments": deployments })));
            }
            let mut table =
                Table::new(&["", "deployment", "deployed", "by", "proposed by", "wall", "boundary", "bytes"]);
            for entry in &deployments {
                let mark = match (&entry["current"], &entry["pending"]) {
                    (Value::Bool(true), _) => "*",
                    (_, Value::Bool(true)) => "?",
                    _ => "",
                };
                let manifest = &entry["manifest"];
                table.row([
                    mark.to_owned(),
                    field(entry, "id"),
                    when(entry, "created_at"),
                    field(entry, "created_by"),
                    field(entry, "proposed_by"),
                    field(manifest, "wall"),
                    field(manifest, "boundary"),
                    field(entry, "size"),
                ]);
            }
            Ok(print_text(&table.text()))
        })
    }
}

/// Make an earlier deployment current again: the one before the current one, or the one named.
///
/// With `--approval on` for the tenant it waits for a second key (`bulkhead approve`).
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead rollback acme/prices\n  \
    bulkhead rollback acme/prices DEPLOYMENT")]
pub struct Rollback {
    /// Whose it is and what it is called
    #[arg(value_name = "TENANT/SERVER", value_parser = names::place)]
    server: Place,
    /// As `bulkhead deployments` shows it
    #[arg(value_name = "DEPLOYMENT", value_parser = names::id)]
    id: Option<String>,
    /// Print the deployment as JSON
    #[arg(long)]
    json: bool,
}

impl Rollback {
    pub fn run(self, connection: &Connection) -> ExitCode {
        with_host(connection, self.json, async |client| self.roll_back(client).await)
    }

    async fn roll_back(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let id = match &self.id {
            Some(id) => id.clone(),
            None => before(&list(client, &self.server).await?).ok_or_else(|| {
                let hint = format!("`bulkhead deployments {}` lists what there is", self.server);
                ClientError::refused("not_found", "there is no deployment before the current one", Some(hint))
            })?,
        };
        let Place { tenant, server } = &self.server;
        let path = ["tenants", tenant, "servers", server, "deployments", &id, "activate"];
        let answer = client.answer(client.admin(Method::POST, &path, &[])).await?;
        let active: Value = client.read(&answer)?;
        if active["pending"] == true {
            return Err(super::waits(&self.server, &id));
        }
        if self.json {
            return Ok(print_answer(&answer));
        }
        talk(&format!("`{}` runs deployment {id} again", self.server));
        Ok(ExitCode::SUCCESS)
    }
}

/// Agree to a deployment that waits for it.
///
/// Where a tenant asks for it (`bulkhead tenant set acme --approval on`), every change of what a server runs waits until
/// somebody with another key agreed: a first deployment, a new one, a rollback, the end of a quarantine. `bulkhead
/// deployments` marks it with `?`. The differences are shown; without --yes nothing else happens.
///
/// A key, the keys made with it, and the keys made with those count as one: the second key is none of them.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead approve acme/prices DEPLOYMENT\n  \
    bulkhead approve acme/prices DEPLOYMENT --yes")]
pub struct Approve {
    /// Whose it is and what it is called
    #[arg(value_name = "TENANT/SERVER", value_parser = names::place)]
    server: Place,
    /// As `bulkhead deployments` shows it
    #[arg(value_name = "DEPLOYMENT", value_parser = names::id)]
    id: String,
    /// Agree to what is shown
    #[arg(long)]
    yes: bool,
    /// Print {"server", "deployment", "url"}
    #[arg(long)]
    json: bool,
}

impl Approve {
    pub fn run(self, connection: &Connection) -> ExitCode {
        with_host(connection, self.json, async |client| self.approve(client).await)
    }

    async fn approve(&self, client: &Client) -> Result<ExitCode, ClientError> {
        #[derive(Deserialize)]
        struct Made {
            deployment: String,
            url: String,
        }
        let lock = locked(client, &self.server, &self.id).await?;
        let next = super::next(client, &self.server).await?;
        let changes = next.changes(&lock);
        for change in &changes {
            talk(&change.to_string());
        }
        if !self.yes {
            let hint = "`--yes` agrees to what was shown".to_owned();
            let what = match (next.lock(), changes.len()) {
                (None, _) => "it is the first deployment of this server".to_owned(),
                (Some(_), 0) => "its code may differ, and nothing that it shows or may use does".to_owned(),
                (Some(_), count) => format!("{count} differences"),
            };
            let message = format!("{what}; nobody agreed to that yet");
            return Err(ClientError::refused("approval_needed", message, Some(hint)));
        }
        let Place { tenant, server } = &self.server;
        let mut seal = Seal::new(&lock);
        super::authenticate(client, &mut seal).await?;
        let path = ["tenants", tenant, "servers", server, "deployments", &self.id, "approve"];
        let made: Made = client.read(&client.post(&path, &json!({ "seal": seal.value() })).await?)?;
        if self.json {
            let server = self.server.to_string();
            return Ok(print_value(&json!({ "server": server, "deployment": made.deployment, "url": made.url })));
        }
        talk(&format!("`{}` runs deployment {}", self.server, made.deployment));
        Ok(print_text(&crate::commands::table::cell(&made.url)))
    }
}

/// What was signed for a deployment.
pub async fn locked(client: &Client, place: &Place, id: &str) -> Result<Lock, ClientError> {
    #[derive(Deserialize)]
    struct Detail {
        lock: Value,
    }
    let path = ["tenants", &place.tenant, "servers", &place.server, "deployments", id];
    let Detail { lock } = client.read(&client.get(&path).await?)?;
    Lock::parse(&canonical(&lock))
        .map_err(|error| ClientError::refused("bad_answer", format!("deployment {id}: {error}"), None))
}

/// The newest that is older than the current one, and does not wait for anybody.
pub fn before(deployments: &[Value]) -> Option<String> {
    let current = deployments.iter().position(|entry| entry["current"] == true)?;
    let older = deployments.get(current + 1..)?.iter().find(|entry| entry["pending"] != true)?;
    Some(older["id"].as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rollback_goes_one_back_from_the_current_one() {
        let list = |current: usize| -> Vec<Value> {
            (0..3).map(|n| json!({ "id": format!("d{n}"), "current": n == current })).collect()
        };
        assert_eq!(before(&list(0)).as_deref(), Some("d1"));
        assert_eq!(before(&list(1)).as_deref(), Some("d2"));
        assert_eq!(before(&list(2)), None);
        assert_eq!(before(&list(9)), None);
    }
}
