//! `bulkhead deploy`: from a directory to a server that runs, signed on the way.

mod history;
mod openapi;
mod package;
mod program;
mod proposal;
mod trial;

pub use history::{Approve, Deployments, Rollback, before, list, lock_of};
pub use proposal::Files;

use super::names::{self, Place, Target};
use super::{print_text, print_value, talk, with_host};
use crate::client::{Client, ClientError, Connection};
use crate::exec::parse_limit;
use ::egress::{BareStar, Rules};
use bundle::{BulkheadLock, Change, Drift, KeyId, Lock, MacKey, PublisherKey, Seal, Step, canonical};
use package::{Code, Package};
use policy::{Boundary, LimitName};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// As long as initialisation may take on any host, and a queue before it.
const PATIENCE: Duration = Duration::from_secs(300);
/// Somebody else may deploy the same server at the same time; so often it is tried again.
const ATTEMPTS: u32 = 5;

/// Deploy a project or a file as a server, and create the server if it is new.
///
/// A project is a directory with a `bulkhead.toml`, which says everything that is said by flags for a single file. The
/// code is built in a jail and run once behind a wall on this machine; what it shows is compared with what is deployed,
/// locked and signed with your key. The host verifies all of it, runs the code once itself, and switches over without
/// dropping a call. What is refused changes nothing. The signed lock lies beside the manifest as `bulkhead.lock`, and the
/// endpoint goes to stdout.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead deploy\n  \
    bulkhead deploy projects/search --accept-surface\n  \
    bulkhead deploy projects/search --server acme/search-beta\n  \
    bulkhead deploy examples/prices.js --server acme/prices\n  \
    bulkhead deploy openapi.yaml --server acme/pets --include 'GET /pets*'\n  \
    bulkhead deploy npm:@modelcontextprotocol/server-everything@2026.7.4 --server acme/everything\n  \
    bulkhead deploy pypi:mcp-server-time==2026.10.10 --server acme/time -- --local-timezone UTC\n  \
    bulkhead deploy server.js --server acme/search --boundary session --limit memory_mb=256\n  \
    bulkhead deploy --json | jq -r .url")]
pub struct Deploy {
    /// The server: a directory with a `bulkhead.toml`, a file with its code, an OpenAPI specification (.yaml, .json), or a
    /// package: `npm:NAME@VERSION`, `pypi:NAME==VERSION`
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Whose it is and what it is called [default: the key's tenant, and the project's own name]
    #[arg(long, value_name = "TENANT[/NAME]", value_parser = names::target)]
    server: Option<Target>,
    /// Agree to every difference in what the server shows and may use; they are shown first
    #[arg(long)]
    accept_surface: bool,
    /// Sign as a publisher as well, with the key in this file (`bulkhead publisher new`)
    #[arg(long, value_name = "FILE")]
    publisher_key: Vec<PathBuf>,
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
    /// A host that it may reach, as in a manifest's `egress`; may be repeated
    #[arg(long, value_name = "HOST")]
    egress: Vec<String>,
    #[command(flatten)]
    openapi: openapi::Args,
    #[command(flatten)]
    program: program::Args,
    /// Print {"server", "deployment", "url"}
    #[arg(long)]
    json: bool,
}

impl Deploy {
    pub fn run(self, connection: &Connection) -> ExitCode {
        with_host(connection, self.json, async |client| self.deploy(client).await)
    }

