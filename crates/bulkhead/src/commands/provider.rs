//! `bulkhead provider`, `connect`, `disconnect` and `connections`: tokens of upstreams, for whoever calls.

use super::allow::{self, Denied, Item, Policy, policy_words};
use super::names::{self, Place};
use super::secret::{FromWhere, value};
use super::table::{Table, field, when, word};
use super::{print_answer, print_text, print_value, talk, with_host};
use crate::client::{Client, ClientError, Connection};
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::io::{BufRead, Read};
use std::process::ExitCode;

/// Providers of OAuth 2.0 tokens: set, allow, list and remove them.
///
/// A manifest names one with `connection` in a `[[secrets]]` table. Callers connect with `bulkhead connect`, or by the link
/// that their MCP client shows. An admin says which servers may use its tokens, and for which hosts: without that, none may.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead provider set acme/github --authorize-url https://github.com/login/oauth/authorize \\\n      \
        --token-url https://github.com/login/oauth/access_token --client-id Iv1.abc --scope repo \\\n      \
        --for issues --to api.github.com < client-secret.txt\n  \
    bulkhead provider allow acme/github --for prices --to api.github.com\n  \
    bulkhead provider deny acme/github --for prices\n  \
    bulkhead provider list acme\n  \
    bulkhead provider rm acme/github")]
pub struct Provider {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Set(Box<Set>),
    Allow(Allow),
    Deny(Deny),
    List(List),
    #[command(alias = "remove")]
    Rm(Remove),
}

#[derive(Clone, Copy, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
enum Grant {
    /// Somebody agrees in a browser
    Code,
    /// The tenant itself is the client
    ClientCredentials,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Per {
    /// Each caller has a connection of their own
    User,
    /// All callers share one
    Tenant,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ClientAuth {
    /// HTTP Basic
    Basic,
    /// In the form
    Post,
    /// A public client, without a secret
    None,
}

/// Set a provider, or change it.
///
/// The client secret is read from standard input, a file or a variable, as with `bulkhead secret set`. The provider must know
/// the redirect URL of this host: its public URL and `/connect/callback`.
///
/// `--for`, `--to` and `--in` say which servers may use its tokens, which hosts they may go to, and where in requests they may
/// stand. Without them its policy stays as it is; a new provider has none, and no server may use it.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead provider set acme/github --authorize-url https://github.com/login/oauth/authorize \\\n      \
        --token-url https://github.com/login/oauth/access_token --client-id Iv1.abc --scope repo --from-env SECRET\n  \
    bulkhead provider set acme/erp --grant client_credentials --per tenant --token-url https://erp.example/token \\\n      \
        --client-id bulkhead --from-file secret.txt")]
struct Set {
    /// Whose provider it is, and what it is called
    #[arg(value_name = "TENANT/NAME", value_parser = names::place)]
    place: Place,
    /// Where a browser is sent
    #[arg(long, value_name = "URL")]
    authorize_url: Option<String>,
    /// Where tokens are had
    #[arg(long, value_name = "URL")]
    token_url: String,
    /// Where tokens are given back
    #[arg(long, value_name = "URL")]
    revoke_url: Option<String>,
    /// What the provider calls this client
    #[arg(long, value_name = "ID")]
    client_id: String,
    /// What is asked for; may be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// How a token is come by
    #[arg(long, default_value = "code")]
    grant: Grant,
    /// Whose a connection is
    #[arg(long, default_value = "user")]
    per: Per,
    /// How the client shows who it is
    #[arg(long, default_value = "basic")]
    client_auth: ClientAuth,
    /// More for the provider, such as `access_type=offline`; may be repeated
    #[arg(long = "parameter", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    /// Answers must come from this issuer
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,
    #[command(flatten)]
    policy: Policy,
    #[command(flatten)]
    from: FromWhere,
    /// Print {"name", "settings", "policy", …}
    #[arg(long)]
    json: bool,
}

/// Say which servers may use a provider's tokens, which hosts they may send them to, and where in requests.
///
/// Each server named gets each host named, with exactly the places named. Other servers and hosts keep what they have; `deny`
/// takes them away. It counts at once.
#[derive(clap::Args)]
#[command(group = allow::required())]
#[command(after_help = "Examples:\n  bulkhead provider allow acme/github --for issues --to api.github.com")]
struct Allow {
    /// Which one
    #[arg(value_name = "TENANT/NAME", value_parser = names::place)]
    place: Place,
    #[command(flatten)]
    policy: Policy,
    /// Print {"name", "settings", "policy", …}
    #[arg(long)]
    json: bool,
}

/// Take a provider from servers: their requests that need its tokens are refused at once.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bulkhead provider deny acme/github --for issues")]
struct Deny {
    /// Which one
    #[arg(value_name = "TENANT/NAME", value_parser = names::place)]
    place: Place,
    #[command(flatten)]
    denied: Denied,
    /// Print {"name", "settings", "policy", …}
    #[arg(long)]
    json: bool,
}

/// List the providers of a tenant.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bulkhead provider list acme")]
struct List {
    /// Whose providers
    #[arg(value_parser = names::tenant)]
    tenant: String,
    /// Print {"providers"}
    #[arg(long)]
    json: bool,
}

/// Remove a provider, with everybody's connections to it.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bulkhead provider rm acme/github")]
struct Remove {
    /// Which one
    #[arg(value_name = "TENANT/NAME", value_parser = names::place)]
    place: Place,
    /// Print {"removed"}
    #[arg(long)]
    json: bool,
}

/// Connect yourself to a provider: prints a link for your browser, then asks for the code that the browser shows.
///
/// Calls with this key use your account from then on. For a provider that all callers of a tenant share, an admin's key is
/// needed. The code shows that the browser was yours: give it to nobody. It is good for ten minutes, and for five attempts.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead connect acme/github\n  \
    bulkhead connect acme/github --no-wait --json | jq -r .url\n  \
    bulkhead connect acme/github --code BCDF-GHJK")]
pub struct Connect {
    /// The provider
    #[arg(value_name = "TENANT/NAME", value_parser = names::place)]
    place: Place,
    /// Print the link and end; confirm later with --code
    #[arg(long, conflicts_with = "code")]
    no_wait: bool,
    /// Confirm with the code that the browser shows, instead of asking for a link
    #[arg(long, value_name = "CODE")]
    code: Option<String>,
    /// Print {"url", "policy"}, and {"connected"} when it is done
    #[arg(long)]
    json: bool,
}

/// Remove your connection to a provider, there too if it can be told.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bulkhead disconnect acme/github\n  bulkhead disconnect acme/github --subject 'oauth:https://id.example#ann'"
)]
pub struct Disconnect {
    /// The provider
    #[arg(value_name = "TENANT/NAME", value_parser = names::place)]
    place: Place,
    /// Somebody else's, as `bulkhead connections` shows it; needs an admin's key
    #[arg(long)]
    subject: Option<String>,
    /// Print {"revoked"}
    #[arg(long)]
    json: bool,
}

