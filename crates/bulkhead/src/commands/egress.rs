//! `bulkhead egress`: what a server may reach, and why not.

use super::deploy::{list, lock_of, next};
use super::names::{self, Place};
use super::table::{Table, field, when};
use super::{print_answer, print_text, print_value, with_host};
use crate::client::{Client, ClientError, Connection};
use ::egress::{BareStar, Decision, Door, Rules, Settings};
use serde_json::{Value, json};
use std::process::ExitCode;

/// What servers may reach.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead egress explain --server acme/prices https://api.example.com/v1/prices\n  \
    bulkhead egress explain --base https://api.example.com/v1/ http://169.254.169.254/ --json\n  \
    bulkhead egress list acme/prices")]
pub struct Egress {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Explain(Explain),
    List(List),
}

/// List what a server asked of the network since its host began: hosts, decisions, and how much went to and fro.
///
/// At most 200 hosts are told apart. `bulkhead audit-log` and `bulkhead calls` have the hosts of each call for good.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead egress list acme/prices\n  \
    bulkhead egress list acme/prices --json | jq '.hosts[] | select(.decision == \"denied\")'")]
struct List {
    /// Whose it is and what it is called
    #[arg(value_name = "TENANT/SERVER", value_parser = names::place)]
    server: Place,
    /// Print {"since", "hosts", "others"}
    #[arg(long)]
    json: bool,
}

/// Say whether a request would be let out, and by which rule or for what reason not. Nothing is sent.
///
/// With --resolve the name is looked up on this machine, and so are its addresses judged. For a server of a host that runs as
/// `bulkhead dev --loopback PORT`, it always is.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead egress explain --server acme/prices https://api.example.com/v1/prices\n  \
    bulkhead egress explain --base api.example.com --method POST https://api.example.com/v1/prices --json")]
#[command(group(clap::ArgGroup::new("rules").required(true).args(["server", "base"])))]
struct Explain {
    /// The address
    #[arg(value_name = "URL")]
    address: String,
    /// By the rules of this server's deployment
    #[arg(long, value_name = "TENANT/SERVER", value_parser = names::place)]
    server: Option<Place>,
    /// By this rule, as a manifest's `egress` has it; may be repeated
    #[arg(long, value_name = "RULE")]
    base: Vec<String>,
    /// The request's method
    #[arg(long, default_value = "GET")]
    method: String,
    /// Look the name up, too
    #[arg(long)]
    resolve: bool,
    /// Print {"decision", "rule", "reason"}
    #[arg(long)]
    json: bool,
}

impl Egress {
    pub fn run(self, connection: &Connection) -> ExitCode {
        match self.command {
            Command::Explain(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Command::List(it) => with_host(connection, it.json, async |client| it.run(client).await),
        }
    }
}

impl List {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let answer = client.get(&["tenants", &self.server.tenant, "servers", &self.server.server, "egress"]).await?;
        if self.json {
            return Ok(print_answer(&answer));
        }
        let seen: Value = client.read(&answer)?;
        let mut table = Table::new(&["host", "decision", "requests", "up", "down", "last", "failed", "rule"]);
        for row in seen["hosts"].as_array().into_iter().flatten() {
            table.row(cells(row));
        }
        if seen["others"].is_object() {
            let mut cells = cells(&seen["others"]);
            cells[0] = "(others)".to_owned();
            table.row(cells);
        }
        Ok(print_text(&table.text()))
    }
}

fn cells(row: &Value) -> [String; 8] {
    let [host, decision, requests, up, down, failed, rule] =
        ["host", "decision", "requests", "bytes_up", "bytes_down", "failed", "rule"].map(|key| field(row, key));
    [host, decision, requests, up, down, when(row, "last_at"), failed, rule]
}

impl Explain {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let (entries, loopback) = match &self.server {
            Some(place) => (self.deployed(client, place).await?, next(client, place).await?.loopback),
            None => (self.base.clone(), Vec::new()),
        };
        let bad_rule = |denied: ::egress::Denied| ClientError::usage("bad_rule", denied.message);
        let rules = Rules::parse(entries.iter().map(String::as_str), BareStar::Refused).map_err(bad_rule)?;
        // A host for development reaches ports of loopback; its door alone knows which, and looks names up.
        let Decision { allowed, rule, reason } = match (self.resolve, loopback.is_empty()) {
            (false, true) => ::egress::explain(&rules, &self.address, &self.method),
            (true, true) => {
                let door = Door::serve(Settings::default()).map_err(bad_rule)?;
                door.explain(&rules, &self.address, &self.method).await
            }
            (_, false) => {
                let door = Door::dev(loopback, Settings::default()).map_err(bad_rule)?;
                door.explain(&rules, &self.address, &self.method).await
            }
        };
        let decision = if allowed { "allowed" } else { "denied" };
        if self.json {
            return Ok(print_value(&json!({ "decision": decision, "rule": rule, "reason": reason })));
        }
        let by = rule.map(|rule| format!(" by `{rule}`")).unwrap_or_default();
        Ok(print_text(&format!("{decision}{by}: {}", super::table::cell(&reason))))
    }

    async fn deployed(&self, client: &Client, place: &Place) -> Result<Vec<String>, ClientError> {
        let current = list(client, place).await?.into_iter().find(|entry| entry["current"] == true);
        let id = current.and_then(|entry| entry["id"].as_str().map(str::to_owned));
        let id = id.ok_or_else(|| ClientError::refused("not_found", format!("`{place}` has no deployment"), None))?;
        Ok(lock_of(client, place, &id).await?.egress.iter().map(ToString::to_string).collect())
    }
}
