//! `bulkhead diff`: what differs between two deployments.

use super::deploy::{before, list};
use super::names::{self, Place};
use super::{print_text, print_value, with_host};
use crate::client::{Client, ClientError, Connection};
use bundle::{Change, Drift, Lock, LockedLimits, ServerName, Surface, Wall};
use policy::{Boundary, Limits};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

/// Show what differs between two deployments in what they offer and what they may use.
///
/// Tools, resources, templates, prompts with all their text and schemas; limits, boundary, wall, jit. Characters that
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

#[derive(Deserialize)]
struct Detail {
    manifest: Asked,
    surface: Value,
}

#[derive(Deserialize)]
struct Asked {
    wall: String,
    boundary: Boundary,
    jit: bool,
    limits: Limits,
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
        let changes = Drift::between(&self.look(client, &old).await?, &self.look(client, &new).await?);
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

    async fn look(&self, client: &Client, id: &str) -> Result<Lock, ClientError> {
        let Place { tenant, server } = &self.server;
        let path = ["tenants", tenant, "servers", server, "deployments", id];
        let Detail { manifest, surface } = client.read(&client.answer(client.admin(Method::GET, &path, &[])).await?)?;
        let strange = |what: String| ClientError::refused("bad_answer", format!("deployment {id}: {what}"), None);
        if manifest.wall != Wall::Isolate.as_str() {
            return Err(strange(format!("`{}` is a wall that this program does not know", manifest.wall)));
        }
        Ok(Lock {
            server: server.parse::<ServerName>().map_err(|error| strange(error.to_string()))?,
            surface: Surface::new(surface).map_err(|error| strange(error.to_string()))?,
            egress: BTreeSet::new(),
            secrets: BTreeSet::new(),
            limits: LockedLimits::from(&manifest.limits),
            wall: Wall::Isolate,
            boundary: manifest.boundary,
            jit: manifest.jit,
            files: BTreeMap::new(),
            previous: None,
        })
    }
}

fn as_json(change: &Change) -> Value {
    let mut value = json!(change);
    value["widens"] = change.widens().into();
    value
}
