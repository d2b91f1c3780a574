//! Boundary `tenant`: one process holds all servers of a tenant, each in a realm of its own.

use crate::compartment::{ManyCalls, Shared};
use crate::driver::Driver;
use crate::seed::{load_frame, lost, read_loaded};
use crate::verdict::{Cause, verdict};
use crate::zygote::Zygote;
use isolate_wire::{Fork, Role};
use policy::Limits;
use sandbox::{Code, Compartment, Deployment, During, Failure, Future, Growth, Seed};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Mutex;

/// Servers one tenant's process may hold over its life; a deploy adds one, and so does a server that comes back after it gave
/// way. The next one starts another process.
const MOST_SERVERS: u32 = 64;

/// The processes of the tenants that share one.
#[derive(Default)]
pub(crate) struct Tenancy {
    homes: Mutex<HashMap<Key, Weak<Home>>>,
}

/// Servers that share a process. With one memory limit for all, the process is counted rightly as long as one is there.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    tenant: String,
    jit: bool,
    memory_mb: u64,
}

struct Home {
    process: Arc<ManyCalls>,
    servers: Mutex<u32>,
}

/// One server in its tenant's process.
pub(crate) struct TenantSeed {
    home: Arc<Home>,
    server: u32,
    limits: Limits,
    surface: Box<RawValue>,
}

impl Tenancy {
    /// Loads the server into its tenant's process, which is started if it is not there.
    pub(crate) async fn plant(&self, base: &Arc<Zygote>, deployment: &Deployment) -> Result<TenantSeed, Failure> {
        let frame = load_frame(deployment)?;
        let home = self.home(base, deployment).await?;
        // Goes on when the caller goes away: the process loads it all the same, and its number must be counted.
        let load = tokio::spawn(home.load(frame, deployment.permit.limits().clone()));
        load.await.unwrap_or_else(|_| Err(lost(deployment.permit.limits())))
    }

    async fn home(&self, base: &Arc<Zygote>, deployment: &Deployment) -> Result<Arc<Home>, Failure> {
        let limits = deployment.permit.limits();
        let mut homes = self.homes.lock().await;
        homes.retain(|_, home| home.strong_count() > 0);
        let (jit, memory_mb) = (deployment.permit.jit(), limits.memory_mb);
        let key = Key { tenant: deployment.tenant.clone(), jit, memory_mb };
        if let Some(home) = homes.get(&key).and_then(Weak::upgrade)
            && home.process.alive()
            && !home.full()
        {
            return Ok(home);
        }
        let role = Fork { role: Role::Serve, memory_mb: limits.memory_mb, cpu_ms: limits.cpu_ms };
        let forked = base.fork(&role).await.map_err(|_| lost(limits))?;
        let driver = Driver::new(forked, base.clone()).map_err(|_| lost(limits))?;
        let process = Arc::new(ManyCalls::start(driver).map_err(|_| lost(limits))?);
        let home = Arc::new(Home { process, servers: Mutex::new(0) });
        homes.insert(key, Arc::downgrade(&home));
        Ok(home)
    }
}

impl Home {
    /// While a server loads, nobody knows; then the load itself says so.
    fn full(&self) -> bool {
        self.servers.try_lock().is_ok_and(|servers| *servers >= MOST_SERVERS)
    }

    async fn load(self: Arc<Home>, frame: Vec<u8>, limits: Limits) -> Result<TenantSeed, Failure> {
        // Held while loading: servers are numbered in the order in which they were loaded.
        let mut servers = self.servers.lock().await;
        if *servers >= MOST_SERVERS {
            return Err(Failure::new(Code::Busy, "this tenant's compartment holds too many servers"));
        }
        let load = self.process.load(frame, Duration::from_millis(limits.init_cpu_ms));
        let surface = match tokio::time::timeout(Duration::from_millis(limits.init_time_ms), load).await {
            Ok(Some(frame)) => read_loaded(&frame)?,
            // What ended the process is not known here: it may have been a neighbour's call.
            Ok(None) => {
                return Err(Failure::new(Code::InitLimit, "the compartment ended while the server initialised"));
            }
            Err(_) => {
                // It is still at it, and its answer would be taken for that of the next load.
                self.process.end().await;
                return Err(verdict(&Cause::Limit(Code::TimeLimit), None, &limits, During::Initialisation));
            }
        };
        let server = *servers;
        *servers += 1;
        drop(servers);
        Ok(TenantSeed { home: self, server, limits, surface })
    }
}

impl Seed for TenantSeed {
    fn surface(&self) -> &RawValue {
        &self.surface
    }

    fn grow(&self, _growth: Growth) -> Future<'_, Result<Arc<dyn Compartment>, Failure>> {
        let shared = Shared { process: self.home.process.clone(), server: self.server, limits: self.limits.clone() };
        Box::pin(async move { Ok(Arc::new(shared) as Arc<dyn Compartment>) })
    }

    fn alive(&self) -> bool {
        self.home.process.alive()
    }

    fn worn(&self) -> bool {
        false
    }
}
