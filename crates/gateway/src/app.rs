//! What all requests share.

use crate::auth::{Authenticator, Caller, Denied, Resource};
use crate::connect::Connect;
use crate::guard::Guard;
use crate::held::{Full, Held};
use crate::mcp::RpcError;
use crate::mcp::credentials::Wanted;
use crate::mcp::hub::{Hub, What};
use crate::mcp::offer::{Offer, OfferError, Offers, sandboxed};
use crate::mcp::session::Sessions;
use crate::mcp::state::Sealer;
use crate::mcp::surface::Surface;
use crate::mcp::tasks::Tasks;
use crate::observe::health::Report;
use crate::observe::{Gauges, Metrics, Reached, Traces};
use crate::quota::{Admission, Exceeded, Quotas};
use crate::settings::Settings;
use crate::streams::StreamCount;
use crate::workers::Workers;
use crate::{Egress, MasterKeySource, Parts, problem};
use arc_swap::ArcSwap;
use axum::response::Response;
use egress::proxy::Authority;
use egress::{Pass, Rules, Visit, Watch};
use http::{HeaderMap, StatusCode, header};
use policy::{Allowance, Boundary};
use registry::{AuditEvent, Bundle, Deployment, Directory, MasterKey, Registry, Tenant, ToolLine};
use sandbox::{Code, Pool, PoolState};
use serde_json::json;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Reads the configuration anew, for whoever asks for it over the admin API.
pub type Reloader = Box<dyn Fn() -> Result<Reloaded, String> + Send + Sync>;

/// A configuration that was read again.
pub struct Reloaded {
    pub settings: Settings,
    /// Keys whose new values take effect when the host starts again.
    pub at_start: Vec<String>,
}

pub struct App {
    registry: Registry,
    pools: HashMap<String, Arc<Pool>>,
    settings: ArcSwap<Settings>,
    authenticator: ArcSwap<Authenticator>,
    guard: ArcSwap<Guard>,
    quotas: Quotas,
    offers: Offers,
    reloader: Option<Reloader>,
    egress: Option<Egress>,
    pub(crate) authority: Option<Arc<Authority>>,
    master_key: Option<MasterKeySource>,
    closing: watch::Sender<bool>,
    calls: AtomicU64,
    /// Makes numbers of calls into names that tell nothing of the numbers: how busy a host is concerns its operator.
    names: [u8; 16],
    started: Instant,
    pub(crate) connect: Connect,
    pub(crate) metrics: Metrics,
    pub(crate) reached: Reached,
    pub(crate) traces: Traces,
    pub(crate) hub: Hub,
    pub(crate) sessions: Sessions,
    pub(crate) tasks: Tasks,
    pub(crate) sealer: Sealer,
    pub(crate) streams: StreamCount,
    workers: Workers,
    pub(crate) held: Arc<Held>,
    /// Set while calls cannot be written down.
    unaudited: AtomicBool,
}

/// Why a deployment is not taken.
#[derive(Debug, Clone)]
pub struct Rejected {
    pub code: String,
    pub message: String,
}

impl App {
    pub(crate) fn new(parts: Parts) -> Result<App, crate::StartError> {
        let Parts { registry, pools, settings, reloader, traces, egress, authority, master_key, dev } = parts;
        let connect = Connect::new(registry.clone(), egress.clone(), dev);
        let sealer = Sealer::new(registry.host_key("request-state")?);
        let held = Arc::new(Held::new(settings.http.held));
        let mut names = [0; 16];
        getrandom::fill(&mut names).map_err(|error| crate::StartError::Randomness(error.to_string()))?;
        Ok(App {
            authenticator: ArcSwap::from_pointee(Authenticator::new(settings.auth.clone())?),
            guard: ArcSwap::from_pointee(Guard::new(settings.guard.clone())),
            quotas: Quotas::new(settings.quota.clone()),
            sessions: Sessions::new(settings.sessions.clone(), held.clone()),
            streams: StreamCount::new(settings.streams_per_tenant),
            settings: ArcSwap::from_pointee(settings),
            pools,
            offers: Offers::default(),
            reloader,
            egress,
            authority,
            registry,
            master_key,
            closing: watch::Sender::new(false),
            calls: AtomicU64::new(0),
            names,
            started: Instant::now(),
            connect,
            metrics: Metrics::new(),
            reached: Reached::default(),
            traces,
            hub: Hub::default(),
            tasks: Tasks::default(),
            sealer,
            workers: Workers::default(),
            held,
            unaudited: AtomicBool::new(false),
        })
    }

    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    pub fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    pub fn allowance(&self) -> Allowance {
        self.settings.load().allowance.clone()
    }

