//! Keeps compartments ready and hands them out by boundary.

mod gate;
mod plot;

use crate::{Answer, Code, Deployment, Failure, Host, Receipt, Request, Seed, Usage, Wall};
use bytes::Bytes;
use gate::Gate;
use plot::Plot;
use policy::check_arguments;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How much a pool may hold. All of it is bounded.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// Calls at once, over all deployments.
    pub running: usize,
    /// Calls at once of one deployment.
    pub running_per_deployment: usize,
    /// Callers that may wait for a place, over all deployments; the next one hears "busy" at once.
    pub waiting: usize,
    /// Callers that may wait for one deployment.
    pub waiting_per_deployment: usize,
    /// How long a caller waits before it hears "busy".
    pub patience: Duration,
    /// Compartments that wait ready per deployment with boundary `call`, at most. 0: every call grows its own.
    pub spares: usize,
    /// A deployment that nobody calls is let go after this.
    pub idle: Duration,
    /// Deployments held at once; the longest unused is let go for a new one.
    pub deployments: usize,
    /// Session compartments per deployment; beyond that a new session hears "busy".
    pub sessions: usize,
    /// A session's compartment that nobody calls is let go after this.
    pub session_idle: Duration,
}

impl Default for PoolSettings {
    fn default() -> PoolSettings {
        PoolSettings {
            running: 128,
            running_per_deployment: 32,
            waiting: 1024,
            waiting_per_deployment: 128,
            patience: Duration::from_secs(5),
            spares: 8,
            idle: Duration::from_secs(60),
            deployments: 128,
            sessions: 64,
            session_idle: Duration::from_secs(300),
        }
    }
}

/// What a pool holds right now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolState {
    pub deployments: usize,
    pub spares: usize,
    pub shared: usize,
    pub running: usize,
    pub waiting: usize,
}

/// A call is tried again this often when its compartment was lost before it did anything outside.
const ATTEMPTS: usize = 3;

/// All compartments of one wall.
pub struct Pool {
    inner: Arc<Inner>,
}

struct Inner {
    wall: Arc<dyn Wall>,
    settings: PoolSettings,
    gate: Gate,
    plots: Mutex<HashMap<String, Arc<Plot>>>,
}

impl Pool {
    /// Must be called inside a tokio runtime: the pool has a task that lets go what is idle.
    pub fn new(wall: Arc<dyn Wall>, settings: PoolSettings) -> Pool {
        let gate = Gate::new(settings.running, settings.waiting);
        let inner = Arc::new(Inner { wall, settings, gate, plots: Mutex::default() });
        tokio::spawn(sweep(Arc::downgrade(&inner)));
        Pool { inner }
    }

    /// Runs one call behind the wall.
    pub async fn call(&self, deployment: &Arc<Deployment>, request: &Request, host: Arc<dyn Host>) -> Answer {
        let start = Instant::now();
        let mut usage = Usage::default();
        let mut waited = None;
        let outcome = self.run(deployment, request, &host, start, &mut waited, &mut usage).await;
        let permit = &deployment.permit;
        let receipt = Receipt {
            wall: self.inner.wall.name(),
            boundary: permit.boundary(),
            jit: permit.jit(),
            limits: permit.limits().clone(),
            cpu_us: usage.cpu_us,
            time_us: micros(start.elapsed()),
            wait_us: micros(waited.unwrap_or_default()),
            peak_memory_kb: usage.memory_kb,
            host_calls: usage.host_calls,
            log_bytes: usage.log_bytes,
            hosts: host.hosts_reached(),
            credentials: Vec::new(),
        };
        Answer { outcome, receipt }
    }

    async fn run(
        &self,
        deployment: &Arc<Deployment>,
        request: &Request,
        host: &Arc<dyn Host>,
        start: Instant,
        waited: &mut Option<Duration>,
        usage: &mut Usage,
    ) -> Result<Bytes, Failure> {
        let limits = deployment.permit.limits();
        check_arguments(&request.input, limits).map_err(|e| Failure::new(Code::ArgumentLimit, e.to_string()))?;
        let plot = self.inner.plot(deployment);
        let patience = self.inner.settings.patience;
        let _place = plot.gate.enter(patience, "this server").await?;
        let _global = self.inner.gate.enter(patience, "this host").await?;
        for attempt in 1.. {
            let compartment = match plot.take(&*self.inner.wall, request).await {
                // The seed was lost and nobody had noticed yet; the next attempt plants anew.
                Err(failure) if failure.code == Code::CompartmentLost && attempt < ATTEMPTS => continue,
                taken => taken?,
            };
            waited.get_or_insert_with(|| start.elapsed());
            let within = Duration::from_millis(limits.time_ms);
            let (outcome, used) = compartment.call(request, host.clone(), within).await;
            *usage = used;
            let lost = outcome.as_ref().is_err_and(|failure| failure.code == Code::CompartmentLost);
            if lost {
                plot.doubt_spares();
            }
            plot.give_back(compartment);
            if !lost || usage.host_calls > 0 || attempt == ATTEMPTS {
                return outcome;
            }
        }
        unreachable!("the loop above only ends by returning")
    }

    /// Tools, resources and prompts of a deployment, initialising it if need be.
    pub async fn seed(&self, deployment: &Arc<Deployment>) -> Result<Arc<dyn Seed>, Failure> {
        self.inner.plot(deployment).seed(&*self.inner.wall).await
    }

    /// Lets go of a deployment: compartments that serve finish, all others are killed.
    pub fn release(&self, id: &str) {
        lock(&self.inner.plots).remove(id);
    }

    pub fn state(&self) -> PoolState {
        let plots = lock(&self.inner.plots);
        let mut state = PoolState {
            deployments: plots.len(),
            running: self.inner.gate.inside(),
            waiting: self.inner.gate.waiting(),
            ..PoolState::default()
        };
        for plot in plots.values() {
            let (spares, shared) = plot.holds();
            state.spares += spares;
            state.shared += shared;
            state.waiting += plot.gate.waiting();
        }
        state
    }
}

impl Inner {
    fn plot(&self, deployment: &Arc<Deployment>) -> Arc<Plot> {
        let mut plots = lock(&self.plots);
        if let Some(plot) = plots.get(&deployment.id) {
            plot.touch();
            return plot.clone();
        }
        if plots.len() >= self.settings.deployments {
            let oldest = plots.iter().min_by_key(|(_, plot)| plot.last_used()).map(|(id, _)| id.clone());
            oldest.map(|id| plots.remove(&id));
        }
        let plot = Arc::new(Plot::new(deployment.clone(), self.settings.clone()));
        plots.insert(deployment.id.clone(), plot.clone());
        plot
    }
}

/// Once a second: what nobody uses is let go.
async fn sweep(pool: Weak<Inner>) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let Some(inner) = pool.upgrade() else { return };
        let kept: Vec<Arc<Plot>> = {
            let mut plots = lock(&inner.plots);
            plots.retain(|_, plot| plot.gate.inside() > 0 || plot.last_used().elapsed() < inner.settings.idle);
            plots.values().cloned().collect()
        };
        for plot in kept {
            plot.sweep(&inner.wall).await;
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// A poisoned lock means a panic elsewhere, which aborts the process; the data is whole either way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
