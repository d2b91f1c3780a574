//! `bulkhead tenant`: who has servers here.

use super::names;
use super::quota::QuotaArgs;
use super::table::{self, Table, field, when};
use super::{print_answer, print_text, print_value, talk, with_host};
use crate::client::{Client, ClientError, Connection};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// Tenants: create, list, show, change and delete them.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead tenant create acme\n  \
    bulkhead tenant create acme --json | jq -r .call_key\n  \
    bulkhead tenant set acme --requests-per-s 20 --recording on\n  \
    bulkhead tenant list")]
pub struct Tenant {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Create(Create),
    List(List),
    Show(Show),
    Set(Set),
    Delete(Delete),
}

/// Create a tenant and print its first three keys. They are shown this once.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead tenant create acme\n  \
    bulkhead tenant create acme --weight 3 --requests-per-s 100 --json")]
struct Create {
    /// Its name: small letters, digits and hyphens
    #[arg(value_parser = names::tenant)]
    tenant: String,
    /// Print {"tenant", "admin_key", "deploy_key", "call_key"}
    #[arg(long)]
    json: bool,
    /// Share of a busy host, relative to other tenants
    #[arg(long, value_name = "N")]
    weight: Option<u32>,
    /// Keep arguments and results in the audit log, not only their digests
    #[arg(long)]
    recording: bool,
    /// Every change of what a server runs needs the agreement of a second key (`bulkhead approve`)
    #[arg(long)]
    approval: bool,
    #[command(flatten)]
    quota: QuotaArgs,
}

/// List the tenants.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead tenant list\n  \
    bulkhead tenant list --json | jq -r '.tenants[].name'")]
struct List {
    /// Print {"tenants"}
    #[arg(long)]
    json: bool,
}

/// Show a tenant.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bulkhead tenant show acme")]
struct Show {
    /// Its name
    #[arg(value_parser = names::tenant)]
    tenant: String,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Change a tenant. What is not named stays as it is.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead tenant set acme --recording on\n  \
    bulkhead tenant set acme --weight 3 --concurrent 16\n  \
    bulkhead tenant set acme --reset-quota              back to the host's quota")]
#[command(group(clap::ArgGroup::new("what").multiple(true).required(true)
    .args(["weight", "recording", "approval", "reset_quota", "requests_per_s", "burst", "concurrent", "cpu_s_per_min",
        "egress_bytes_per_min", "disk_bytes"])))]
struct Set {
    /// Its name
    #[arg(value_parser = names::tenant)]
    tenant: String,
    /// Print the tenant as JSON
    #[arg(long)]
    json: bool,
    /// Share of a busy host, relative to other tenants
    #[arg(long, value_name = "N")]
    weight: Option<u32>,
    /// Keep arguments and results in the audit log, not only their digests
    #[arg(long, value_name = "ON|OFF")]
    recording: Option<Switch>,
    /// Every change of what a server runs needs the agreement of a second key (`bulkhead approve`); only an operator turns it
    /// off
    #[arg(long, value_name = "ON|OFF")]
    approval: Option<Switch>,
    /// Forget the tenant's own quota first
    #[arg(long)]
    reset_quota: bool,
    #[command(flatten)]
    quota: QuotaArgs,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Switch {
    On,
    Off,
}

/// Delete a tenant with its keys, servers and deployments. There is no way back.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bulkhead tenant delete acme")]
struct Delete {
    /// Its name
    #[arg(value_parser = names::tenant)]
    tenant: String,
    /// Print {"deleted"}
    #[arg(long)]
    json: bool,
}

impl Tenant {
    pub fn run(self, connection: &Connection) -> ExitCode {
        match self.action {
            Action::Create(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Action::List(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Action::Show(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Action::Set(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Action::Delete(it) => with_host(connection, it.json, async |client| it.run(client).await),
        }
    }
}

impl Create {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        #[derive(Deserialize)]
        struct Made {
            tenant: String,
            admin_key: String,
            deploy_key: String,
            call_key: String,
        }
        let mut order = Map::from_iter([("name".to_owned(), json!(self.tenant))]);
        if let Some(weight) = self.weight {
            order.insert("weight".to_owned(), json!(weight));
        }
        if self.recording {
            order.insert("recording".to_owned(), json!(true));
        }
        if self.approval {
            order.insert("approval".to_owned(), json!(true));
        }
        if !self.quota.is_empty() {
            order.insert("quota".to_owned(), Value::Object(self.quota.values()));
        }
        let answer = client.post(&["tenants"], &Value::Object(order)).await?;
        if self.json {
            return Ok(print_answer(&answer));
        }
        let made: Made = client.read(&answer)?;
        let lines = [("admin", made.admin_key), ("deploy", made.deploy_key), ("call", made.call_key)];
        let lines = lines.map(|(role, key)| format!("{role:6}  {}", table::cell(&key)));
        let exit = print_text(&lines.join("\n"));
        talk(&format!("tenant `{}` is there; its keys are shown this once, so keep them", made.tenant));
        Ok(exit)
    }
}

impl List {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let tenants = client.list(&["tenants"], "tenants").await?;
        if self.json {
            return Ok(print_value(&json!({ "tenants": tenants })));
        }
        let mut table = Table::new(&["tenant", "servers", "weight", "recording", "created"]);
        for tenant in &tenants {
            let recording = if tenant["recording"] == true { "on" } else { "off" };
            table.row([
                field(tenant, "name"),
                field(tenant, "servers"),
                field(tenant, "weight"),
                recording.to_owned(),
                when(tenant, "created_at"),
            ]);
        }
        Ok(print_text(&table.text()))
    }
}

impl Show {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let answer = client.get(&["tenants", &self.tenant]).await?;
        if self.json {
            return Ok(print_answer(&answer));
        }
        Ok(print_text(&table::object(&client.read(&answer)?)))
    }
}

impl Set {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let path = ["tenants", self.tenant.as_str()];
        let mut change = Map::new();
        if let Some(weight) = self.weight {
            change.insert("weight".to_owned(), json!(weight));
        }
        if let Some(recording) = self.recording {
            change.insert("recording".to_owned(), json!(matches!(recording, Switch::On)));
        }
        if let Some(approval) = self.approval {
            change.insert("approval".to_owned(), json!(matches!(approval, Switch::On)));
        }
        if self.reset_quota || !self.quota.is_empty() {
            // The host replaces the quota as a whole.
            let now: Value = client.read(&client.get(&path).await?)?;
            let mut quota = match now.get("quota") {
                Some(Value::Object(quota)) if !self.reset_quota => quota.clone(),
                _ => Map::new(),
            };
            quota.extend(self.quota.values());
            change.insert("quota".to_owned(), Value::Object(quota));
        }
        let answer = client.patch(&path, &Value::Object(change)).await?;
        if self.json {
            return Ok(print_answer(&answer));
        }
        Ok(print_text(&table::object(&client.read(&answer)?)))
    }
}

impl Delete {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        client.delete(&["tenants", &self.tenant]).await?;
        if self.json {
            return Ok(print_value(&json!({ "deleted": self.tenant })));
        }
        talk(&format!("tenant `{}` is deleted", self.tenant));
        Ok(ExitCode::SUCCESS)
    }
}