    async fn deploy(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let publishers = self.publisher_key.iter().map(|file| publisher_key(file)).collect::<Result<Vec<_>, _>>()?;
        self.say("building");
        let package = Package::read(self).await?;
        for warning in package.code.warnings() {
            talk(warning);
        }
        let place = self.place(client, &package).await?;
        self.say("running it once behind the wall");
        let surface = trial::surface(&package).await?;
        for _ in 0..ATTEMPTS {
            let next = next(client, &place).await?;
            next.reaches(&package)?;
            let lock = self.lock(&package, &place, surface.clone(), &next)?;
            if let Some(current) = next.unchanged(&lock) {
                return Ok(self.print(
                    &place,
                    &current,
                    &client.endpoint(&place.tenant, &place.server),
                    "already runs",
                ));
            }
            let mut seal = Seal::new(&lock);
            authenticate(client, &mut seal).await?;
            for key in &publishers {
                seal.sign(key).map_err(|error| ClientError::usage("bad_key", error.to_string()))?;
            }
            if let Code::Program(files) = &package.code {
                self.say("uploading its files");
                program::upload(client, &place, files).await?;
            }
            self.say("signed; the host verifies it");
            let made = match upload(client, &place, &lock, &seal, &package).await {
                Err(ClientError::Refused { code, .. }) if code == "replayed" => continue,
                made => made?,
            };
            package.keep(lock, seal)?;
            if made.pending {
                return Err(waits(&place, &made.deployment));
            }
            if matches!(package.code, Code::Program(_)) && package.manifest.egress.is_empty() && !self.json {
                talk(
                    "it reaches no host; `egress` in its manifest, or `--egress HOST` for a package, names those it may reach",
                );
            }
            let tools = made.surface["tools"].as_array().map_or(0, Vec::len);
            let count = if tools == 1 { "1 tool".to_owned() } else { format!("{tools} tools") };
            return Ok(self.print(&place, &made.deployment, &made.url, &format!("runs, with {count}")));
        }
        Err(ClientError::refused("replayed", "others deploy this server all the time", Some("try again".to_owned())))
    }

    fn print(&self, place: &Place, deployment: &str, url: &str, what: &str) -> ExitCode {
        if self.json {
            let server = place.to_string();
            return print_value(&json!({ "server": server, "deployment": deployment, "url": url }));
        }
        talk(&format!("`{place}`: deployment {deployment} {what}"));
        print_text(&super::table::cell(url))
    }

    /// How far it is, for somebody who waits in front of a terminal.
    fn say(&self, what: &str) {
        if !self.json && std::io::stderr().is_terminal() {
            talk(&format!("… {what}"));
        }
    }

    async fn place(&self, client: &Client, package: &Package) -> Result<Place, ClientError> {
        let named = self.server.clone();
        let server = named.as_ref().and_then(|target| target.server.clone());
        let server = server.unwrap_or_else(|| package.manifest.name.to_string());
        let tenant = match named {
            Some(Target { tenant, .. }) => tenant,
            None => me(client).await?.tenant.ok_or_else(|| {
                let message = "this key belongs to no tenant; write `--server TENANT`, or use a deploy key";
                ClientError::usage("bad_name", message)
            })?,
        };
        Ok(Place { tenant, server })
    }

    /// What will be signed. Differences that nobody agreed to end it here.
    fn lock(
        &self,
        package: &Package,
        place: &Place,
        surface: bundle::Surface,
        next: &Next,
    ) -> Result<Lock, ClientError> {
        let impossible = |error: &dyn std::fmt::Display| ClientError::usage("bad_file", error.to_string());
        let step = Step { number: next.step, previous: next.lock().map(Lock::digest), accepts: None };
        let mut manifest = package.manifest.clone();
        manifest.name = place.server.parse().map_err(|error| impossible(&error))?;
        let mut lock = Lock::new(&manifest, surface, package.program.clone(), &package.files, step)
            .map_err(|error| impossible(&error))?;
        lock.endpoints = package.endpoints.clone();
        let changes = next.changes(&lock);
        for change in changes.iter().filter(|_| !self.json) {
            talk(&change.to_string());
        }
        if !changes.is_empty() && !self.accept_surface {
            let places = if changes.len() == 1 { "1 place".to_owned() } else { format!("{} places", changes.len()) };
            let mut message = format!("it differs from what is deployed in {places}, and nobody agreed to that");
            // The others have been told.
            if self.json {
                message = format!("{message}; the first: {}", changes[0]);
            }
            let hint = "look at the differences; `--accept-surface` signs exactly these".to_owned();
            return Err(ClientError::refused("surface_drift", message, Some(hint)));
        }
        lock.step.accepts = Drift::digest(&changes);
        Ok(lock)
    }
}

/// What is said of a deployment that a second key has to agree to.
pub fn waits(place: &Place, deployment: &str) -> ClientError {
    let hint = format!("with another key: bulkhead approve {place} {deployment}");
    let message = format!("deployment {deployment} is proposed; callers reach it once a second key approves it");
    ClientError::refused("approval_needed", message, Some(hint))
}

#[derive(Deserialize)]
struct Made {
    deployment: String,
    url: String,
    #[serde(default)]
    pending: bool,
    #[serde(default)]
    surface: Value,
}

