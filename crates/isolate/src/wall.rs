//! The wall itself: keeps base zygotes and plants deployments in them.

use crate::bases::{BaseFor, Bases};
use crate::carrier::{Carrier, CarrierError};
use crate::seed;
use crate::tenancy::Tenancy;
use isolate_wire::Start;
use jail::cgroup::{self, Group};
use policy::Boundary;
use sandbox::{Code, Deployment, Failure, Future, Seed, Wall};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why there is no wall.
#[derive(Debug, thiserror::Error)]
pub enum WallError {
    #[error(transparent)]
    Carrier(#[from] CarrierError),
    #[error("no control group could be made for the workers")]
    Group(#[source] jail::Error),
    #[error("no uid could be had for a worker")]
    User(#[source] jail::Error),
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
    /// Spend memory (about 100 MiB per base zygote) and a longer start on quicker forks. For hosts that stay.
    pub quick_forks: bool,
    /// Which deployments come from the same base zygote.
    pub base: BaseFor,
    /// Base zygotes that are kept for further deployments, at most. One that has deployments lives on when it is given up.
    pub bases: usize,
    /// What all compartments together may use, where the host has control groups; `None` asks for no group.
    pub together: Option<Together>,
}

/// Limits of a control group around everything behind the wall. Each process has its own limits besides.
#[derive(Clone, Copy, Debug)]
pub struct Together {
    pub memory_mb: u64,
    pub processes: u64,
}

impl Default for Together {
    /// Three quarters of the machine's memory, so that the host itself outlives its guests.
    fn default() -> Together {
        Together { memory_mb: jail::limits::memory_for_guests_mb(), processes: 4096 }
    }
}

impl Together {
    /// What one base zygote gets with all that comes of it, so that others find something when it has all that it can.
    pub(crate) fn of_one_base(self) -> Together {
        Together { memory_mb: self.memory_mb / 4 * 3, processes: self.processes.div_ceil(2) }
    }

    pub(crate) fn limits(self) -> cgroup::Limits {
        cgroup::Limits { memory_bytes: self.memory_mb << 20, processes: self.processes, cpu_percent: None }
    }
}

impl IsolateSettings {
    pub fn new(carrier: Carrier) -> IsolateSettings {
        IsolateSettings {
            carrier,
            heap_mb: policy::Limits::MOST.memory_mb,
            quick_forks: true,
            base: BaseFor::Everybody,
            bases: 32,
            together: Some(Together::default()),
        }
    }
}

impl IsolateSettings {
    pub(crate) fn start(&self, jit: bool) -> Start {
        let Together { processes, .. } = self.together.unwrap_or_default().of_one_base();
        Start { jit, heap_mb: self.heap_mb, quick_forks: self.quick_forks, user: None, processes }
    }
}

/// How often a deployment is planted anew when its base zygote is lost meanwhile.
const ATTEMPTS: usize = 3;

/// The V8 wall.
pub struct IsolateWall {
    tenancy: Tenancy,
    bases: Arc<Bases>,
    /// What the first base zygote said of itself.
    greeting: String,
}

impl IsolateWall {
    /// Starts a first base zygote: a host that cannot jail says so here and not at the first call.
    pub async fn start(settings: IsolateSettings) -> Result<IsolateWall, WallError> {
        let group = match settings.together {
            Some(together) => tokio::task::spawn_blocking(move || group(together)).await.unwrap_or(Ok(None))?,
            None => None,
        };
        let base = settings.base;
        let (bases, hello) = Bases::start(settings, group).await?;
        let landlock = match hello.landlock_abi {
            0 => "no landlock".to_owned(),
            abi => format!("landlock ABI {abi}"),
        };
        let user = if hello.user_namespace { "user namespace" } else { "no user namespace" };
        let base = match base {
            BaseFor::Everybody => "one base for all tenants",
            BaseFor::Tenant => "a base for each tenant",
        };
        let greeting = format!("V8 {}, {user}, seccomp, {landlock}, {base}", hello.v8);
        Ok(IsolateWall { tenancy: Tenancy::default(), bases: Arc::new(bases), greeting })
    }

    /// What the wall runs with, in one line, for people.
    pub fn posture(&self) -> String {
        let group = match self.bases.group() {
            Some(_) => "a control group around all",
            None => "no control group (limits of each process hold)",
        };
        format!("{}; {group}", self.greeting)
    }
}

impl Wall for IsolateWall {
    fn name(&self) -> &'static str {
        "isolate"
    }

    /// A quarter is for base zygotes, compartments that wait, and what the kernel needs for all of them.
    fn memory_mb(&self) -> Option<u64> {
        self.bases.together().map(|together| together.memory_mb / 4 * 3)
    }

    fn plant(&self, deployment: Arc<Deployment>) -> Future<'_, Result<Arc<dyn Seed>, Failure>> {
        Box::pin(async move {
            let permit = &deployment.permit;
            // A base that was killed is noticed by the next exchange with it, or while it starts; then there is a new one.
            for attempt in 1..=ATTEMPTS {
                let base = match self.bases.of(&deployment.tenant, permit.jit()).await {
                    Ok(base) => base,
                    Err(WallError::Died(_)) => continue,
                    // A start is made of short-lived helpers, too; one that was killed looks like a refusal.
                    Err(WallError::Refused(_)) if attempt < ATTEMPTS => continue,
                    Err(error) => return Err(unavailable(error)),
                };
                let planted = match permit.boundary() {
                    Boundary::Tenant => {
                        self.tenancy.plant(&base, &deployment).await.map(|s| Arc::new(s) as Arc<dyn Seed>)
                    }
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

/// A control group for everything this wall starts. None where the host has none: the limits of each process hold.
fn group(together: Together) -> Result<Option<Group>, WallError> {
    let manager = match cgroup::Manager::open().map_err(WallError::Group)? {
        cgroup::Availability::Available(manager) => manager,
        cgroup::Availability::Unavailable { .. } => return Ok(None),
    };
    manager.sweep_stale().map_err(WallError::Group)?;
    // Several walls in one host, as in tests, must not share a name.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("isolate-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    manager.create(&name, &together.limits()).map(Some).map_err(WallError::Group)
}

/// The reason is the host's own and may name its paths, so the caller hears only that there is no wall.
fn unavailable(error: WallError) -> Failure {
    let message = match error {
        WallError::Refused(reason) => format!("this host cannot enforce the isolate wall: {reason}"),
        _ => "this host cannot start the isolate wall".to_owned(),
    };
    Failure::new(Code::WallUnavailable, message)
}
