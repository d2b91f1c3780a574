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
        let made = tokio::task::spawn_blocking(move || Offer::load(&registry, kept, &allowance, any_host));
        let offer = Arc::new(made.await.map_err(|_| OfferError::Lost)??);
        Ok(self.ready.entry(record.id.clone()).or_insert(offer).clone())
    }

    pub fn forget(&self, deployment: &str) {
        self.ready.remove(deployment);
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
