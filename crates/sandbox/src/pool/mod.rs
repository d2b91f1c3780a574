//! Keeps compartments ready and hands them out by boundary.

mod counts;
mod fair;
mod gate;
mod plot;
mod settings;
mod stint;
mod strikes;
#[cfg(test)]
mod tests;

pub use counts::PoolTotals;
pub use settings::{PoolSettings, PoolState};

use crate::{Answer, Code, Deployment, Failure, Host, Receipt, Request, Seed, Usage, Wall};
use bytes::Bytes;
use counts::Counts;
use gate::{Gate, Seat};
use plot::{Ground, Plot};
use policy::{Boundary, check_arguments};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use stint::Pace;
use tokio::time::Instant;

/// A call is tried again this often when its compartment was lost before it did anything outside.
const ATTEMPTS: usize = 3;

/// All compartments of one wall.
pub struct Pool {
    inner: Arc<Inner>,
}

struct Inner {
    ground: Arc<Ground>,
    plots: Mutex<HashMap<String, Arc<Plot>>>,
}

impl Pool {
    /// Must be called inside a tokio runtime: the pool has a task that lets go what is idle.
    pub fn new(wall: Arc<dyn Wall>, settings: PoolSettings) -> Pool {
        let calls = Arc::new(Gate::new(settings.calls(wall.memory_mb())));
        let plants = Arc::new(Gate::new(settings.planting()));
        let ground = Arc::new(Ground { wall, settings, calls, plants, counts: Counts::default() });
        let inner = Arc::new(Inner { ground, plots: Mutex::default() });
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
        let time_us = micros(start.elapsed());
        // Who never got a compartment did nothing but wait.
        let wait_us = waited.map_or(time_us, micros);
        self.inner.ground.counts.call(wait_us, outcome.as_ref().err());
        let receipt = Receipt {
            wall: self.inner.ground.wall.name(),
            boundary: permit.boundary(),
            jit: permit.jit(),
            limits: permit.limits().clone(),
            cpu_us: usage.cpu_us,
            time_us,
            wait_us,
            peak_memory_kb: usage.memory_kb,
            host_calls: usage.host_calls,
            log_bytes: usage.log_bytes,
            hosts: host.hosts_reached(),
            credentials: host.credentials_used(),
            masked: host.secrets_masked(),
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
        let Ground { settings, calls, counts, .. } = &*self.inner.ground;
        let plot = self.inner.plot(deployment);
        let _visit = plot.visit();
        // What is there for it does not give way while it waits.
        let (memory, _stay) = plot.memory(request);
        let seat = calls.enter(&plot.tenant, plot.lane, memory, plot.parts(), settings.patience).await?;
        let seat = Leaving(Arc::new(seat));
        let pace = Pace { turn: settings.turn(limits.cpu_ms), patience: settings.patience };
        for attempt in 1.. {
            let taken = match plot.take(request, &seat.0).await {
                // The seed was lost and nobody had noticed yet; the next attempt plants anew.
                Err(failure) if failure.code == Code::CompartmentLost && attempt < ATTEMPTS => continue,
                taken => taken?,
            };
            waited.get_or_insert_with(|| start.elapsed());
            let within = Duration::from_millis(limits.time_ms);
            let mut unanswered = Unanswered((deployment.permit.boundary() == Boundary::Call).then_some(counts));
            let (outcome, used, connected) =
                stint::run(&seat.0, &*taken.compartment, request, host.clone(), within, pace).await;
            unanswered.0 = None;
            usage.add(&used);
            let lost = outcome.as_ref().is_err_and(|failure| failure.code == Code::CompartmentLost);
            if lost {
                plot.doubt_spares();
            }
            plot.give_back(taken);
            if !lost || usage.host_calls > 0 || connected || attempt == ATTEMPTS {
                return outcome;
            }
        }
        unreachable!("the loop above only ends by returning")
    }

    /// Tools, resources and prompts of a deployment, initialising it if need be.
    pub async fn seed(&self, deployment: &Arc<Deployment>) -> Result<Arc<dyn Seed>, Failure> {
        let plot = self.inner.plot(deployment);
        let _visit = plot.visit();
        plot.seed(None).await.map(|(seed, _)| seed)
    }

    /// A tenant's share of a busy host, relative to others'. Who was never given one has 1, and 0 counts as 1.
    pub fn set_weight(&self, tenant: &str, weight: u32) {
        self.inner.ground.calls.set_weight(tenant, weight);
        self.inner.ground.plants.set_weight(tenant, weight);
        self.inner.ground.wall.set_weight(tenant, weight);
    }

    /// Lets go of a deployment: compartments that serve finish, all others are killed.
    pub fn release(&self, id: &str) {
        lock(&self.inner.plots).remove(id);
    }

    /// Lets nobody in any more: who comes or waits hears "busy", who is inside finishes.
    pub fn close(&self) {
        self.inner.ground.calls.close();
        self.inner.ground.plants.close();
    }

    pub fn state(&self) -> PoolState {
        let crowd = self.inner.ground.calls.crowd();
        let plots = lock(&self.inner.plots);
        let mut state = PoolState {
            deployments: plots.len(),
            running: crowd.running,
            waiting: crowd.waiting,
            longest_line: crowd.longest,
            ..PoolState::default()
        };
        for plot in plots.values() {
            let (spares, shared) = plot.holds();
            state.spares += spares;
            state.shared += shared;
        }
        state
    }

    pub fn totals(&self) -> PoolTotals {
        self.inner.ground.counts.totals()
    }
}

impl Inner {
    fn plot(&self, deployment: &Arc<Deployment>) -> Arc<Plot> {
        let mut plots = lock(&self.plots);
        if let Some(plot) = plots.get(&deployment.id) {
            plot.touch();
            return plot.clone();
        }
        if plots.len() >= self.ground.settings.deployments
            && let Some(id) = dispensable(&plots)
        {
            plots.remove(&id);
        }
        let plot = Arc::new(Plot::new(deployment.clone(), self.ground.clone()));
        plots.insert(deployment.id.clone(), plot.clone());
        plot
    }
}

/// The longest unused deployment of the tenant that holds the most: nobody makes another's servers start anew by having
/// many.
fn dispensable(plots: &HashMap<String, Arc<Plot>>) -> Option<String> {
    let mut held: HashMap<&str, usize> = HashMap::new();
    for plot in plots.values() {
        *held.entry(&plot.tenant).or_default() += 1;
    }
    let most = held.values().copied().max()?;
    let theirs = plots.iter().filter(|(_, plot)| held.get(&*plot.tenant) == Some(&most));
    theirs.min_by_key(|(_, plot)| (plot.in_use(), plot.last_used())).map(|(id, _)| id.clone())
}

/// Leaves the place also when the caller goes away, whoever else still knows the seat.
struct Leaving(Arc<Seat>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// A caller that goes away before its answer takes its compartment along.
struct Unanswered<'a>(Option<&'a Counts>);

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(counts) = self.0 {
            counts.cancelled();
        }
    }
}

/// Once a second: what nobody uses is let go.
async fn sweep(pool: Weak<Inner>) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let Some(inner) = pool.upgrade() else { return };
        let kept: Vec<Arc<Plot>> = {
            let mut plots = lock(&inner.plots);
            plots.retain(|_, plot| plot.in_use() || plot.last_used().elapsed() < inner.ground.settings.idle);
            plots.values().cloned().collect()
        };
        for plot in kept {
            plot.sweep();
        }
        inner.ground.calls.sweep();
        inner.ground.plants.sweep();
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// A poisoned lock means a panic elsewhere, which aborts the process; the data is whole either way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