/// List connections: your own, or with an admin's key everybody's.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bulkhead connections acme")]
pub struct Connections {
    /// Whose
    #[arg(value_parser = names::tenant)]
    tenant: String,
    /// Print {"connections"}
    #[arg(long)]
    json: bool,
}

impl Provider {
    pub fn run(self, connection: &Connection) -> ExitCode {
        match self.action {
            Action::Set(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Action::Allow(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Action::Deny(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Action::List(it) => with_host(connection, it.json, async |client| it.run(client).await),
            Action::Rm(it) => with_host(connection, it.json, async |client| it.run(client).await),
        }
    }
}

fn word_of(value: impl clap::ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

impl Set {
    fn settings(&self) -> Result<Value, ClientError> {
        let mut parameters = Map::new();
        for pair in &self.parameters {
            let wrong = || ClientError::usage("bad_usage", format!("`{pair}`: write NAME=VALUE"));
            let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
            parameters.insert(name.to_owned(), value.into());
        }
        let mut settings = json!({
            "token_url": self.token_url,
            "client_id": self.client_id,
            "scopes": self.scopes,
            "grant": word_of(self.grant),
            "per": word_of(self.per),
            "client_auth": word_of(self.client_auth),
            "parameters": parameters,
        });
        let optional =
            [("authorize_url", &self.authorize_url), ("revoke_url", &self.revoke_url), ("issuer", &self.issuer)];
        for (name, value) in optional {
            if let Some(value) = value {
                settings[name] = json!(value);
            }
        }
        Ok(settings)
    }

    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let mut body = json!({ "settings": self.settings()? });
        if !matches!(self.client_auth, ClientAuth::None) {
            body["client_secret"] = value("the client secret", &self.from)?.into();
        }
        if let Some(change) = self.policy.change() {
            body["policy"] = change;
        }
        let Place { tenant, server: name } = &self.place;
        let answer = client.put(&["tenants", tenant, "providers", name], &body).await?;
        if self.json {
            return Ok(print_answer(&answer));
        }
        talk(&format!("provider `{name}` is set"));
        let set: Value = client.read(&answer)?;
        if !item(&self.place).tell_unused(&set["policy"]) {
            talk(&format!("callers connect with `bulkhead connect {}`", self.place));
        }
        talk(&format!("its redirect URL is {}/connect/callback, or that of this host's `public_url`", client.shown()));
        Ok(ExitCode::SUCCESS)
    }
}

fn item(place: &Place) -> Item<'_> {
    Item { kind: "provider", tenant: &place.tenant, name: &place.server }
}

impl Allow {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        self.policy.allow(client, &item(&self.place), self.json).await
    }
}

impl Deny {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        self.denied.run(client, &item(&self.place), self.json).await
    }
}

