//! `bulkhead secret`: what the host puts into requests of servers, which never have it.

use super::allow::{self, Denied, Item, Policy, policy_of, policy_words};
use super::names;
use super::table::{Table, field, when, word};
use super::{print_answer, print_text, print_value, talk, with_host};
use crate::client::{Client, ClientError, Connection};
use serde_json::{Value, json};
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;

/// Secrets of a tenant: set, allow, list, rotate and remove them. Nobody is ever shown one.
///
/// A manifest binds a secret to a place in requests to hosts that it names (`[[secrets]]`); the host puts it there when the
/// request leaves. An admin says which servers may do that, and to which hosts: without that, none may.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead secret set acme API_TOKEN --for prices --to api.example.com      asks for the value\n  \
    bulkhead secret allow acme API_TOKEN --for bills --to api.example.com\n  \
    bulkhead secret deny acme API_TOKEN --for prices\n  \
    bulkhead secret list acme\n  \
    bulkhead secret rotate acme\n  \
    bulkhead secret rm acme API_TOKEN")]
pub struct Secret {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Set(Set),
    Allow(Allow),
    Deny(Deny),
    List(List),
    Rotate(Rotate),
    #[command(alias = "remove")]
    Rm(Remove),
}

/// Set a secret, or replace its value.
///
/// The value is read from standard input, up to a line end; at a terminal it is asked for, and not shown. It never stands on
/// the command line, where other users of the machine could see it.
///
/// `--for`, `--to` and `--in` say which servers may use it, which hosts it may go to, and where in requests it may stand. Without
/// them its policy stays as it is; a new secret has none, and no server may use it.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead secret set acme API_TOKEN --for prices --to api.example.com < token.txt\n  \
    bulkhead secret set acme API_TOKEN --from-file token.txt          another value, the same policy\n  \
    bulkhead secret set acme API_TOKEN --from-env API_TOKEN")]
struct Set {
    /// Whose secret it is
    #[arg(value_parser = names::tenant)]
    tenant: String,
    /// What it is called: A-Z, 0-9 and _, a letter first
    #[arg(value_parser = names::secret)]
    name: String,
    #[command(flatten)]
    policy: Policy,
    #[command(flatten)]
    from: FromWhere,
    /// Print {"name", "version", "policy", …}
    #[arg(long)]
    json: bool,
}

/// Say which servers may use a secret, which hosts they may send it to, and where in requests. Its value stays.
///
/// Each server named gets each host named, with exactly the places named. Other servers and hosts keep what they have; `deny`
/// takes them away. It counts at once.
#[derive(clap::Args)]
#[command(group = allow::required())]
#[command(after_help = "Examples:\n  \
    bulkhead secret allow acme API_TOKEN --for prices --to api.example.com\n  \
    bulkhead secret allow acme API_TOKEN --for prices --to api.example.com --in query:key\n  \
    bulkhead secret allow acme API_TOKEN --for '*' --to '*.example.com' --to api.example.org")]
struct Allow {
    /// Whose secret
    #[arg(value_parser = names::tenant)]
    tenant: String,
    /// What it is called
    #[arg(value_parser = names::secret)]
    name: String,
    #[command(flatten)]
    policy: Policy,
    /// Print {"name", "version", "policy", …}
    #[arg(long)]
    json: bool,
}

/// Take a secret from servers: their requests that need it are refused at once.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead secret deny acme API_TOKEN --for prices\n  \
    bulkhead secret deny acme API_TOKEN --for prices --to old.example.com")]
struct Deny {
    /// Whose secret
    #[arg(value_parser = names::tenant)]
    tenant: String,
    /// What it is called
    #[arg(value_parser = names::secret)]
    name: String,
    #[command(flatten)]
    denied: Denied,
    /// Print {"name", "version", "policy", …}
    #[arg(long)]
    json: bool,
}

/// Where a value comes from; from standard input unless something else is said.
#[derive(clap::Args)]
pub struct FromWhere {
    /// Read the value from this file
    #[arg(long, value_name = "FILE", conflicts_with = "from_env")]
    from_file: Option<PathBuf>,
    /// Read the value from this variable of the environment
    #[arg(long, value_name = "VARIABLE")]
    from_env: Option<String>,
}

/// List secrets by name, with the servers that are bound to them, and the servers and hosts that each is allowed for.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bulkhead secret list acme\n  bulkhead secret list acme --json | jq -r '.missing[]'"
)]
struct List {
    /// Whose secrets
    #[arg(value_parser = names::tenant)]
    tenant: String,
    /// Print {"secrets", "missing"}
    #[arg(long)]
    json: bool,
}

/// Make a new key for what a tenant has sealed, or take the host's new master key. The values stay.
///
/// With --master, the host reads its master key again from where its configuration says, and seals the keys of all tenants
/// with that: put the new key in its place, run this, and the old key is good for nothing.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bulkhead secret rotate acme\n  bulkhead secret rotate --master")]
struct Rotate {
    /// Whose key
    #[arg(value_parser = names::tenant, required_unless_present = "master", conflicts_with = "master")]
    tenant: Option<String>,
    /// The host's master key
    #[arg(long)]
    master: bool,
    /// Print {"rotated"}
    #[arg(long)]
    json: bool,
}

