//! A deployment made ready to be called, and where ready ones are kept.

use super::credentials::{self, Bound};
use super::surface::{Surface, SurfaceError, Tool};
use crate::workers::Place;
use bundle::{Drift, Http, Lock};
use dashmap::DashMap;
use egress::{BareStar, Rules};
use policy::{Allowance, Ask, permit};
use registry::{Bundle, Deployment, Registry, RegistryError};
use sandbox::{Deployment as Sandboxed, Program, Shows, Speaks};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::Mutex;

/// What callers reach: the surface, and the code with its permit.
pub struct Offer {
    pub record: Arc<Deployment>,
    pub surface: Surface,
    pub sandboxed: Arc<Sandboxed>,
    /// What it may reach.
    pub rules: Arc<Rules>,
    /// Which secrets go along.
    pub bindings: Arc<Bound>,
    /// For answers: `{"name": …, "version": …}`.
    pub server_info: serde_json::Value,
    /// Its tools under the names that they have where all servers are listed together.
    together: OnceLock<Vec<Box<RawValue>>>,
}

/// Between the server's name and the tool's, where all servers are offered at one endpoint. Names of servers have no `_`.
pub const JOINT: &str = "__";

#[derive(Debug, thiserror::Error)]
pub enum OfferError {
    #[error(transparent)]
    Surface(#[from] SurfaceError),
    #[error("the deployment is not permitted on this host: {0}")]
    Refused(#[from] policy::Refusal),
    #[error("the deployment cannot be loaded")]
    Registry(#[from] RegistryError),
    #[error("the hosts that the deployment may reach cannot be read: {0}")]
    Egress(egress::Denied),
    #[error("the deployment could not be loaded in time")]
    Lost,
}

/// Bytes of memory for all offers that are ready, and for those of one tenant. One that has to go is made again when it
/// is next called. The largest single one has half of what its tenant has.
const MOST_BYTES: usize = 1 << 30;
const MOST_BYTES_OF_ONE_TENANT: usize = 256 << 20;

/// Offers by deployment id, made when first asked for.
#[derive(Default)]
pub struct Offers {
    ready: DashMap<String, Ready>,
    /// How many were made.
    made: AtomicU64,
    /// Whose turn it is to make one: callers that come together need it made once.
    making: DashMap<String, Arc<Mutex<()>>>,
}

struct Ready {
    offer: Arc<Offer>,
    /// How many were made when it was last asked for.
    used: AtomicU64,
}

impl Offers {
    pub fn ready(&self, deployment: &str) -> Option<Arc<Offer>> {
        let ready = self.ready.get(deployment)?;
        ready.used.store(self.made.load(Ordering::Relaxed), Ordering::Relaxed);
        Some(ready.offer.clone())
    }

    fn keep(&self, offer: Offer) -> Arc<Offer> {
        let (id, used) = (offer.record.id.clone(), self.made.fetch_add(1, Ordering::Relaxed) + 1);
        let ready = || Ready { offer: Arc::new(offer), used: AtomicU64::new(used) };
        let kept = self.ready.entry(id.clone()).or_insert_with(ready).offer.clone();
        let sizes = self.ready.iter().map(|entry| Weighed {
            id: entry.key().clone(),
            tenant: entry.offer.record.tenant.clone(),
            bytes: entry.offer.weight(),
            used: entry.used.load(Ordering::Relaxed),
        });
        for surplus in surplus(sizes.collect(), &id) {
            self.ready.remove(&surplus);
        }
        kept
    }

    /// Makes the offer of a deployment, for its first caller: it waits for the disk.
    pub async fn make(
        &self,
        registry: &Registry,
        record: &Arc<Deployment>,
        allowance: &Allowance,
        any_host: bool,
        place: Place,
    ) -> Result<Arc<Offer>, OfferError> {
        let (registry, kept, allowance) = (registry.clone(), record.clone(), allowance.clone());
        let load = move || {
            let _place = place;
            Offer::load(&registry, kept, &allowance, any_host)
        };
        self.once(&record.id, load).await
    }

    /// One load at a time, and none after one that went well.
    async fn once(
        &self,
        id: &str,
        load: impl FnOnce() -> Result<Offer, OfferError> + Send + 'static,
    ) -> Result<Arc<Offer>, OfferError> {
        let queue = self.making.entry(id.to_owned()).or_default().clone();
        let turn = queue.lock_owned().await;
        let made = match self.ready(id) {
            Some(offer) => {
                drop(turn);
                Ok(offer)
            }
            // The turn goes along: a caller that leaves does not end the load, and the next one waits for it.
            None => match tokio::task::spawn_blocking(move || (load(), turn)).await {
                // It is kept before the turn ends, so whoever is next finds it.
                Ok((made, _turn)) => made.map(|offer| self.keep(offer)),
                Err(_) => Err(OfferError::Lost),
            },
        };
        // Nobody waits who holds no copy, and copies are made under the map's own lock.
        self.making.remove_if(id, |_, queue| Arc::strong_count(queue) == 1);
        made
    }

    pub fn forget(&self, deployment: &str) {
        self.ready.remove(deployment);
        self.making.remove(deployment);
    }
}

struct Weighed {
    id: String,
    tenant: String,
    bytes: usize,
    used: u64,
}

/// Which of these have to go for there to be room: of whoever has too much, the one that was not used for longest. The
/// newest stays.
fn surplus(mut sizes: Vec<Weighed>, newest: &str) -> Vec<String> {
    sizes.sort_by_key(|one| std::cmp::Reverse(one.used));
    let mut tenants: HashMap<String, usize> = HashMap::new();
    sizes.iter().for_each(|one| *tenants.entry(one.tenant.clone()).or_default() += one.bytes);
    let mut gone = Vec::new();
    loop {
        let most = tenants.iter().max_by_key(|(_, bytes)| **bytes);
        let Some((tenant, bytes)) = most.map(|(tenant, bytes)| (tenant.clone(), *bytes)) else { return gone };
        let all: usize = tenants.values().sum();
        let last = sizes.iter().rposition(|one| one.tenant == tenant && one.id != newest);
        match last.filter(|_| all > MOST_BYTES || bytes > MOST_BYTES_OF_ONE_TENANT) {
            Some(last) => {
                let one = sizes.remove(last);
                tenants.entry(tenant).and_modify(|bytes| *bytes -= one.bytes);
                gone.push(one.id);
            }
            None => return gone,
        }
    }
}

impl Offer {
    /// Bytes of memory that it takes, about.
    fn weight(&self) -> usize {
        let source = match &self.sandboxed.program {
            Program::Module { source, .. } => source.len(),
            Program::Command { .. } => 0,
        };
        self.surface.weight + source
    }

    /// Its tools, each as it is listed where all servers are listed together. The first time takes long for many tools.
    pub fn together(&self) -> &[Box<RawValue>] {
        self.together.get_or_init(|| self.surface.tools.iter().map(|tool| renamed(tool, &self.record.server)).collect())
    }

    pub fn is_together(&self) -> bool {
        self.together.get().is_some() || self.surface.tools.len() < 100
    }

    fn load(
        registry: &Registry,
        record: Arc<Deployment>,
        allowance: &Allowance,
        any_host: bool,
    ) -> Result<Offer, OfferError> {
        let surface = Surface::read(&record.surface)?;
        let bundle = registry.bundle(&record.tenant, &record.server, &record.id)?;
        let rules = Arc::new(rules(&bundle.lock, any_host).map_err(OfferError::Egress)?);
        let bindings = Arc::new(credentials::bindings(&bundle.lock).map_err(OfferError::Egress)?);
        let sandboxed = sandboxed(&record.tenant, &record.id, bundle, allowance)?;
        let mut server_info = surface.extra.clone();
        server_info.insert("name".to_owned(), surface.name.clone().unwrap_or_else(|| record.server.clone()).into());
        server_info.insert("version".to_owned(), surface.version.clone().unwrap_or_else(|| "0".to_owned()).into());
        let sandboxed = Arc::new(sandboxed);
        let (server_info, together) = (server_info.into(), OnceLock::new());
        Ok(Offer { surface, sandboxed, server_info, rules, bindings, record, together })
    }
}

/// The tool as the aggregate endpoint shows it.
fn renamed(tool: &Tool, server: &str) -> Box<RawValue> {
    let renamed = || {
        let mut listed: serde_json::Map<String, Value> = serde_json::from_str(tool.listed.get()).ok()?;
        listed.insert("name".to_owned(), format!("{server}{JOINT}{}", tool.name).into());
        serde_json::value::to_raw_value(&listed).ok()
    };
    // It was read as an object before.
    renamed().unwrap_or_else(|| tool.listed.clone())
}

/// What the code may reach.
pub fn rules(lock: &Lock, any_host: bool) -> Result<Rules, egress::Denied> {
    let star = if any_host { BareStar::Allowed } else { BareStar::Refused };
    Rules::parse(lock.egress.iter().map(|host| host.as_str()), star)
}

/// What the walls take, with the permit this host gives.
pub fn sandboxed(tenant: &str, id: &str, bundle: Bundle, allowance: &Allowance) -> Result<Sandboxed, policy::Refusal> {
    let lock = &bundle.lock;
    let ask = Ask { limits: lock.limits(), boundary: lock.boundary, jit: lock.jit };
    Ok(Sandboxed {
        tenant: tenant.to_owned(),
        server: lock.server.to_string(),
        id: id.to_owned(),
        permit: permit(&ask, allowance)?,
        shows: shows(lock),
        program: program(bundle),
    })
}

fn program(Bundle { lock, source, layer }: Bundle) -> Program {
    match lock.program {
        bundle::Program::Module { entry } => Program::Module { source, file_name: entry.to_string() },
        // The registry has a layer for every command; nothing starts in a folder without a name.
        bundle::Program::Command(signed) => command(signed, layer.unwrap_or_default(), !lock.egress.is_empty()),
    }
}

/// A command as it was signed, for files that lie there.
pub fn command(signed: bundle::Command, files: PathBuf, network: bool) -> Program {
    let bundle::Command { words, environment, http } = signed;
    let speaks = match http {
        None => Speaks::Stdio,
        Some(Http { port, path, sse: true }) => Speaks::Sse { port, path },
        Some(Http { port, path, sse: false }) => Speaks::Http { port, path },
    };
    Program::Command { files, command: words, environment, network, speaks }
}

/// What was signed, and nothing else.
fn shows(lock: &Lock) -> Shows {
    let lock = lock.clone();
    Shows::only(move |surface| {
        let shown =
            serde_json::from_str(surface.get()).map_err(|error| format!("what it shows is no JSON: {error}"))?;
        let shown = bundle::Surface::new(shown).map_err(|error| format!("what it shows cannot be signed: {error}"))?;
        if shown == lock.surface {
            return Ok(());
        }
        let changes = Drift::between(&lock, &Lock { surface: shown, ..lock.clone() });
        let first = changes.first().map(ToString::to_string).unwrap_or_default();
        let places = if changes.len() == 1 { "1 place".to_owned() } else { format!("{} places", changes.len()) };
        Err(format!("the code shows something else than what was signed, in {places}: {first}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn offers_that_take_too_much_go_the_longest_unused_first() {
        let sized = |id: &str, tenant: &str, mib: usize, used: u64| Weighed {
            id: id.to_owned(),
            tenant: tenant.to_owned(),
            bytes: mib << 20,
            used,
        };
        let few = || vec![sized("a1", "a", 90, 1), sized("a2", "a", 90, 5), sized("b1", "b", 90, 2)];
        assert!(surplus(few(), "a2").is_empty());
        let mut many = few();
        many.push(sized("a3", "a", 90, 6));
        assert_eq!(surplus(many, "a3"), ["a1"], "its own go, and of these the one that was not used for longest");
        // The host is full: whoever has most gives something up, and a newcomer does not.
        let mut full: Vec<Weighed> = (0..20).map(|n| sized(&format!("t{n}"), &format!("t{n}"), 50, n)).collect();
        full.extend([sized("x1", "x", 60, 30), sized("x2", "x", 60, 3)]);
        assert_eq!(surplus(full, "t19"), ["x2", "x1"]);
        assert!(surplus(vec![sized("a1", "a", 2000, 1)], "a1").is_empty(), "the newest stays");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn callers_that_come_together_wait_for_one_load() {
        let (offers, running) = (Arc::new(Offers::default()), Arc::new(AtomicUsize::new(0)));
        let callers: Vec<_> = (0..8)
            .map(|_| {
                let (offers, running) = (offers.clone(), running.clone());
                tokio::spawn(async move {
                    let load = move || {
                        let others = running.fetch_add(1, Ordering::SeqCst);
                        std::thread::sleep(std::time::Duration::from_millis(5));
                        running.fetch_sub(1, Ordering::SeqCst);
                        assert_eq!(others, 0);
                        Err(OfferError::Egress(Rules::parse(["*"], BareStar::Refused).unwrap_err()))
                    };
                    offers.once("one", load).await
                })
            })
            .collect();
        for caller in callers {
            assert!(matches!(caller.await.unwrap(), Err(OfferError::Egress(_))));
        }
        assert!(offers.making.is_empty());
    }

    #[tokio::test]
    async fn the_load_of_a_caller_who_left_is_waited_for() {
        let offers = Offers::default();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let ended = Arc::new(AtomicUsize::new(0));
        let (first, second) = (ended.clone(), ended.clone());
        let left = offers.once("one", move || {
            let _ = wait.recv();
            first.fetch_add(1, Ordering::SeqCst);
            Err(OfferError::Lost)
        });
        assert!(tokio::time::timeout(std::time::Duration::from_millis(20), left).await.is_err());
        let next = offers.once("one", move || {
            assert_eq!(second.load(Ordering::SeqCst), 1);
            Err(OfferError::Lost)
        });
        let (_, ()) = tokio::join!(next, async move { drop(go) });
        assert_eq!(ended.load(Ordering::SeqCst), 1);
        assert!(offers.making.is_empty());
    }
}
