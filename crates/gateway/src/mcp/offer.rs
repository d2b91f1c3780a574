//! A deployment made ready to be called, and where ready ones are kept.

use super::surface::{Surface, SurfaceError};
use dashmap::DashMap;
use policy::{Allowance, Ask, permit};
use registry::{Deployment, Manifest, Registry, RegistryError};
use sandbox::Deployment as Sandboxed;
use std::sync::Arc;

/// What callers reach: the surface, and the code with its permit.
pub struct Offer {
    pub record: Arc<Deployment>,
    pub surface: Surface,
    pub sandboxed: Arc<Sandboxed>,
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
    #[error("the deployment could not be loaded in time")]
    Lost,
}

/// Offers by deployment id, made when first asked for.
#[derive(Default)]
pub struct Offers {
    ready: DashMap<String, Arc<Offer>>,
}

impl Offers {
    /// The offer of a deployment. The first caller waits for the disk, all others do not.
    pub async fn get(
        &self,
        registry: &Registry,
        record: &Arc<Deployment>,
        allowance: &Allowance,
    ) -> Result<Arc<Offer>, OfferError> {
        if let Some(offer) = self.ready.get(&record.id) {
            return Ok(offer.clone());
        }
        let (registry, kept, allowance) = (registry.clone(), record.clone(), allowance.clone());
        let made = tokio::task::spawn_blocking(move || Offer::load(&registry, kept, &allowance));
        let offer = Arc::new(made.await.map_err(|_| OfferError::Lost)??);
        Ok(self.ready.entry(record.id.clone()).or_insert(offer).clone())
    }

    pub fn forget(&self, deployment: &str) {
        self.ready.remove(deployment);
    }
}

impl Offer {
    fn load(registry: &Registry, record: Arc<Deployment>, allowance: &Allowance) -> Result<Offer, OfferError> {
        let surface = Surface::read(&record.surface)?;
        let source = registry.source(&record.tenant, &record.id)?;
        let sandboxed = sandboxed(&record.tenant, &record.server, &record.id, source, &record.manifest, allowance)?;
        let mut server_info = surface.extra.clone();
        server_info.insert("name".to_owned(), surface.name.clone().unwrap_or_else(|| record.server.clone()).into());
        server_info.insert("version".to_owned(), surface.version.clone().unwrap_or_else(|| "0".to_owned()).into());
        Ok(Offer { surface, sandboxed: Arc::new(sandboxed), server_info: server_info.into(), record })
    }
}

/// What the walls take, with the permit this host gives.
pub fn sandboxed(
    tenant: &str,
    server: &str,
    id: &str,
    source: bytes::Bytes,
    manifest: &Manifest,
    allowance: &Allowance,
) -> Result<Sandboxed, policy::Refusal> {
    let ask = Ask { limits: manifest.limits.clone(), boundary: manifest.boundary, jit: manifest.jit };
    Ok(Sandboxed {
        tenant: tenant.to_owned(),
        server: server.to_owned(),
        id: id.to_owned(),
        source,
        file_name: manifest.file_name.clone(),
        permit: permit(&ask, allowance)?,
    })
}