impl List {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let answer = client.get(&["tenants", &self.tenant, "providers"]).await?;
        if self.json {
            return Ok(print_answer(&answer));
        }
        let list: Value = client.read(&answer)?;
        let mut table = Table::new(&["name", "grant", "per", "client", "scopes", "updated", "allowed for"]);
        for provider in list["providers"].as_array().into_iter().flatten() {
            let settings = &provider["settings"];
            table.row([
                field(provider, "name"),
                field(settings, "grant"),
                field(settings, "per"),
                field(settings, "client_id"),
                word(&settings["scopes"]),
                when(provider, "updated_at"),
                policy_words(&provider["policy"]),
            ]);
        }
        Ok(print_text(&table.text()))
    }
}

impl Remove {
    async fn run(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let Place { tenant, server: name } = &self.place;
        client.delete(&["tenants", tenant, "providers", name]).await?;
        if self.json {
            return Ok(print_value(&json!({ "removed": name })));
        }
        talk(&format!("provider `{name}` is removed, with its policy and all connections to it"));
        Ok(ExitCode::SUCCESS)
    }
}

impl Connect {
    pub fn run(self, connection: &Connection) -> ExitCode {
        with_host(connection, self.json, async |client| self.connect(client).await)
    }

    async fn connect(&self, client: &Client) -> Result<ExitCode, ClientError> {
        if let Some(code) = &self.code {
            return self.confirm(client, code).await;
        }
        let Place { tenant, server: name } = &self.place;
        let answer = client.act(&["tenants", tenant, "providers", name, "connect"]).await?;
        let link: Value = client.read(&answer)?;
        let exit = if self.json { print_answer(&answer) } else { print_text(&field(&link, "url")) };
        talk(&format!("your account will be used by: {}", policy_words(&link["policy"])));
        if self.no_wait {
            talk(&format!("open this link in your browser, then run `bulkhead connect {} --code CODE`", self.place));
            return Ok(exit);
        }
        talk("open this link in your browser and agree; then type the code that it shows, and press enter:");
        loop {
            match self.confirm(client, &self.typed()?).await {
                Err(error) if error.code() == "wrong_code" || error.code() == "nothing_to_confirm" => {
                    talk(&format!("{error}; type the code again:"));
                }
                done => return done,
            }
        }
    }

    async fn confirm(&self, client: &Client, code: &str) -> Result<ExitCode, ClientError> {
        let Place { tenant, server: name } = &self.place;
        let body = json!({ "code": code });
        let answer = client.post(&["tenants", tenant, "providers", name, "confirm"], &body).await?;
        if self.json {
            return Ok(print_answer(&answer));
        }
        talk(&format!("you are connected to `{name}`"));
        Ok(ExitCode::SUCCESS)
    }

    /// The next line of standard input. Nothing else goes on meanwhile.
    fn typed(&self) -> Result<String, ClientError> {
        let mut line = String::new();
        match std::io::stdin().lock().take(LONGEST_LINE).read_line(&mut line) {
            Ok(1..) => Ok(line.trim().to_owned()),
            Ok(0) => {
                let hint = format!("run `bulkhead connect {} --code CODE` when you have one", self.place);
                Err(ClientError::refused("no_code", "standard input ended before a code was typed", Some(hint)))
            }
            Err(error) => Err(ClientError::usage("bad_usage", format!("standard input cannot be read: {error}"))),
        }
    }
}

/// Bytes of a line that may be typed.
const LONGEST_LINE: u64 = 1024;

impl Disconnect {
    pub fn run(self, connection: &Connection) -> ExitCode {
        with_host(connection, self.json, async |client| self.disconnect(client).await)
    }

    async fn disconnect(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let Place { tenant, server: name } = &self.place;
        let query: Vec<_> = self.subject.iter().map(|subject| ("subject", subject.clone())).collect();
        let path = ["tenants", tenant.as_str(), "providers", name, "connect"];
        let answer = client.answer(client.admin(Method::DELETE, &path, &query)).await?;
        if self.json {
            return Ok(print_answer(&answer));
        }
        let gone: Value = client.read(&answer)?;
        talk(match gone["revoked"] == true {
            true => "the connection is removed, and the provider was told",
            false => "the connection is removed; the provider has no way to be told",
        });
        Ok(ExitCode::SUCCESS)
    }
}

impl Connections {
    pub fn run(self, connection: &Connection) -> ExitCode {
        with_host(connection, self.json, async |client| self.list(client).await)
    }

    async fn list(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let answer = client.get(&["tenants", &self.tenant, "connections"]).await?;
        if self.json {
            return Ok(print_answer(&answer));
        }
        let list: Value = client.read(&answer)?;
        let mut table = Table::new(&["provider", "of", "token expires", "connected"]);
        for one in list["connections"].as_array().into_iter().flatten() {
            let of = if one["subject"].is_null() { "everybody".to_owned() } else { field(one, "subject") };
            table.row([field(one, "provider"), of, when(one, "expires_at"), when(one, "created_at")]);
        }
        Ok(print_text(&table.text()))
    }
}