/// Remove a secret, with its policy. Requests that need it are refused from then on.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bulkhead secret rm acme API_TOKEN")]
struct Remove {
    /// Whose secret
    #[arg(value_parser = names::tenant)]
    tenant: String,
    /// What it is called
    #[arg(value_parser = names::secret)]
    name: String,
    /// Print {"removed"}
    #[arg(long)]
    json: bool,
}

impl Secret {
    pub fn run(self, connection: &Connection) -> ExitCode {
        match self.action {
            Action::Set(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Action::Allow(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Action::Deny(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Action::List(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Action::Rotate(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Action::Rm(it) => with_host(connection, it.json, async |client| it.run(client).await),
        }
    }
}

/// As long as a secret may be, and a line end.
const MOST: u64 = (16 << 10) + 2;

/// A value that is not to be seen on a command line or a screen.
pub fn value(called: &str, from: &FromWhere) -> Result<String, ClientError> {
    let unreadable = |what: &str, source| ClientError::Usage {
        code: "bad_secret",
        message: format!("the value cannot be read from {what}"),
        hint: None,
        source: Some(source),
    };
    if let Some(variable) = &from.from_env {
        let missing = || ClientError::usage("bad_secret", format!("there is no variable `{variable}`"));
        return std::env::var(variable).map_err(|_| missing());
    }
    if let Some(path) = &from.from_file {
        let what = format!("`{}`", path.display());
        let file = std::fs::File::open(path).map_err(|source| unreadable(&what, source))?;
        return read(file).map_err(|source| unreadable(&what, source));
    }
    if std::io::stdin().is_terminal() {
        let asked = rpassword::prompt_password(format!("value of {called}: "));
        return asked.map_err(|source| unreadable("the terminal", source));
    }
    read(std::io::stdin().lock()).map_err(|source| unreadable("standard input", source))
}

impl Set {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let mut body = json!({ "value": value(&self.name, &self.from)? });
        if let Some(change) = self.policy.change() {
            body["policy"] = change;
        }
        let answer = client.put(&["tenants", &self.tenant, "secrets", &self.name], &body).await?;
        if self.json {
            return Ok(print_answer(&answer));
        }
        let set: Value = client.read(&answer)?;
        talk(&format!("secret `{}` is set (version {})", self.name, field(&set, "version")));
        item(&self.tenant, &self.name).tell_unused(&set["policy"]);
        if set["servers"].as_array().is_some_and(Vec::is_empty) {
            talk("no server is bound to it yet: a `[[secrets]]` table in its manifest does that");
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn item<'a>(tenant: &'a str, name: &'a str) -> Item<'a> {
    Item { kind: "secret", tenant, name }
}

impl Allow {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        self.policy.allow(client, &item(&self.tenant, &self.name), self.json).await
    }
}

impl Deny {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        self.denied.run(client, &item(&self.tenant, &self.name), self.json).await
    }
}

fn read(from: impl Read) -> std::io::Result<String> {
    let mut text = String::new();
    from.take(MOST).read_to_string(&mut text)?;
    let kept = text.trim_end_matches('\n').trim_end_matches('\r').len();
    text.truncate(kept);
    Ok(text)
}

impl List {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let answer = client.get(&["tenants", &self.tenant, "secrets"]).await?;
        if self.json {
            return Ok(print_answer(&answer));
        }
        let list: Value = client.read(&answer)?;
        let mut table = Table::new(&["name", "version", "updated", "servers", "allowed for"]);
        for secret in list["secrets"].as_array().into_iter().flatten() {
            table.row([
                field(secret, "name"),
                field(secret, "version"),
                when(secret, "updated_at"),
                word(&secret["servers"]),
                policy_words(&secret["policy"]),
            ]);
        }
        let exit = print_text(&table.text());
        for name in list["missing"].as_array().into_iter().flatten() {
            talk(&format!(
                "`{}` is needed and not set: bulkhead secret set {} {} --for SERVER --to HOST",
                word(name),
                self.tenant,
                word(name)
            ));
        }
        Ok(exit)
    }
}

impl Rotate {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let (path, what) = match &self.tenant {
            Some(tenant) => (vec!["tenants", tenant.as_str(), "secrets", "rotate"], tenant.as_str()),
            None => (vec!["host", "master-key"], "master"),
        };
        client.act(&path).await?;
        if self.json {
            return Ok(print_value(&json!({ "rotated": what })));
        }
        talk(&match &self.tenant {
            Some(tenant) => format!("what `{tenant}` has sealed is sealed with a new key"),
            None => "the keys of all tenants are sealed with the new master key".to_owned(),
        });
        Ok(ExitCode::SUCCESS)
    }
}

impl Remove {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let list: Value = client.read(&client.get(&["tenants", &self.tenant, "secrets"]).await?)?;
        client.delete(&["tenants", &self.tenant, "secrets", &self.name]).await?;
        if self.json {
            return Ok(print_value(&json!({ "removed": self.name })));
        }
        talk(&format!("secret `{}` is removed, with its policy", self.name));
        if let Some(policy) = policy_of(&list["secrets"], &self.name) {
            let mut again = item(&self.tenant, &self.name).commands("allow", policy);
            if let Some(first) = again.first_mut() {
                *first = first.replacen(" allow ", " set ", 1);
            }
            talk(&format!("to set it again with the same policy: {}", again.join(" and ")));
        }
        Ok(ExitCode::SUCCESS)
    }
}
