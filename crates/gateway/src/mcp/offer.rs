//! A deployment made ready to be called, and where ready ones are kept.

use super::credentials::{self, Bound};
use super::surface::{Surface, SurfaceError};
use bundle::{Drift, Http, Lock};
use dashmap::DashMap;
use egress::{BareStar, Rules};
use policy::{Allowance, Ask, permit};
use registry::{Bundle, Deployment, Registry, RegistryError};
use sandbox::{Deployment as Sandboxed, Program, Shows, Speaks};
use std::path::PathBuf;
use std::sync::Arc;
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
}

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

/// Offers by deployment id, made when first asked for.
#[derive(Default)]
pub struct Offers {
    ready: DashMap<String, Arc<Offer>>,
    /// Whose turn it is to make one: callers that come together need it made once.
    making: DashMap<String, Arc<Mutex<()>>>,
}

impl Offers {
    pub fn ready(&self, deployment: &str) -> Option<Arc<Offer>> {
        self.ready.get(deployment).map(|offer| offer.clone())
    }

    /// Makes the offer of a deployment, for its first caller: it waits for the disk.
    pub async fn make(
        &self,
        registry: &Registry,
        record: &Arc<Deployment>,
        allowance: &Allowance,
        any_host: bool,
    ) -> Result<Arc<Offer>, OfferError> {
        let (registry, kept, allowance) = (registry.clone(), record.clone(), allowance.clone());
        self.once(&record.id, move || Offer::load(&registry, kept, &allowance, any_host)).await
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
                Ok((made, _turn)) => {
                    made.map(|offer| self.ready.entry(id.to_owned()).or_insert(Arc::new(offer)).clone())
                }
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

impl Offer {
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
        Ok(Offer { surface, sandboxed, server_info: server_info.into(), rules, bindings, record })
    }
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
        Err(format!("the code shows something else than what was signed, in {} places: {first}", changes.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

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
