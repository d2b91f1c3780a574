//! `bulkhead serve`: the host.

mod error;
mod reload;
mod signals;

use crate::config::{Config, LogFormat, Sources, local_url};
use crate::logging;
use crate::report::{self, USAGE};
use crate::terminal;
use ::process::ProcessWall;
use egress::proxy::{Authority, Outfit};
use error::ServeError;
use gateway::Parts;
use gateway::observe::Traces;
use isolate::{Carrier, IsolateWall, WallError};
use registry::{OpenOptions, Registry};
use reload::Reload;
use sandbox::{Pool, Wall};
use signals::{Signals, Wish};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Where jailed programs find their proxy, each on a loopback of its own.
pub const PROXY_PORT: u16 = 3128;

/// After the deadline of the shutdown: what still runs on a thread has this long.
const LAST_MOMENT: Duration = Duration::from_secs(2);

/// Run the host: every server of every tenant at a URL of its own.
///
/// The first start on a data directory creates it, with the operator's key in `operator.key`, readable by its owner
/// alone.
/// SIGHUP reads the configuration again; SIGTERM and SIGINT let what runs finish, a second one does not.
///
/// Exit status: 0 after a signal, 1 when the directory or the address is taken, 2 when this machine cannot run it, 64
/// for a configuration that makes no sense.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead serve\n  \
    bulkhead serve --listen 0.0.0.0:8470 --data /var/lib/bulkhead\n  \
    bulkhead serve --config /etc/bulkhead.toml")]
pub struct Serve {
    #[command(flatten)]
    sources: Sources,
}

impl Serve {
    pub fn run(self) -> ExitCode {
        serve(self.sources, Ground::Serve)
    }
}

/// Run the host for yourself, on this machine alone: servers may reach named ports of loopback.
///
/// The same as `bulkhead serve`, but it listens on loopback only, and `--loopback PORT` lets servers reach what listens on that
/// port here, if their manifests name it (`egress = ["http://127.0.0.1:3000"]`). Providers of tokens may be there, too.
/// Never for other people's servers: what listens on loopback trusts whoever is there.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead dev --loopback 3000\n  \
    bulkhead dev --loopback 3000 --loopback 9000 --data /tmp/dev")]
pub struct Dev {
    #[command(flatten)]
    sources: Sources,
    /// A port of loopback that servers may reach; may be repeated
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    loopback: Vec<u16>,
}

impl Dev {
    pub fn run(self) -> ExitCode {
        serve(self.sources, Ground::Dev(self.loopback))
    }
}

/// Whose servers they are.
#[derive(Clone)]
enum Ground {
    /// Other people's.
    Serve,
    /// One's own, which may reach these ports of loopback.
    Dev(Vec<u16>),
}

fn serve(sources: Sources, ground: Ground) -> ExitCode {
    let config = match sources.load() {
        Ok(loaded) => loaded.config,
        Err(error) => return crate::config::explain(&error, USAGE, false),
    };
    match host(sources, config, ground) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.explain(),
    }
}

fn host(sources: Sources, config: Config, ground: Ground) -> Result<(), ServeError> {
    if matches!(ground, Ground::Dev(_)) && !config.host.listen.ip().is_loopback() {
        return Err(ServeError::DevListens(config.host.listen));
    }
    keep_memory().map_err(ServeError::Memory)?;
    let log = logging::start(&config.log).map_err(ServeError::Log)?;
    // Refused only when there is one already, which is the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let places = places();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(config.threads()).enable_all().build().map_err(ServeError::Runtime)?;
    let done = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(ServeError::Signals)?;
        let running = tokio::select! {
            started = start(sources, config, places, log, ground) => started?,
            () = signals.end() => return Ok(()),
        };
        running.until(signals).await;
        Ok(())
    });
    runtime.shutdown_timeout(LAST_MOMENT);
    done
}

struct Running {
    gateway: gateway::Running,
    reload: Arc<Reload>,
    shown: Shown,
}

