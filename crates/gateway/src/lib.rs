#![forbid(unsafe_code)]
//! The front of the host: MCP over HTTP for many tenants, who may call what and how much, the admin API, and what can be
//! seen of it all. It knows walls only as pools that run calls.

mod admin;
mod app;
pub mod auth;
mod connect;
pub mod guard;
mod held;
mod mcp;
pub mod observe;
mod problem;
pub mod quota;
mod routes;
mod serve;
mod settings;
mod streams;
mod workers;

pub use app::{App, Rejected, Reloaded, Reloader};
pub use held::HeldSettings;
pub use mcp::offer::command;
pub use mcp::session::SessionSettings;
pub use routes::{ROUTES, router};
pub use settings::{HttpSettings, Settings};

use observe::Traces;
use registry::{MasterKey, Registry, RegistryError};
use sandbox::Pool;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What a gateway is made of.
pub struct Parts {
    pub registry: Registry,
    /// By the name of the wall.
    pub pools: HashMap<String, Arc<Pool>>,
    pub settings: Settings,
    pub reloader: Option<Reloader>,
    /// Where calls are traced to.
    pub traces: Traces,
    /// The way to the network. Without one there is none.
    pub egress: Option<Egress>,
    /// Speaks for upstreams to programs that know a proxy only; they trust its certificate.
    pub authority: Option<Arc<egress::proxy::Authority>>,
    /// The master key that the configuration names by now.
    pub master_key: Option<MasterKeySource>,
    /// Whether providers of tokens may be reached by plain HTTP on loopback: for an author's own machine and for tests.
    pub dev: bool,
}

/// Reads the master key from where the configuration says it is.
pub type MasterKeySource = Box<dyn Fn() -> Result<MasterKey, String> + Send + Sync>;

/// The way to the network: a door of either kind.
pub type Egress = Arc<dyn Network>;

pub trait Network: Send + Sync {
    /// Opens it for one call.
    fn visit(&self, pass: egress::Pass) -> egress::Visit;
    /// A deployment is over: nothing of it is kept for later.
    fn forget(&self, tenant: &str, deployment: &str);
    /// Refuses rules that lead nowhere from here.
    fn check(&self, rules: &egress::Rules) -> Result<(), egress::Denied>;
    /// Ports of loopback that servers may reach.
    fn loopback(&self) -> &[u16];
}

impl<G: Send + Sync> Network for egress::Door<G> {
    fn visit(&self, pass: egress::Pass) -> egress::Visit {
        self.visit(pass)
    }

    fn forget(&self, tenant: &str, deployment: &str) {
        self.forget(tenant, deployment);
    }

    fn check(&self, rules: &egress::Rules) -> Result<(), egress::Denied> {
        self.check(rules)
    }

    fn loopback(&self) -> &[u16] {
        self.loopback()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("`{0}` cannot be listened on")]
    Listen(SocketAddr, #[source] std::io::Error),
    #[error("a key of the host cannot be had")]
    Registry(#[from] RegistryError),
    #[error("the settings for tokens are no good")]
    Auth(#[from] auth::SettingsError),
    #[error("the system has no randomness: {0}")]
    Randomness(String),
}

/// Whether a host takes this schema for a tool, and if not, why.
pub fn check_schema(schema: &serde_json::Value) -> Result<(), String> {
    mcp::schema::Schema::compile(schema, mcp::surface::MOST_COMPILED).map(|_| ()).map_err(|error| error.to_string())
}

/// Reads a JSON-RPC message as the endpoint does, for fuzzing: its kind, or the protocol's error code.
#[doc(hidden)]
pub fn read_message(body: &[u8]) -> Result<&'static str, i64> {
    mcp::kind_of(body)
}

/// Checks a JSON text against a schema as a call does, for fuzzing. `None` when the schema or the text is refused before.
#[doc(hidden)]
pub fn check_value(schema: &serde_json::Value, json: &[u8]) -> Option<bool> {
    let schema = mcp::schema::Schema::compile(schema, mcp::surface::MOST_COMPILED).ok()?;
    let price = schema.price(json).ok()?;
    let value = serde_json::from_slice(json).ok()?;
    Some(schema.check(&value, price).is_ok())
}

/// The shared state without a listener, with its housekeeping running.
pub fn app(parts: Parts) -> Result<Arc<App>, StartError> {
    let app = Arc::new(App::new(parts)?);
    app.restore_sessions();
    app.follow(&registry::Directory::default(), &app.registry().directory());
    tokio::spawn(follow(app.clone()));
    tokio::spawn(keep_house(app.clone()));
    tokio::spawn(keep_connections(app.clone()));
    Ok(app)
}

/// At the end, a collector has this long to take what is left, and so have providers.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A listening gateway.
pub struct Running {
    pub addr: SocketAddr,
    pub app: Arc<App>,
    accepting: JoinHandle<()>,
}

/// Binds and serves.
pub async fn start(parts: Parts, listen: SocketAddr, grace: Duration) -> Result<Running, StartError> {
    let listener = TcpListener::bind(listen).await.map_err(|error| StartError::Listen(listen, error))?;
    let addr = listener.local_addr().map_err(|error| StartError::Listen(listen, error))?;
    let mut parts = parts;
    if parts.settings.auth.public_url.is_none() {
        parts.settings.auth.public_url = Some(format!("http://{addr}"));
    }
    let http = parts.settings.http.clone();
    let app = app(parts)?;
    let accepting = tokio::spawn(serve::accept(listener, router(app.clone()), app.clone(), http, grace));
    Ok(Running { addr, app, accepting })
}

impl Running {
    /// Stops accepting, lets what runs finish within the grace given at the start, and writes down what must last.
    pub async fn shutdown(self) {
        self.app.close();
        // The task ends by its own deadline.
        let _ = self.accepting.await;
        let app = self.app.clone();
        // If the blocking task is lost, so is the process.
        let _ = tokio::task::spawn_blocking(move || app.save_sessions()).await;
        let given_back = tokio::time::timeout(LAST_WORDS, self.app.connect.end());
        // A provider that does not answer in time ends these tokens when they expire.
        let _ = tokio::join!(given_back, self.app.traces.flush(LAST_WORDS));
    }
}

/// Lets pools and listeners know of changes.
async fn follow(app: Arc<App>) {
    let mut changes = app.registry().watch();
    let mut before = app.registry().directory();
    loop {
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = app.closed() => return,
        }
        let after = app.registry().directory();
        app.follow(&before, &after);
        before = after;
    }
}

/// Once a second: what nobody uses goes, what must last is written.
async fn keep_house(app: Arc<App>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
            () = app.closed() => return,
        }
        app.sessions.sweep();
        app.hub.sweep();
        app.tasks.sweep();
        app.connect.give_back_expired();
        app.look_at_audit_log();
        let saver = app.clone();
        // A lost blocking task means the runtime is going down.
        let _ = tokio::task::spawn_blocking(move || saver.save_sessions()).await;
    }
}

/// How often the tokens of keys that expired are looked for.
const CONNECTIONS_SWEPT: Duration = Duration::from_secs(30);

/// Tokens do not outlive the keys that they were given for. Providers may take their time, so nothing else waits for it.
async fn keep_connections(app: Arc<App>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(CONNECTIONS_SWEPT) => app.sweep_connections().await,
            () = app.closed() => return,
        }
    }
}
