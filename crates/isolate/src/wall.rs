//! The wall itself: keeps base zygotes and plants deployments in them.

use crate::base;
use crate::carrier::{Carrier, CarrierError};
use crate::seed;
use crate::tenancy::Tenancy;
use crate::zygote::Zygote;
use isolate_wire::Start;
use policy::Boundary;
use sandbox::{Code, Deployment, Failure, Future, Seed, Wall};
use std::io;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Why there is no wall.
#[derive(Debug, thiserror::Error)]
pub enum WallError {
    #[error(transparent)]
    Carrier(#[from] CarrierError),
    #[error("no channel for a worker could be made")]
    Channel(#[source] io::Error),
    #[error("the worker could not be started")]
    Spawn(#[source] io::Error),
    #[error("the worker ended while it started")]
    Died(#[source] io::Error),
    #[error("the worker refused to start: {0}")]
    Refused(String),
    #[error("the worker speaks version {worker} of the wire, this host {host}; build both together")]
    Version { worker: u32, host: u32 },
    #[error("the worker did not start: {0}")]
    Protocol(&'static str),
}

#[derive(Clone, Debug)]
pub struct IsolateSettings {
    pub carrier: Carrier,
    /// The greatest `memory_mb` a deployment may have.
    pub heap_mb: u64,
}

impl IsolateSettings {
    pub fn new(carrier: Carrier) -> IsolateSettings {
        IsolateSettings { carrier, heap_mb: policy::Limits::MOST.memory_mb }
    }
}

/// A base zygote's forks share its address layout, so it is replaced after this many deployments.
const WORN_FORKS: u64 = 64;

/// How often a deployment is planted anew when its base zygote is lost meanwhile.
const ATTEMPTS: usize = 3;

/// The V8 wall.
pub struct IsolateWall {
    settings: IsolateSettings,
    jitless: Mutex<Option<Arc<Zygote>>>,
    jit: Mutex<Option<Arc<Zygote>>>,
    tenancy: Tenancy,
}

impl IsolateWall {
    /// Starts a first base zygote: a host that cannot jail says so here and not at the first call.
    pub async fn start(settings: IsolateSettings) -> Result<IsolateWall, WallError> {
        let wall =
            IsolateWall { settings, jitless: Mutex::default(), jit: Mutex::default(), tenancy: Tenancy::default() };
        wall.base(false).await?;
        Ok(wall)
    }

    /// The base zygote for the mode, started or replaced if need be. Deployments of a replaced one keep it alive.
    async fn base(&self, jit: bool) -> Result<Arc<Zygote>, WallError> {
        let mut held = if jit { &self.jit } else { &self.jitless }.lock().await;
        if let Some(base) = &*held
            && base.alive()
            && base.forks() < WORN_FORKS
        {
            return Ok(base.clone());
        }
        let start = Start { jit, heap_mb: self.settings.heap_mb };
        let (zygote, _) = base::start(&self.settings.carrier, &start).await?;
        let base = Arc::new(zygote);
        *held = Some(base.clone());
        Ok(base)
    }
}

impl Wall for IsolateWall {
    fn name(&self) -> &'static str {
        "isolate"
    }

    fn plant(&self, deployment: Arc<Deployment>) -> Future<'_, Result<Arc<dyn Seed>, Failure>> {
        Box::pin(async move {
            let permit = &deployment.permit;
            // A base that was killed is noticed by the next exchange with it, or while it starts; then there is a new one.
            for attempt in 1..=ATTEMPTS {
                let base = match self.base(permit.jit()).await {
                    Ok(base) => base,
                    Err(WallError::Died(_)) => continue,
                    // A start is made of short-lived helpers, too; one that was killed looks like a refusal.
                    Err(WallError::Refused(_)) if attempt < ATTEMPTS => continue,
                    Err(error) => return Err(unavailable(error)),
                };
                let planted = match permit.boundary() {
                    Boundary::Tenant => self.tenancy.plant(&base, &deployment).await.map(|s| Arc::new(s) as Arc<dyn Seed>),
                    _ => seed::plant(&base, &deployment).await.map(|s| Arc::new(s) as Arc<dyn Seed>),
                };
                match planted {
                    Err(failure) if failure.code == Code::CompartmentLost => {}
                    planted => return planted,
                }
            }
            Err(seed::lost(permit.limits()))
        })
    }
}

/// The reason is the host's own and may name its paths, so the caller hears only that there is no wall.
fn unavailable(error: WallError) -> Failure {
    let message = match error {
        WallError::Refused(reason) => format!("this host cannot enforce the isolate wall: {reason}"),
        _ => "this host cannot start the isolate wall".to_owned(),
    };
    Failure::new(Code::WallUnavailable, message)
}
