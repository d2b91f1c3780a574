//! `bulkhead server`: what a tenant offers.

use super::names::{self, Place};
use super::table::{self, Table, field, when};
use super::{print_answer, print_text, print_value, talk, with_host};
use crate::client::{Client, ClientError, Connection};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Servers of a tenant: list, show, quarantine and delete them. `bulkhead deploy` creates them.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead server list acme\n  \
    bulkhead server show acme/prices\n  \
    bulkhead server quarantine acme/prices --reason 'answers look wrong'\n  \
    bulkhead server delete acme/prices")]
pub struct Server {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    List(List),
    Show(Show),
    Quarantine(Quarantine),
    Delete(Delete),
}

/// List the servers that the key may use.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead server list acme\n  \
    bulkhead server list acme --json | jq -r '.servers[].url'")]
struct List {
    /// The tenant
    #[arg(value_parser = names::tenant)]
    tenant: String,
    /// Print {"servers"}
    #[arg(long)]
    json: bool,
}

/// Show a server, what runs, and what it offers.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead server show acme/prices\n  \
    bulkhead server show acme/prices --json | jq .surface")]
struct Show {
    /// Whose it is and what it is called
    #[arg(value_name = "TENANT/SERVER", value_parser = names::place)]
    server: Place,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Refuse all calls of a server until a deployment is made current: the present one, or another.
///
/// One admin key is enough, also with `--approval on`. `bulkhead rollback TENANT/SERVER DEPLOYMENT` or another deployment ends
/// it, and with `--approval on` that needs a second key.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bulkhead server quarantine acme/prices --reason 'answers look wrong'")]
struct Quarantine {
    /// Whose it is and what it is called
    #[arg(value_name = "TENANT/SERVER", value_parser = names::place)]
    server: Place,
    /// Callers are told why
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Print the server as JSON
    #[arg(long)]
    json: bool,
}

/// Delete a server with its deployments and its log. There is no way back.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bulkhead server delete acme/prices")]
struct Delete {
    /// Whose it is and what it is called
    #[arg(value_name = "TENANT/SERVER", value_parser = names::place)]
    server: Place,
    /// Print {"deleted"}
    #[arg(long)]
    json: bool,
}

impl Server {
    pub fn run(self, connection: &Connection) -> ExitCode {
        match self.action {
            Action::List(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Action::Show(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Action::Quarantine(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Action::Delete(it) => with_host(connection, it.json, async |client| it.run(client).await),
        }
    }
}

impl List {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let servers = client.list(&["tenants", &self.tenant, "servers"], "servers").await?;
        if self.json {
            return Ok(print_value(&json!({ "servers": servers })));
        }
        let mut table =
            Table::new(&["server", "state", "proposals", "url", "wall", "boundary", "deployment", "deployed"]);
        for server in &servers {
            let current = &server["current"];
            table.row([
                field(server, "name"),
                field(server, "state"),
                field(server, "proposals"),
                field(server, "url"),
                field(&current["manifest"], "wall"),
                field(&current["manifest"], "boundary"),
                field(current, "id"),
                when(current, "created_at"),
            ]);
        }
        Ok(print_text(&table.text()))
    }
}

impl Show {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let answer = client.get(&["tenants", &self.server.tenant, "servers", &self.server.server]).await?;
        if self.json {
            return Ok(print_answer(&answer));
        }
        let mut server: Value = client.read(&answer)?;
        let surface = server.as_object_mut().and_then(|server| server.remove("surface")).unwrap_or_default();
        let named = |list: &str, key: &str| -> Vec<Value> {
            surface[list].as_array().into_iter().flatten().filter_map(|entry| entry.get(key)).cloned().collect()
        };
        // Whole schemas would bury the rest.
        let offers = json!({
            "tools": named("tools", "name"),
            "resources": named("resources", "uri"),
            "prompts": named("prompts", "name"),
        });
        server.as_object_mut().map(|server| server.insert("offers".to_owned(), offers));
        Ok(print_text(&table::object(&server)))
    }
}

impl Quarantine {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let path = ["tenants", &self.server.tenant, "servers", &self.server.server, "quarantine"];
        let answer = client.post(&path, &json!({ "reason": self.reason })).await?;
        if self.json {
            return Ok(print_answer(&answer));
        }
        let server: Value = client.read(&answer)?;
        talk(&format!(
            "`{0}` is in quarantine; `bulkhead rollback {0} {1}` ends it",
            self.server,
            field(&server["current"], "id")
        ));
        Ok(ExitCode::SUCCESS)
    }
}

impl Delete {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        client.delete(&["tenants", &self.server.tenant, "servers", &self.server.server]).await?;
        if self.json {
            return Ok(print_value(&json!({ "deleted": self.server.to_string() })));
        }
        talk(&format!("server `{}` is deleted", self.server));
        Ok(ExitCode::SUCCESS)
    }
}
