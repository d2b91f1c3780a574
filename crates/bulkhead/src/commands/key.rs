//! `bulkhead key`: who may do what.

use super::names;
use super::quota::QuotaArgs;
use super::table::{self, Table, field, when, word};
use super::{print_answer, print_text, print_value, talk, with_host};
use crate::client::{Client, ClientError, Connection};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// Keys of a tenant or of the operator: create, list and revoke them.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead key create acme --role call --name ci --server prices --expires 30d\n  \
    bulkhead key create --operator --name backup\n  \
    bulkhead key list acme\n  \
    bulkhead key revoke acme KEY_ID")]
pub struct Key {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Create(Create),
    List(List),
    Revoke(Revoke),
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Role {
    /// Calls servers
    Call,
    /// Deploys servers, and calls them
    Deploy,
    /// Runs the tenant: its keys, servers and settings
    Admin,
}

/// Create a key and print it. It is shown this once.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead key create acme --role call --name ci --expires 30d\n  \
    bulkhead key create acme --server prices --tool 'prices/convert*'\n  \
    bulkhead key create acme --role deploy --json | jq -r .token")]
struct Create {
    /// Whose key it is
    #[arg(value_parser = names::tenant, required_unless_present = "operator", conflicts_with = "operator")]
    tenant: Option<String>,
    /// Print {"key", "token"}
    #[arg(long)]
    json: bool,
    /// A key that runs the host
    #[arg(long, conflicts_with_all = ["role", "servers", "tools"])]
    operator: bool,
    /// What it may do [default: call]
    #[arg(long)]
    role: Option<Role>,
    /// What people call it
    #[arg(long, default_value = "", hide_default_value = true)]
    name: String,
    /// Only this server; may be repeated
    #[arg(long = "server", value_name = "SERVER", value_parser = names::tenant)]
    servers: Vec<String>,
    /// Only this tool, or all that begin alike, and no resources or prompts; may be repeated
    #[arg(long = "tool", value_name = "SERVER/TOOL")]
    tools: Vec<String>,
    /// How long it is good, as `12h` or `30d`; for ever unless given
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    expires: Option<std::time::Duration>,
    #[command(flatten)]
    quota: QuotaArgs,
}

/// List keys, revoked and expired ones too. Their secrets are not kept, so they are not shown.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead key list acme\n  \
    bulkhead key list --operator --json")]
struct List {
    /// Whose keys
    #[arg(value_parser = names::tenant, required_unless_present = "operator", conflicts_with = "operator")]
    tenant: Option<String>,
    /// The keys that run the host
    #[arg(long)]
    operator: bool,
    /// Print {"keys"}
    #[arg(long)]
    json: bool,
}

/// Revoke a key, at once.
#[derive(clap::Args)]
#[command(
    override_usage = "bulkhead key revoke [OPTIONS] <TENANT> <ID>\n       \
        bulkhead key revoke [OPTIONS] --operator <ID>",
    after_help = "Examples:\n  bulkhead key revoke acme KEY_ID"
)]
struct Revoke {
    /// The tenant, and the key's id as `bulkhead key list` shows it
    #[arg(value_name = "TENANT|ID", required = true, num_args = 1..=2)]
    names: Vec<String>,
    /// A key that runs the host
    #[arg(long)]
    operator: bool,
    /// Print {"revoked"}
    #[arg(long)]
    json: bool,
}

impl Key {
    pub fn run(self, connection: &Connection) -> ExitCode {
        match self.action {
            Action::Create(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Action::List(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Action::Revoke(it) => with_host(connection, it.json, async |client| it.run(client).await),
        }
    }
}

/// Where the keys of a tenant are, or those of the operator.
fn path(tenant: Option<&str>) -> Vec<&str> {
    tenant.map_or_else(|| vec!["keys"], |tenant| vec!["tenants", tenant, "keys"])
}

impl Create {
    fn order(&self) -> Value {
        let mut order = Map::from_iter([("name".to_owned(), json!(self.name))]);
        if let Some(expires) = self.expires {
            order.insert("expires_in_s".to_owned(), json!(expires.as_secs()));
        }
        if self.operator {
            return Value::Object(order);
        }
        let role = match self.role.unwrap_or(Role::Call) {
            Role::Call => "call",
            Role::Deploy => "deploy",
            Role::Admin => "admin",
        };
        order.insert("role".to_owned(), json!(role));
        let mut scope = Map::new();
        if !self.servers.is_empty() {
            scope.insert("servers".to_owned(), json!(self.servers));
        }
        if !self.tools.is_empty() {
            scope.insert("tools".to_owned(), json!(self.tools));
        }
        order.insert("scope".to_owned(), Value::Object(scope));
        order.insert("quota".to_owned(), Value::Object(self.quota.values()));
        Value::Object(order)
    }

    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        #[derive(Deserialize)]
        struct Made {
            key: Value,
            token: String,
        }
        if self.operator && !self.quota.is_empty() {
            return Err(ClientError::usage("bad_usage", "an operator's key has no quota"));
        }
        let answer = client.post(&path(self.tenant.as_deref()), &self.order()).await?;
        if self.json {
            return Ok(print_answer(&answer));
        }
        let made: Made = client.read(&answer)?;
        let exit = print_text(&table::cell(&made.token));
        talk(&format!("key `{}` is good from now on; it is shown this once, so keep it", field(&made.key, "id")));
        Ok(exit)
    }
}

impl List {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let keys = client.list(&path(self.tenant.as_deref()), "keys").await?;
        if self.json {
            return Ok(print_value(&json!({ "keys": keys })));
        }
        let mut table = Table::new(&["id", "role", "state", "name", "scope", "created", "expires"]);
        for key in &keys {
            table.row([
                field(key, "id"),
                field(key, "role"),
                field(key, "state"),
                field(key, "name"),
                scope(&key["scope"]),
                when(key, "created_at"),
                when(key, "expires_at"),
            ]);
        }
        Ok(print_text(&table.text()))
    }
}

fn scope(scope: &Value) -> String {
    let lists =
        [&scope["servers"], &scope["tools"]].map(|list| if list.is_null() { String::new() } else { word(list) });
    match lists.iter().any(|list| !list.is_empty()) {
        true => lists.into_iter().filter(|list| !list.is_empty()).collect::<Vec<_>>().join("; "),
        false => "everything".to_owned(),
    }
}

impl Revoke {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let usage = |message: String| ClientError::usage("bad_usage", message);
        let (tenant, id) = match (self.operator, self.names.as_slice()) {
            (true, [id]) => (None, id),
            (false, [tenant, id]) => {
                (Some(names::tenant(tenant).map_err(|why| usage(format!("`{tenant}`: {why}")))?), id)
            }
            (true, _) => return Err(usage("with --operator there is an id and no tenant".to_owned())),
            (false, _) => return Err(usage("the tenant and the id of the key are needed".to_owned())),
        };
        let id = names::id(id).map_err(|why| usage(format!("`{id}`: {why}")))?;
        let mut path = path(tenant.as_deref());
        path.push(&id);
        client.delete(&path).await?;
        if self.json {
            return Ok(print_value(&json!({ "revoked": id })));
        }
        talk(&format!("key `{id}` is revoked"));
        Ok(ExitCode::SUCCESS)
    }
}
