//! `bulkhead deployments`, `rollback` and `approve`: the versions that a server has.

use super::proposal::Proposal;
use crate::client::{Client, ClientError, Connection};
use crate::commands::names::{self, Place};
use crate::commands::table::{Table, field, when};
use crate::commands::{print_answer, print_text, print_value, talk, with_host};
use crate::report::REFUSED;
use bundle::{Digest, Lock, Seal, canonical};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead, IsTerminal, Read};
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
            let asks = deployments.iter().any(|entry| entry["proposed_by"].is_string());
            let more = if asks {
                ["proposed", "proposed by", "approved", "approved by"]
            } else {
                ["wall", "boundary", "bytes", ""]
            };
            let mut table = Table::new(&[["state", "deployment", "deployed", "by"].as_slice(), &more].concat());
            for entry in &deployments {
                let manifest = &entry["manifest"];
                let more = if asks {
                    [
                        when(entry, "proposed_at"),
                        field(entry, "proposed_by"),
                        when(entry, "approved_at"),
                        field(entry, "approved_by"),
                    ]
                } else {
                    [field(manifest, "wall"), field(manifest, "boundary"), field(entry, "size"), String::new()]
                };
                let head =
                    [field(entry, "state"), field(entry, "id"), when(entry, "created_at"), field(entry, "created_by")];
                table.row(head.into_iter().chain(more));
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
            None => {
                let deployments = list(client, &self.server).await?;
                before(&deployments).ok_or_else(|| no_earlier(&self.server, &deployments))?
            }
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

/// Agree to a deployment that waits for it, after it was shown.
///
/// Where a tenant asks for it (`bulkhead tenant set acme --approval on`), every change of what a server runs waits until
/// somebody with another key agreed: a first deployment, a new one, a rollback, the end of a quarantine. `bulkhead
/// deployments` lists it as `proposed`.
///
/// Of a first deployment, everything is shown: tools, hosts, secrets and where they go, command, limits, files. Of a change,
/// everything that differs is shown, also the files of its code. On a terminal the command then asks. Elsewhere --yes agrees to
/// what is shown, and --digest to what was shown before: if the proposal was replaced since, it is refused.
///
/// A key, the keys made with it, and the keys made with those count as one: the second key is none of them.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead approve acme/prices DEPLOYMENT\n  \
    bulkhead approve acme/prices DEPLOYMENT --yes\n  \
    bulkhead approve acme/prices DEPLOYMENT --json | jq -r .digest\n  \
    bulkhead approve acme/prices DEPLOYMENT --digest DIGEST")]
pub struct Approve {
    /// Whose it is and what it is called
    #[arg(value_name = "TENANT/SERVER", value_parser = names::place)]
    server: Place,
    /// As `bulkhead deployments` shows it
    #[arg(value_name = "DEPLOYMENT", value_parser = names::id)]
    id: String,
    /// Agree to what is shown, without asking
    #[arg(long)]
    yes: bool,
    /// Agree if this is still the digest of the proposal
    #[arg(long, value_name = "DIGEST", conflicts_with = "yes", value_parser = |text: &str| text.parse::<Digest>().map_err(|_| "this is no digest: it has 64 digits of hex"))]
    digest: Option<Digest>,
    /// Print what is shown as JSON: {"server", "deployment", "digest", "current", "lock", "changes", "files", "approved", …}
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
            url: String,
        }
        let proposal = Proposal::fetch(client, &self.server, &self.id).await?;
        proposal.waits()?;
        if !self.json {
            proposal.lines().iter().for_each(|line| talk(line));
        }
        let digest = proposal.digest();
        if let Some(seen) = self.digest.filter(|seen| *seen != digest) {
            let what = format!(
                "the digest of the proposal is {digest}, not {seen}: it was replaced, or something else became current"
            );
            let hint = format!("look at it again: bulkhead approve {} {}", self.server, self.id);
            return Err(ClientError::refused("stale_proposal", what, Some(hint)));
        }
        if !(self.yes || self.digest.is_some() || self.confirmed()) {
            return Ok(self.not_yet(&proposal));
        }
        let Place { tenant, server } = &self.server;
        let mut seal = Seal::new(&proposal.lock);
        super::authenticate(client, &mut seal).await?;
        let path = ["tenants", tenant, "servers", server, "deployments", &self.id, "approve"];
        let order = json!({ "seal": seal.value(), "proposal": digest.to_string() });
        let made: Made = client.read(&client.post(&path, &order).await?)?;
        if self.json {
            let mut shown = proposal.json();
            shown["approved"] = true.into();
            shown["url"] = made.url.into();
            return Ok(print_value(&shown));
        }
        talk(&format!("approved: `{}` runs deployment {}", self.server, self.id));
        Ok(print_text(&crate::commands::table::cell(&made.url)))
    }

    /// Asks whoever sits in front of a terminal.
    fn confirmed(&self) -> bool {
        if self.json || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return false;
        }
        talk("approve this? Type `yes`:");
        let mut answer = String::new();
        // Nobody types more than this.
        let read = std::io::stdin().lock().take(100).read_line(&mut answer);
        read.is_ok() && agrees(&answer)
    }

    fn not_yet(&self, proposal: &Proposal) -> ExitCode {
        let (place, id, digest) = (&self.server, &self.id, proposal.digest());
        let message = "nothing was approved";
        let hint = format!("to approve exactly this: bulkhead approve {place} {id} --digest {digest}");
        if self.json {
            let mut shown = proposal.json();
            shown["approved"] = false.into();
            shown["error"] = json!({ "code": "approval_needed", "message": message, "hint": hint });
            let _ = print_value(&shown);
            return ExitCode::from(REFUSED);
        }
        ClientError::refused("approval_needed", message, Some(hint)).explain(false)
    }
}