async fn upload(
    client: &Client,
    place: &Place,
    lock: &Lock,
    seal: &Seal,
    package: &Package,
) -> Result<Made, ClientError> {
    let order = json!({ "lock": lock.value(), "seal": seal.value(), "files": package.files });
    let path = ["tenants", &place.tenant, "servers", &place.server, "deployments"];
    let request = client.admin(Method::POST, &path, &[]);
    let request = request.header("content-type", "application/json").body(order.to_string());
    client.read(&client.answer_within(PATIENCE, request).await?)
}

#[derive(Deserialize)]
pub struct Me {
    key: Option<String>,
    tenant: Option<String>,
}

pub async fn me(client: &Client) -> Result<Me, ClientError> {
    client.read(&client.get(&["me"]).await?)
}

/// Puts this client's own key on a seal.
pub async fn authenticate(client: &Client, seal: &mut Seal) -> Result<(), ClientError> {
    let no_key = || {
        let hint = Some("a token of an authorisation server cannot sign; use a deploy key".to_owned());
        ClientError::refused("bad_signature", "there is no key to sign with", hint)
    };
    let key = me(client).await?.key.ok_or_else(no_key)?;
    let key: KeyId = key.parse().map_err(|_| no_key())?;
    seal.authenticate(key, &MacKey::from_token(client.token().ok_or_else(no_key)?));
    Ok(())
}

/// What a new deployment has to be made for.
#[derive(Deserialize)]
pub struct Next {
    step: u64,
    current: Option<Current>,
    /// Ports of loopback that servers may reach there.
    #[serde(default)]
    pub loopback: Vec<u16>,
}

#[derive(Deserialize)]
struct Current {
    deployment: String,
    #[serde(deserialize_with = "lock")]
    lock: Lock,
    quarantine: Option<String>,
}

fn lock<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Lock, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Lock::parse(&canonical(&value)).map_err(serde::de::Error::custom)
}

pub async fn next(client: &Client, place: &Place) -> Result<Next, ClientError> {
    client.read(&client.get(&["tenants", &place.tenant, "servers", &place.server, "next"]).await?)
}

impl Next {
    /// Whether every address that the manifest writes out can be reached at all. The host would refuse it just so; this is
    /// before anything is signed.
    fn reaches(&self, package: &Package) -> Result<(), ClientError> {
        let entries = package.manifest.egress.iter().map(|entry| entry.as_str());
        // Whether it may open every host is for the host to say.
        let rules = Rules::parse(entries, BareStar::Allowed).and_then(|rules| rules.check(&self.loopback));
        rules.map_err(|denied| {
            let hint =
                "nothing was signed; only a host that runs as `bulkhead dev --loopback PORT` reaches ports of loopback";
            ClientError::refused("refused", denied.message, Some(hint.to_owned()))
        })
    }

    fn lock(&self) -> Option<&Lock> {
        self.current.as_ref().map(|current| &current.lock)
    }

    /// In what a lock differs from what is deployed.
    pub fn changes(&self, lock: &Lock) -> Vec<Change> {
        self.lock().map_or_else(Vec::new, |current| Drift::between(current, lock))
    }

    /// The deployment that is current, if the lock would bring nothing else.
    fn unchanged(&self, lock: &Lock) -> Option<String> {
        let current = self.current.as_ref().filter(|current| current.quarantine.is_none())?;
        (current.lock.content() == lock.content()).then(|| current.deployment.clone())
    }
}

/// A publisher's secret: 64 digits of hex.
pub fn publisher_key(path: &Path) -> Result<PublisherKey, ClientError> {
    let unusable = |what: &str| ClientError::usage("bad_key", format!("`{}` {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| unusable(&format!("cannot be read: {error}")))?;
    let seed: bundle::Digest = text.trim().parse().map_err(|_| unusable("holds no key of a publisher"))?;
    Ok(PublisherKey::from_seed(seed.bytes()))
}

/// Writes a signed lock beside its manifest.
fn keep(file: &Path, lock: Lock, seal: Seal) -> Result<(), ClientError> {
    let unwritable = |source| ClientError::Usage {
        code: "bad_file",
        message: format!("it is deployed, but `{}` cannot be written", file.display()),
        hint: None,
        source: Some(source),
    };
    let text = BulkheadLock::new(lock, seal).map_err(|error| ClientError::usage("bad_file", error.to_string()))?.text();
    let new = file.with_extension("lock.new");
    std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, file)).map_err(unwritable)
}
