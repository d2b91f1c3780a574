//! Numbers in the OpenMetrics text format, which Prometheus reads. Labels are names of walls, methods, outcomes and
//! reasons, never of tenants or tools: strangers must not be able to make new series.

use super::series::{CallFamilies, WallLabels, WallSeries};
use arc_swap::ArcSwap;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use sandbox::{PoolState, PoolTotals};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One call, as far as it is counted.
pub struct CallSeen<'a> {
    pub wall: &'a str,
    pub method: &'a str,
    /// `ok`, or the code of the failure.
    pub outcome: &'a str,
    pub time: Duration,
    pub wait: Duration,
    pub cpu_us: u64,
}

/// What is looked up when somebody asks for the numbers.
pub struct Gauges<'a> {
    pub pools: Vec<(&'a str, PoolState, PoolTotals)>,
    pub sessions: usize,
    pub streams: usize,
    pub held_bytes: u64,
    pub audit_waiting: usize,
    pub audit_refused: u64,
    pub tool_lines_dropped: u64,
    pub traces_dropped: u64,
}

/// There are three walls. Whoever asks for one more than this is counted with the last.
const MOST_WALLS: usize = 8;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct KillLabels {
    wall: String,
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Decision {
    decision: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Direction {
    direction: &'static str,
}

pub struct Metrics {
    registry: Mutex<Registry>,
    calls: CallFamilies,
    walls: ArcSwap<Vec<Arc<WallSeries>>>,
    rejected: Family<Reason, Counter>,
    egress: Family<Decision, Counter>,
    egress_bytes: Family<Direction, Counter>,
    egress_masked: Counter,
    connections: Gauge,
    pools: PoolSeries,
    host: HostSeries,
}

#[derive(Default)]
struct PoolSeries {
    deployments: Family<WallLabels, Gauge>,
    spares: Family<WallLabels, Gauge>,
    shared: Family<WallLabels, Gauge>,
    running: Family<WallLabels, Gauge>,
    waiting: Family<WallLabels, Gauge>,
    longest_line: Family<WallLabels, Gauge>,
    forks: Family<WallLabels, Counter>,
    plants: Family<WallLabels, Counter>,
    failed_plants: Family<WallLabels, Counter>,
    busy: Family<WallLabels, Counter>,
    kills: Family<KillLabels, Counter>,
}

#[derive(Default)]
struct HostSeries {
    sessions: Gauge,
    streams: Gauge,
    held: Gauge,
    audit_waiting: Gauge,
    audit_refused: Counter,
    tool_lines_dropped: Counter,
    traces_dropped: Counter,
    memory: Gauge,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    pub fn new() -> Metrics {
        let mut registry = Registry::with_prefix("bulkhead");
        let metrics = Metrics {
            registry: Mutex::default(),
            calls: CallFamilies::new(),
            walls: ArcSwap::default(),
            rejected: Family::default(),
            egress: Family::default(),
            egress_bytes: Family::default(),
            egress_masked: Counter::default(),
            connections: Gauge::default(),
            pools: PoolSeries::default(),
            host: HostSeries::default(),
        };
        registry.register("build", "The program", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        metrics.calls.register(&mut registry);
        registry.register("rejected", "Requests that were refused before they became calls", metrics.rejected.clone());
        registry.register("egress_requests", "Requests to the network, by what was decided", metrics.egress.clone());
        registry.register_with_unit(
            "egress",
            "Bytes to and from the network",
            Unit::Bytes,
            metrics.egress_bytes.clone(),
        );
        registry.register(
            "egress_masked",
            "Secrets that were masked in responses; each confirms a guess to code that makes guesses",
            metrics.egress_masked.clone(),
        );
        registry.register("connections", "Open connections", metrics.connections.clone());
        metrics.pools.register(&mut registry);
        metrics.host.register(&mut registry);
        Metrics { registry: Mutex::new(registry), ..metrics }
    }

    /// A request of a server that may go nowhere.
    pub fn egress_denied(&self) {
        self.decided("denied");
    }

    fn decided(&self, decision: &'static str) {
        self.egress.get_or_create(&Decision { decision }).inc();
    }

    pub fn egress(&self, record: &egress::Record) {
        let decision = match (record.allowed, record.failed.is_some()) {
            (false, _) => "denied",
            (true, true) => "failed",
            (true, false) => "ok",
        };
        self.decided(decision);
        for (direction, bytes) in [("up", record.bytes_up), ("down", record.bytes_down)] {
            self.egress_bytes.get_or_create(&Direction { direction }).inc_by(bytes);
        }
        self.egress_masked.inc_by(record.masked);
    }

    pub fn call(&self, call: &CallSeen<'_>) {
        let cpu = Duration::from_micros(call.cpu_us);
        let walls = self.walls.load();
        match walls.iter().find(|series| series.wall == call.wall) {
            Some(series) => series.call(call.method, call.outcome, call.time, call.wait, cpu),
            None => self.new_wall(call.wall).call(call.method, call.outcome, call.time, call.wait, cpu),
        }
    }

    fn new_wall(&self, wall: &str) -> Arc<WallSeries> {
        let name = if self.walls.load().len() < MOST_WALLS { wall } else { "other" };
        // Whoever makes the same one meanwhile gets the same counters: they belong to their families.
        let series = Arc::new(WallSeries::new(name, &self.calls));
        self.walls.rcu(|walls| {
            let mut walls = Vec::clone(walls);
            if walls.iter().all(|other| other.wall != series.wall) {
                walls.push(series.clone());
            }
            walls
        });
        series
    }

    pub fn rejected(&self, reason: &'static str) {
        self.rejected.get_or_create(&Reason { reason }).inc();
    }

    pub fn connections(&self, by: i64) {
        self.connections.inc_by(by);
    }

    pub fn encode(&self, now: &Gauges<'_>) -> String {
        // One at a time: what is set now is what is written.
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        for (wall, state, totals) in &now.pools {
            self.pools.set(wall, state, totals);
        }
        self.host.set(now);
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &registry) {
            tracing::error!(%error, "the metrics cannot be written");
        }
        text
    }
}

impl PoolSeries {
    fn register(&self, to: &mut Registry) {
        to.register("pool_deployments", "Deployments held ready", self.deployments.clone());
        to.register("pool_spares", "Compartments that wait for a call", self.spares.clone());
        to.register("pool_shared", "Compartments that serve many calls", self.shared.clone());
        to.register("pool_running", "Calls that run", self.running.clone());
        to.register("pool_waiting", "Calls that wait for a place", self.waiting.clone());
        to.register("pool_longest_line", "Waiting calls of the tenant with most", self.longest_line.clone());
        to.register("pool_forks", "Compartments grown", self.forks.clone());
        to.register("pool_plants", "Deployments initialised", self.plants.clone());
        to.register("pool_failed_plants", "Initialisations that failed", self.failed_plants.clone());
        to.register("pool_busy", "Callers that heard busy", self.busy.clone());
        to.register("kills", "Compartments that were ended, by the reason", self.kills.clone());
    }

    fn set(&self, wall: &str, state: &PoolState, totals: &PoolTotals) {
        let label = WallLabels { wall: wall.to_owned() };
        for (family, value) in [
            (&self.deployments, state.deployments),
            (&self.spares, state.spares),
            (&self.shared, state.shared),
            (&self.running, state.running),
            (&self.waiting, state.waiting),
            (&self.longest_line, state.longest_line),
        ] {
            family.get_or_create(&label).set(signed(value));
        }
        for (family, value) in [
            (&self.forks, totals.grown),
            (&self.plants, totals.plants),
            (&self.failed_plants, totals.failed_plants),
            (&self.busy, totals.busy),
        ] {
            set_to(&family.get_or_create(&label), value);
        }
        for (code, count) in &totals.kills {
            let label = KillLabels { wall: wall.to_owned(), reason: code.as_str() };
            set_to(&self.kills.get_or_create(&label), *count);
        }
    }
}

impl HostSeries {
    fn register(&self, to: &mut Registry) {
        to.register("sessions", "Legacy sessions", self.sessions.clone());
        to.register("streams", "Open streams for news", self.streams.clone());
        to.register_with_unit("held", "Bodies and answers in flight", Unit::Bytes, self.held.clone());
        to.register("audit_waiting", "Audit lines that wait for the disk", self.audit_waiting.clone());
        to.register("audit_refused", "Audit lines that found no room", self.audit_refused.clone());
        to.register("tool_lines_dropped", "Lines of tools' logs that were not kept", self.tool_lines_dropped.clone());
        to.register("traces_dropped", "Traces that the collector did not get", self.traces_dropped.clone());
        to.register_with_unit("process_resident_memory", "Of the host itself", Unit::Bytes, self.memory.clone());
    }

    fn set(&self, now: &Gauges<'_>) {
        self.sessions.set(signed(now.sessions));
        self.streams.set(signed(now.streams));
        self.held.set(i64::try_from(now.held_bytes).unwrap_or(i64::MAX));
        self.audit_waiting.set(signed(now.audit_waiting));
        set_to(&self.audit_refused, now.audit_refused);
        set_to(&self.tool_lines_dropped, now.tool_lines_dropped);
        set_to(&self.traces_dropped, now.traces_dropped);
        self.memory.set(resident_bytes().unwrap_or_default());
    }
}

/// For a count that is kept elsewhere.
fn set_to(counter: &Counter, value: u64) {
    counter.inner().store(value, Ordering::Relaxed);
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// From the kernel, which counts in kB whatever the size of its pages.
fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse::<i64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests;