    pub fn pool(&self, wall: &str) -> Option<&Arc<Pool>> {
        self.pools.get(wall)
    }

    pub fn pool_state(&self) -> Vec<(&str, PoolState)> {
        self.pools.iter().map(|(wall, pool)| (wall.as_str(), pool.state())).collect()
    }

    /// Turns true when the host begins to shut down.
    pub fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// Resolves when the host begins to shut down.
    pub(crate) async fn closed(&self) {
        let mut closing = self.closing.subscribe();
        // The sender lives as long as `self`.
        let _ = closing.wait_for(|closing| *closing).await.map(|_| ());
    }

    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Where clients reach a server.
    pub fn public_url(&self, tenant: &str, server: &str) -> String {
        format!("{}/{tenant}/{server}/mcp", self.public_base())
    }

    pub(crate) fn public_base(&self) -> String {
        let settings = self.settings.load();
        settings.auth.public_url.as_deref().unwrap_or_default().trim_end_matches('/').to_owned()
    }

    /// Where a browser connects somebody to a provider.
    pub(crate) fn connect_url(&self, ticket: &str) -> String {
        format!("{}/connect/{ticket}", self.public_base())
    }

    /// Takes new settings. What cannot be changed while running is for the caller to know.
    pub fn apply(&self, settings: Settings) -> Result<(), String> {
        let authenticator = Authenticator::new(settings.auth.clone()).map_err(|error| error.to_string())?;
        self.authenticator.store(Arc::new(authenticator));
        self.guard.store(Arc::new(Guard::new(settings.guard.clone())));
        self.quotas.set_defaults(settings.quota.clone());
        self.sessions.set_settings(settings.sessions.clone());
        self.held.set(settings.http.held);
        let before = self.settings.swap(Arc::new(settings));
        let now = self.settings.load();
        let permitted =
            |settings: &Settings| (settings.allowance.most.clone(), settings.allowance.jit, settings.any_host);
        if permitted(&before) != permitted(&now) {
            self.permit_anew();
        }
        Ok(())
    }

    /// Everything that is loaded was permitted by another allowance: it is loaded again when it is next called.
    fn permit_anew(&self) {
        for tenant in self.registry.directory().tenants.values() {
            for current in tenant.servers.values().filter_map(|server| server.current.as_ref()) {
                self.offers.forget(&current.id);
                for pool in self.pools.values() {
                    pool.release(&current.id);
                }
            }
        }
    }

    /// Reads the configuration again. What it returns are the keys that wait for the next start.
    pub fn reload(&self) -> Result<Vec<String>, String> {
        let Some(reloader) = &self.reloader else { return Err("this host has no configuration to reload".to_owned()) };
        let Reloaded { settings, at_start } = reloader()?;
        self.apply(settings)?;
        Ok(at_start)
    }

    /// The master key that the configuration names by now.
    pub(crate) fn master_key(&self) -> Result<MasterKey, String> {
        self.master_key
            .as_ref()
            .map_or_else(|| Err("this host has no configuration to read it from".to_owned()), |read| read())
    }

    // --- who --------------------------------------------------------------------------------------------------

    /// The answer to a request whose Host or Origin is not ours.
    pub(crate) fn guard(&self, headers: &HeaderMap, uri: &http::Uri) -> Option<Response> {
        let refusal = self.guard.load().check(headers, uri).err()?;
        self.metrics.rejected("bad_host");
        Some(problem::response(refusal.status(), refusal.code(), &refusal.to_string(), refusal.hint()))
    }

    /// Who sent this, for one of the host's own routes.
    pub async fn authenticate(&self, headers: &HeaderMap) -> Result<Caller, Response> {
        self.caller(&self.registry.directory(), headers, &Resource::Host).await
    }

    pub(crate) async fn caller(
        &self,
        directory: &Directory,
        headers: &HeaderMap,
        resource: &Resource<'_>,
    ) -> Result<Caller, Response> {
        let authenticator = self.authenticator.load_full();
        authenticator.caller(directory, headers, resource).await.map_err(|denied: Denied| {
            self.metrics.rejected("unauthorized");
            let hint = "send `Authorization: Bearer KEY`; `bulkhead key create` makes a key";
            let mut response = problem::response(denied.status(), denied.code(), &denied.to_string(), Some(hint));
            response.headers_mut().insert(header::WWW_AUTHENTICATE, authenticator.challenge(resource, &denied));
            response
        })
    }

    pub(crate) fn metadata(&self, resource: &Resource<'_>) -> Option<serde_json::Value> {
        self.authenticator.load().metadata(resource)
    }