fn agrees(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// What was signed for a deployment.
pub async fn lock_of(client: &Client, place: &Place, id: &str) -> Result<Lock, ClientError> {
    #[derive(Deserialize)]
    struct Detail {
        lock: Value,
    }
    let path = ["tenants", &place.tenant, "servers", &place.server, "deployments", id];
    let Detail { lock } = client.read(&client.get(&path).await?)?;
    locked(id, lock)
}

pub fn locked(id: &str, lock: Value) -> Result<Lock, ClientError> {
    Lock::parse(&canonical(&lock))
        .map_err(|error| ClientError::refused("bad_answer", format!("deployment {id}: {error}"), None))
}

/// The newest that was made before the current one and that callers have reached.
pub fn before(deployments: &[Value]) -> Option<String> {
    let current = deployments.iter().position(|entry| entry["current"] == true)?;
    let older = deployments.get(current + 1..)?.iter().find(|entry| entry["activated_at"].is_u64())?;
    Some(older["id"].as_str()?.to_owned())
}

/// Why `rollback` without a name goes nowhere.
fn no_earlier(place: &Place, deployments: &[Value]) -> ClientError {
    let (what, hint) = match deployments.iter().find(|entry| entry["current"] == true) {
        None => (
            format!("`{place}` runs nothing, so there is nothing to go back from"),
            format!("bulkhead deployments {place} lists what there is"),
        ),
        Some(current) => (
            format!("deployment {} is current, and none that was made before it has run", field(current, "id")),
            format!("name the one to go to, older or newer: bulkhead rollback {place} DEPLOYMENT"),
        ),
    };
    ClientError::refused("not_found", what, Some(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rollback_goes_one_back_from_the_current_one() {
        let list = |current: usize| -> Vec<Value> {
            (0..3).map(|n| json!({ "id": format!("d{n}"), "current": n == current, "activated_at": 1 })).collect()
        };
        assert_eq!(before(&list(0)).as_deref(), Some("d1"));
        assert_eq!(before(&list(1)).as_deref(), Some("d2"));
        assert_eq!(before(&list(2)), None);
        assert_eq!(before(&list(9)), None);
        // One that nobody agreed to is not gone back to; one that ran and is proposed again is.
        let mut never = list(0);
        never[1]["activated_at"] = Value::Null;
        never[2]["pending"] = true.into();
        assert_eq!(before(&never).as_deref(), Some("d2"));
    }

    #[test]
    fn only_yes_agrees() {
        assert!(["yes\n", "y\n", " YES \r\n"].iter().all(|answer| agrees(answer)));
        assert!(!["", "\n", "no\n", "yes please\n", "yess\n"].iter().any(|answer| agrees(answer)));
    }
}