async fn start(
    sources: Sources,
    config: Config,
    places: Option<usize>,
    log: logging::Handle,
    ground: Ground,
) -> Result<Running, ServeError> {
    let shown = Shown { as_log: config.log.format == LogFormat::Json };
    let data = config.host.data.clone();
    let registry = open(&data, config.registry()).await?;
    let master = config.master_key()?;
    registry.unlock(master).map_err(ServeError::Secrets)?;
    let directory = registry.directory();
    let servers: usize = directory.tenants.values().map(|tenant| tenant.servers.len()).sum();
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let (tenants, servers) = (counted(directory.tenants.len(), "tenant"), counted(servers, "server"));
    shown.say(&format!("data: `{}` ({tenants}, {servers})", data.display()));

    if let Some(uids) = config.uids() {
        jail::users::set_range(uids);
    }
    let carrier = Carrier::find().map_err(WallError::from)?;
    let wall = IsolateWall::start(config.isolate(carrier)).await?;
    shown.say(&format!("wall: {}, {}", wall.name(), wall.posture()));
    let mut pools = HashMap::from([(wall.name().to_owned(), Arc::new(Pool::new(Arc::new(wall), config.pool())))]);
    let authority = Arc::new(Authority::new().map_err(ServeError::Egress)?);
    if config.process.enabled {
        let wall = ProcessWall::start(config.process(outfit(&ground, &authority)))?;
        shown.say(&format!("wall: {}, {}", wall.name(), wall.posture()));
        pools.insert(wall.name().to_owned(), Arc::new(Pool::new(Arc::new(wall), config.process_pool())));
    }

    let traces = config.traces().map_or(Ok(Traces::off()), Traces::start)?;
    let (listen, deadline) = (config.host.listen, config.deadline());
    let has_public_url = config.host.public_url.is_some();
    let mut settings = settings(&config, listen);
    if let Some(places) = places.filter(|places| *places < settings.http.max_connections) {
        tracing::info!(
            "{places} connections at once instead of {}: `ulimit -n` allows no more",
            settings.http.max_connections
        );
        settings.http.max_connections = places;
    }
    let dev = matches!(ground, Ground::Dev(_));
    let open = open_door(&ground, config.egress().map_err(ServeError::Roots)?)?;
    let reload = Arc::new(Reload::new(sources, config, log));
    let (reloader, master) = (reload.clone(), reload.clone());
    let reloader: gateway::Reloader = Box::new(move || reloader.settings());
    let master_key: gateway::MasterKeySource = Box::new(move || master.master_key());
    let parts = Parts {
        registry,
        pools,
        settings,
        reloader: Some(reloader),
        traces,
        egress: Some(open),
        authority: Some(authority),
        master_key: Some(master_key),
        dev,
    };
    let gateway = gateway::start(parts, listen, deadline).await?;
    reload.listens_on(gateway.addr);

    if !gateway.addr.ip().is_loopback() && !has_public_url {
        shown.say("note: `public_url` is not set, so the URLs that this host gives out are for this machine only");
    }
    if let Ground::Dev(ports) = &ground {
        let ports = ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        let ports = if ports.is_empty() { "none".to_owned() } else { ports };
        shown.say(&format!(
            "DEVELOPMENT: servers may reach these ports of loopback: {ports}. Not for other people's servers."
        ));
    }
    let key = data.join("operator.key");
    shown.say(&format!("listening on {}", local_url(gateway.addr)));
    shown.say(&format!("the operator's key is in `{}`", key.display()));
    // The client's default is the host's default.
    let url = match local_url(gateway.addr) {
        url if url == crate::client::DEFAULT_URL => String::new(),
        url => format!("BULKHEAD_URL={url} "),
    };
    shown.say(&format!("next: export {url}BULKHEAD_KEY=$(cat {}); bulkhead tenant create acme", quoted(&key)));
    Ok(Running { gateway, reload, shown })
}

/// The way to the network. The two doors are of different types, so neither can be taken for the other.
fn open_door(ground: &Ground, settings: egress::Settings) -> Result<gateway::Egress, ServeError> {
    Ok(match ground {
        Ground::Serve => Arc::new(egress::Door::serve(settings).map_err(ServeError::Egress)?),
        Ground::Dev(ports) => Arc::new(egress::Door::dev(ports.clone(), settings).map_err(ServeError::Egress)?),
    })
}

/// What programs find the network by.
fn outfit(ground: &Ground, authority: &Authority) -> Outfit {
    let mut outfit = Outfit::new(PROXY_PORT, Some(authority));
    // A program's own loopback is reached without the proxy, and this machine's with it: only one of them can be meant.
    if matches!(ground, Ground::Dev(ports) if !ports.is_empty()) {
        outfit.variables.extend(["NO_PROXY", "no_proxy"].map(|name| (name.to_owned(), String::new())));
    }
    outfit
}

/// The gateway's settings, with a public address also where none is configured.
fn settings(config: &Config, listening: SocketAddr) -> gateway::Settings {
    let mut settings = config.gateway();
    // The gateway itself says where, when the system chooses the port.
    if listening.port() != 0 {
        settings.auth.public_url.get_or_insert_with(|| local_url(listening));
    }
    settings
}

async fn open(data: &Path, options: OpenOptions) -> Result<Registry, ServeError> {
    let data = data.to_owned();
    let opened = tokio::task::spawn_blocking(move || Registry::open_with(&data, options)).await;
    Ok(opened.map_err(|error| ServeError::Runtime(error.into()))??)
}

impl Running {
    /// Serves until a signal ends it.
    async fn until(self, mut signals: Signals) {
        while let Wish::Reload = signals.next().await {
            self.reload.by_signal(&self.gateway.app).await;
        }
        self.shown.say("shutting down: no new requests, what runs may finish; another signal ends it at once");
        tokio::select! {
            () = self.gateway.shutdown() => self.shown.say("done"),
            () = signals.end() => self.shown.say("ended at once"),
        }
    }
}

/// Where the steps of the start are told: to people as lines, to programs as part of the log.
#[derive(Clone, Copy)]
struct Shown {
    as_log: bool,
}

impl Shown {
    fn say(self, text: &str) {
        if self.as_log {
            tracing::info!("{text}");
        } else {
            report::talk(&terminal::text(text));
        }
    }
}

/// For a shell.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    if plain { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// What is in memory here, the master key above all, goes to no core file, to no program that collects them, and to no
/// debugger of the same user.
fn keep_memory() -> std::io::Result<()> {
    use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// How many connections there can be, each being an open file; `None` for any number. The system's usual limit is for
/// programs that need few, so it is raised as far as it goes.
fn places() -> Option<usize> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    /// For everything else: compartments have open files on this side, too.
    const BESIDE: u64 = 1024;
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let most = if raised.is_ok() { limit.maximum } else { limit.current }?;
    usize::try_from(most.saturating_sub(BESIDE).max(most / 2)).ok()
}