    /// Whether a caller that was let in a while ago would be let in now. Asked again and again: keys are looked through only
    /// when something has changed since this revision.
    pub(crate) fn still_valid_since(&self, caller: &Caller, revision: &mut u64) -> bool {
        if caller.expires_at.is_some_and(|at| at <= unix_now()) {
            return false;
        }
        let directory = self.registry.directory();
        let Some(key) = caller.key.as_deref().filter(|_| directory.revision != *revision) else { return true };
        let known = directory.keys.values().any(|other| other.id == key.id);
        if known {
            *revision = directory.revision;
        }
        known
    }

    /// Whether it must be asked again who this is, since they were found in the directory of this revision: costs nothing,
    /// and is rarely so.
    pub(crate) fn must_ask_again(&self, caller: &Caller, revision: u64) -> bool {
        let changed = || caller.key.is_some() && self.registry.directory().revision != revision;
        caller.expires_at.is_some_and(|at| at <= unix_now()) || changed()
    }

    pub(crate) fn admit(&self, tenant: &Tenant, caller: &Caller) -> Result<Admission, RpcError> {
        if *self.closing.borrow() {
            return Err(RpcError::unavailable("the host is shutting down"));
        }
        if self.unaudited.load(Ordering::Relaxed) {
            return Err(RpcError::unavailable("calls cannot be written down at the moment, so none is run"));
        }
        self.quotas.admit(tenant, caller, Instant::now()).map_err(|exceeded| self.too_much(&exceeded))
    }

    /// Counts a request to the admin API.
    pub(crate) fn ask(&self, tenant: &str) -> Result<(), Exceeded> {
        self.quotas.ask(tenant, Instant::now()).inspect_err(|_| self.metrics.rejected("quota"))
    }

    /// Whether a call would be given a place now. Nothing is taken.
    pub(crate) fn has_room(&self, tenant: &Tenant, caller: &Caller) -> Result<(), RpcError> {
        self.quotas.has_room(tenant, caller, Instant::now()).map_err(|exceeded| self.too_much(&exceeded))
    }

    /// Counts a message, before anything of it is read.
    pub(crate) fn hear(&self, tenant: &Tenant, caller: &Caller) -> Result<(), RpcError> {
        self.quotas.hear(tenant, caller, Instant::now()).map_err(|exceeded| self.too_much(&exceeded))
    }

    /// Computes what would keep others waiting on a thread of its own, at the expense of the tenant and the key.
    pub(crate) async fn aside<T>(&self, tenant: &Tenant, caller: &Caller, work: impl FnOnce() -> T) -> T {
        let (done, cpu_us) = self.workers.run(&tenant.name, work).await;
        self.quotas.charge(tenant, caller, cpu_us, Instant::now());
        done
    }

    /// Too many bytes of bodies and answers are in flight.
    pub(crate) fn full(&self, full: Full) -> RpcError {
        self.metrics.rejected("held");
        let message = format!("{full}, and this one was cut to make room; try again");
        RpcError::unavailable(message).with_data(json!({ "code": "busy" }))
    }

    fn too_much(&self, exceeded: &Exceeded) -> RpcError {
        self.metrics.rejected("quota");
        let seconds = exceeded.retry_after_s();
        let error = RpcError::new(StatusCode::TOO_MANY_REQUESTS, -32029, exceeded.to_string());
        let data = json!({ "code": "quota_exceeded", "quota": exceeded.what, "retryAfterS": seconds });
        RpcError { retry_after: Some(seconds), ..error.with_data(data) }
    }

    // --- what -------------------------------------------------------------------------------------------------

    pub(crate) async fn offer(&self, record: &Arc<Deployment>) -> Result<Arc<Offer>, OfferError> {
        match self.offers.ready(&record.id) {
            Some(offer) => Ok(offer),
            None => {
                let settings = self.settings();
                let place = self.workers.enter(&record.tenant).await;
                self.offers.make(&self.registry, record, &settings.allowance, settings.any_host, place).await
            }
        }
    }

