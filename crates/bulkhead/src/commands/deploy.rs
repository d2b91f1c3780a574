//! `bulkhead deploy`, `deployments` and `rollback`: versions of a server.

use super::names::{self, Place, Target};
use super::project::Project;
use super::table::{Table, field, when};
use super::{print_answer, print_text, print_value, talk, with_host};
use crate::client::{Client, ClientError, Connection};
use crate::exec::parse_limit;
use crate::source::{self, SourceError};
use policy::{Boundary, LimitName, Limits};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// As long as initialisation may take on any host, and a queue before it.
const PATIENCE: Duration = Duration::from_secs(300);

/// Deploy a project or a file as a server, and create the server if it is new.
///
/// A project is a directory with a `bulkhead.toml`, which says everything that is said by flags for a single file.
/// The code is initialised behind its wall first; what does not initialise is refused with the reason and changes
/// nothing. The endpoint goes to stdout.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead deploy --server acme\n  \
    bulkhead deploy projects/search --server acme/search-beta\n  \
    bulkhead deploy examples/prices.js --server acme/prices\n  \
    bulkhead deploy server.js --server acme/search --boundary session --limit memory_mb=256\n  \
    bulkhead deploy server.js --server acme/search --json | jq -r .url")]
pub struct Deploy {
    /// The server: a directory with a `bulkhead.toml`, or a JavaScript file
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Whose it is and what it is called; a project has a name of its own
    #[arg(long, value_name = "TENANT[/NAME]", value_parser = names::target)]
    server: Target,
    /// How much shares one compartment [default: call]
    #[arg(long, value_parser = |text: &str| text.parse::<Boundary>())]
    boundary: Option<Boundary>,
    /// What stands between the code and the host [default: isolate]
    #[arg(long)]
    wall: Option<String>,
    /// Run with V8's compilers: faster loops, but the compartment has writable and executable memory
    #[arg(long)]
    jit: bool,
    /// Ask for another limit; may be repeated. `bulkhead limits` says what the host allows
    #[arg(long = "limit", value_name = "NAME=VALUE", value_parser = parse_limit)]
    limits: Vec<(LimitName, u64)>,
    /// Print {"server", "deployment", "url"}
    #[arg(long)]
    json: bool,
}

impl Deploy {
    pub fn run(self, connection: &Connection) -> ExitCode {
        with_host(connection, self.json, async |client| self.deploy(client).await)
    }

    async fn deploy(&self, client: &Client) -> Result<ExitCode, ClientError> {
        #[derive(Deserialize)]
        struct Made {
            deployment: String,
            url: String,
            #[serde(default)]
            surface: Value,
        }
        let Plan { place, file, manifest } = self.plan()?;
        let order = json!({ "source": read(&file)?, "manifest": manifest });
        let Place { tenant, server } = &place;
        let request = client.admin(Method::POST, &["tenants", tenant, "servers", server, "deployments"], &[]);
        let request = request.header("content-type", "application/json").body(order.to_string());
        let made: Made = client.read(&client.answer_within(PATIENCE, request).await?)?;
        if self.json {
            let server = place.to_string();
            return Ok(print_value(&json!({ "server": server, "deployment": made.deployment, "url": made.url })));
        }
        let tools = made.surface["tools"].as_array().map_or(0, Vec::len);
        let count = if tools == 1 { "1 tool".to_owned() } else { format!("{tools} tools") };
        talk(&format!("`{place}` runs deployment {} with {count}", made.deployment));
        Ok(print_text(&super::table::cell(&made.url)))
    }

    fn plan(&self) -> Result<Plan, ClientError> {
        let Target { tenant, server } = self.server.clone();
        if self.path.is_dir() {
            let flags = self.boundary.is_some() || self.wall.is_some() || self.jit || !self.limits.is_empty();
            if flags {
                let message = "a project's `bulkhead.toml` says boundary, wall, jit and limits; change it there";
                return Err(ClientError::usage("bad_flags", message));
            }
            let Project { manifest, entry } = Project::read(&self.path)?;
            let server = server.unwrap_or_else(|| manifest.name.to_string());
            let asked = json!({
                "file_name": source::file_name(&entry),
                "wall": manifest.wall,
                "boundary": manifest.boundary,
                "jit": manifest.jit,
                "limits": manifest.limits,
            });
            return Ok(Plan { place: Place { tenant, server }, file: entry, manifest: asked });
        }
        let Some(server) = server else {
            let message = "a single file has no name; write `--server TENANT/NAME`";
            return Err(ClientError::usage("bad_name", message));
        };
        Ok(Plan { place: Place { tenant, server }, file: self.path.clone(), manifest: self.manifest() })
    }

    /// Only what was asked for: the host knows the rest.
    fn manifest(&self) -> Value {
        let mut manifest = Map::from_iter([("file_name".to_owned(), json!(source::file_name(&self.path)))]);
        if let Some(boundary) = self.boundary {
            manifest.insert("boundary".to_owned(), json!(boundary));
        }
        if let Some(wall) = &self.wall {
            manifest.insert("wall".to_owned(), json!(wall));
        }
        if self.jit {
            manifest.insert("jit".to_owned(), json!(true));
        }
        if !self.limits.is_empty() {
            let limits: Map<_, _> =
                self.limits.iter().map(|(name, value)| (name.as_str().to_owned(), json!(value))).collect();
            manifest.insert("limits".to_owned(), Value::Object(limits));
        }
        Value::Object(manifest)
    }
}

/// What goes where.
struct Plan {
    place: Place,
    file: PathBuf,
    manifest: Value,
}

fn read(file: &Path) -> Result<String, ClientError> {
    let bytes = source::read(file, Limits::MOST.source_kb).map_err(unusable)?;
    String::from_utf8(bytes).map_err(|_| ClientError::usage("bad_file", format!("`{}` is not UTF-8", file.display())))
}

fn unusable(error: SourceError) -> ClientError {
    let message = error.to_string();
    match error {
        SourceError::TooLarge { .. } => ClientError::refused("init_failed", message, None),
        SourceError::TypeScript(_) => {
            let hint = Some(source::TYPESCRIPT_HINT.to_owned());
            ClientError::Usage { code: "bad_file", message, hint, source: None }
        }
        SourceError::File(_, source) => {
            ClientError::Usage { code: "bad_file", message, hint: None, source: Some(source) }
        }
    }
}

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
            let mut table = Table::new(&["", "deployment", "deployed", "by", "wall", "boundary", "bytes"]);
            for entry in &deployments {
                let mark = if entry["current"] == true { "*" } else { "" };
                let manifest = &entry["manifest"];
                table.row([
                    mark.to_owned(),
                    field(entry, "id"),
                    when(entry, "created_at"),
                    field(entry, "created_by"),
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
        if self.json {
            return Ok(print_answer(&answer));
        }
        talk(&format!("`{}` runs deployment {id} again", self.server));
        Ok(ExitCode::SUCCESS)
    }
}

/// The newest that is older than the current one.
pub fn before(deployments: &[Value]) -> Option<String> {
    let current = deployments.iter().position(|entry| entry["current"] == true)?;
    Some(deployments.get(current + 1)?["id"].as_str()?.to_owned())
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