    /// Runs a candidate's initialisation behind its wall and gives the surface it shows. It is ready to be called then.
    pub async fn try_deployment(&self, tenant: &str, id: &str, bundle: Bundle) -> Result<Box<RawValue>, Rejected> {
        let wall = bundle.lock.wall.as_str();
        let rejected = |code: &str, message: String| Rejected { code: code.to_owned(), message };
        let unknown = || rejected("refused", format!("this host has no wall `{wall}`"));
        let pool = self.pool(wall).ok_or_else(unknown)?;
        let candidate = sandboxed(tenant, id, bundle, &self.allowance())
            .map_err(|refusal| rejected("refused", refusal.to_string()))?;
        let seed = pool.seed(&Arc::new(candidate)).await;
        let surface = match seed.map(|seed| seed.surface().to_owned()) {
            Ok(surface) => {
                // A stranger's schemas are compiled for that: calls should not wait behind it.
                let (read, _) = self.workers.run(tenant, || read_shown(&surface)).await;
                read.map(|()| surface).map_err(|message| rejected(Code::InitFailed.as_str(), message))
            }
            Err(failure) => Err(rejected(failure.code.as_str(), failure.message)),
        };
        if surface.is_err() {
            pool.release(id);
        }
        surface
    }

    /// The door to the network for one call, if this host has one and the server may go anywhere: most may not, and
    /// their calls should not pay for it.
    pub(crate) fn visit(
        self: &Arc<App>,
        offer: &Offer,
        admission: &Admission,
        caller: &Caller,
        wanted: &Arc<Wanted>,
    ) -> Option<Visit> {
        let open = self.egress.as_ref().filter(|_| !offer.rules.is_empty())?;
        let budget = admission.egress();
        let (app, page) = (self.clone(), self.reached.page(&offer.record.tenant, &offer.record.server));
        let watch: Watch = Arc::new(move |record| {
            app.metrics.egress(record);
            page.note(record, registry::now());
        });
        let pass = Pass::new(&offer.record.tenant, &offer.record.id, offer.rules.clone());
        let credentials = offer.bindings.credentials(self, &offer.record, &caller.subject, wanted);
        Some(open.visit(Pass { credentials, budget, watch: Some(watch), ..pass }))
    }

    /// Refuses rules that lead nowhere from this host.
    pub(crate) fn check_rules(&self, rules: &Rules) -> Result<(), egress::Denied> {
        self.egress.as_ref().map_or_else(|| rules.check(&[]), |open| open.check(rules))
    }

    /// Ports of loopback that servers may reach.
    pub(crate) fn loopback(&self) -> Vec<u16> {
        self.egress.as_ref().map(|open| open.loopback().to_vec()).unwrap_or_default()
    }

    /// Removes the tokens of keys that are revoked or expired. Housekeeping does it from time to time.
    pub async fn sweep_connections(&self) {
        self.connect.sweep().await;
    }

    /// Lets nobody call the server any more that runs this deployment.
    pub(crate) fn quarantine(&self, record: &Deployment, reason: &str) {
        let (registry, reason) = (self.registry.clone(), reason.to_owned());
        let (tenant, server, id) = (record.tenant.clone(), record.server.clone(), record.id.clone());
        tracing::warn!(tenant, server, deployment = id, reason, "a server is put into quarantine");
        tokio::task::spawn_blocking(move || {
            let host = registry::Actor("host".to_owned());
            if let Err(error) = registry.quarantine(&host, &tenant, &server, &id, &reason) {
                tracing::error!(tenant, server, %error, "the quarantine could not be saved");
            }
        });
    }

    /// Tells the pools and the listeners what a change of the registry means for them.
    pub(crate) fn follow(&self, before: &Directory, after: &Directory) {
        for (name, tenant) in &before.tenants {
            if !after.tenants.contains_key(name) {
                self.connect.forget(name);
            }
            for (server, old) in &tenant.servers {
                if after.server(name, server).is_none() {
                    self.reached.forget(name, server);
                }
                let Some(old) = &old.current else { continue };
                let new = after.server(name, server).and_then(|server| server.current.as_ref());
                let quarantined = after.server(name, server).is_some_and(|server| server.quarantine.is_some());
                if new.is_some_and(|new| new.id == old.id) && !quarantined {
                    continue;
                }
                self.offers.forget(&old.id);
                if let Some(open) = &self.egress {
                    open.forget(name, &old.id);
                }
                for pool in self.pools.values() {
                    pool.release(&old.id);
                }
                if new.is_some_and(|new| new.surface.get() != old.surface.get()) {
                    for what in [What::Tools, What::Prompts, What::Resources] {
                        self.hub.tell(name, server, what);
                    }
                }
            }
        }
        for (name, tenant) in &after.tenants {
            for pool in self.pools.values() {
                pool.set_weight(name, tenant.weight);
            }
            let known = before.tenants.get(name);
            for server in tenant.servers.keys().filter(|server| known.is_none_or(|t| !t.servers.contains_key(*server)))
            {
                self.hub.tell(name, server, What::Tools);
            }
        }
    }

    /// Brings back the sessions of an earlier run, except those whose compartments held their state.
    pub(crate) fn restore_sessions(&self) {
        let records = match self.registry.sessions() {
            Ok(records) => records,
            Err(error) => return tracing::warn!(%error, "sessions of the last run are lost"),
        };
        let directory = self.registry.directory();
        for record in records {
            let survives = match &record.server {
                None => directory.tenants.contains_key(&record.tenant),
                Some(server) => directory
                    .server(&record.tenant, server)
                    .and_then(|server| server.current.as_ref())
                    .is_some_and(|current| current.manifest.boundary != Boundary::Session),
            };
            if survives {
                self.sessions.restore(record);
            }
        }
    }

    pub(crate) fn save_sessions(&self) {
        let (put, remove) = self.sessions.changes();
        if put.is_empty() && remove.is_empty() {
            return;
        }
        if let Err(error) = self.registry.save_sessions(&put, &remove) {
            tracing::warn!(%error, "sessions could not be saved; they will not outlive this run");
        }
    }

    // --- accounts ---------------------------------------------------------------------------------------------

    pub(crate) fn call_id(&self) -> String {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let digest = Sha256::new().chain_update(self.names).chain_update(number.to_le_bytes()).finalize();
        hex::encode(&digest[..10])
    }

    /// Not to be guessed, though it opens nothing for anybody but its owner.
    pub(crate) fn task_id(&self) -> String {
        crate::mcp::session::random_id()
    }

    /// Writes a line of the audit log. Should that fail for good, no call runs any more until it can be written again.
    pub(crate) fn audit(&self, event: AuditEvent) {
        if let Some(seq) = self.audit_soon(event) {
            self.registry.audit().write_up_to(seq);
        }
    }

    /// The same, but for the writing: see [`App::audited`].
    pub(crate) fn audit_soon(&self, event: AuditEvent) -> Option<u64> {
        let added = self.registry.audit().add(&event).inspect_err(|error| {
            if !self.unaudited.swap(true, Ordering::Relaxed) {
                tracing::error!(%error, "the audit log cannot be written; calls are refused until it can");
            }
        });
        added.ok()
    }

    /// Has a line written before its answer goes out. Others that end now end first, and one write is for all of them.
    pub(crate) async fn audited(&self, line: Option<u64>) {
        let Some(seq) = line else { return };
        tokio::task::yield_now().await;
        self.registry.audit().write_up_to(seq);
    }

    pub(crate) fn look_at_audit_log(&self) {
        if self.unaudited.load(Ordering::Relaxed) && self.registry.audit().health().waiting == 0 {
            self.unaudited.store(false, Ordering::Relaxed);
            tracing::info!("the audit log is written again");
        }
    }

    /// Bytes of bodies and answers in flight.
    pub fn held_bytes(&self) -> u64 {
        self.held.bytes()
    }

    /// Streams that are open to be told news.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    pub(crate) fn metrics_text(&self) -> String {
        let health = self.registry.health();
        let pools = self.pools.iter().map(|(wall, pool)| (wall.as_str(), pool.state(), pool.totals()));
        self.metrics.encode(&Gauges {
            pools: pools.collect(),
            sessions: self.sessions.len(),
            streams: self.streams.len(),
            held_bytes: self.held.bytes(),
            audit_waiting: health.audit.waiting,
            audit_refused: health.audit.refused,
            tool_lines_dropped: health.tool_lines_dropped,
            traces_dropped: self.traces.dropped(),
        })
    }

    /// What `/readyz` tells.
    pub(crate) fn readiness(&self) -> Report {
        let health = self.registry.health();
        let problems = |problems: Vec<String>| if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) };
        let closing = if *self.closing.borrow() { Err("the host is shutting down".to_owned()) } else { Ok(()) };
        Report { checks: vec![("data".to_owned(), problems(health.problems)), ("accepting".to_owned(), closing)] }
    }

    pub(crate) fn tool_log(&self, tenant: &str, server: &str, call: &str, level: &str, text: &str) {
        let line = ToolLine {
            time: registry::rfc3339_now(),
            call: call.to_owned(),
            level: level.to_owned(),
            text: text.to_owned(),
        };
        self.registry.logs().append(tenant, server, &line);
    }
}

pub(crate) fn unix_now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A surface that can be served, and that hides nothing from people who look at it.
fn read_shown(surface: &RawValue) -> Result<(), String> {
    let hidden = serde_json::from_str(surface.get()).ok().and_then(|value| bundle::Surface::new(value).ok());
    match hidden.as_ref().and_then(bundle::Surface::hidden) {
        Some(hidden) => Err(hidden.to_string()),
        None => Surface::read(surface).map(drop).map_err(|error| error.to_string()),
    }
}
