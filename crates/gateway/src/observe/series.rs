//! The series of calls, looked up once and then at hand: counting a call takes no lookup and no allocation.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use sandbox::Code;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// How a call may end. Whatever else comes is counted as `other`, the last: labels are a closed set.
pub(super) const OUTCOMES: [&str; 23] = [
    "ok",
    Code::CpuLimit.as_str(),
    Code::TimeLimit.as_str(),
    Code::MemoryLimit.as_str(),
    Code::ResultLimit.as_str(),
    Code::LogLimit.as_str(),
    Code::HostCallLimit.as_str(),
    Code::ArgumentLimit.as_str(),
    Code::BadArguments.as_str(),
    Code::ToolError.as_str(),
    Code::UnknownTool.as_str(),
    Code::InitFailed.as_str(),
    Code::SurfaceDrift.as_str(),
    Code::InitLimit.as_str(),
    Code::JailViolation.as_str(),
    Code::ProtocolViolation.as_str(),
    Code::Crashed.as_str(),
    Code::CompartmentLost.as_str(),
    Code::Cancelled.as_str(),
    Code::Busy.as_str(),
    Code::WallUnavailable.as_str(),
    "input_required",
    "other",
];

pub(super) const METHODS: [&str; 5] = ["tools/call", "resources/read", "prompts/get", "completion/complete", "other"];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabels {
    wall: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallLabels {
    wall: String,
    method: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct WallLabels {
    pub(super) wall: String,
}

type Seconds<L> = Family<L, Histogram, fn() -> Histogram>;

/// The families all walls' series belong to.
#[derive(Clone)]
pub(super) struct CallFamilies {
    time: Seconds<OutcomeLabels>,
    wait: Seconds<WallLabels>,
    cpu: Family<WallLabels, Counter<f64, AtomicU64>>,
    calls: Family<CallLabels, Counter>,
}

/// From a tenth of a millisecond to some quarter of a minute; what takes longer is in the last one.
fn buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.000_1, 2.5, 14))
}

impl CallFamilies {
    pub(super) fn new() -> CallFamilies {
        CallFamilies {
            time: Family::new_with_constructor(buckets),
            wait: Family::new_with_constructor(buckets),
            cpu: Family::default(),
            calls: Family::default(),
        }
    }

    pub(super) fn register(&self, to: &mut Registry) {
        to.register_with_unit("call", "From request to answer", Unit::Seconds, self.time.clone());
        to.register_with_unit("call_wait", "Waiting for a place and a compartment", Unit::Seconds, self.wait.clone());
        to.register_with_unit("call_cpu", "CPU time of compartments", Unit::Seconds, self.cpu.clone());
        to.register("calls", "Calls that ran", self.calls.clone());
    }
}

/// The series of one wall. Those that depend on the outcome come into being with the first such call.
pub(super) struct WallSeries {
    pub(super) wall: String,
    families: CallFamilies,
    wait: Histogram,
    cpu: Counter<f64, AtomicU64>,
    time: [OnceLock<Histogram>; OUTCOMES.len()],
    calls: [[OnceLock<Counter>; OUTCOMES.len()]; METHODS.len()],
}

impl WallSeries {
    pub(super) fn new(wall: &str, families: &CallFamilies) -> WallSeries {
        let labels = WallLabels { wall: wall.to_owned() };
        WallSeries {
            wall: wall.to_owned(),
            wait: families.wait.get_or_create_owned(&labels),
            cpu: families.cpu.get_or_create_owned(&labels),
            families: families.clone(),
            time: Default::default(),
            calls: std::array::from_fn(|_| Default::default()),
        }
    }

    pub(super) fn call(&self, method: &str, outcome: &str, time: Duration, wait: Duration, cpu: Duration) {
        let (method, outcome) = (position(&METHODS, method), position(&OUTCOMES, outcome));
        self.time[outcome].get_or_init(|| self.new_time(outcome)).observe(time.as_secs_f64());
        self.calls[method][outcome].get_or_init(|| self.new_count(method, outcome)).inc();
        self.wait.observe(wait.as_secs_f64());
        self.cpu.inc_by(cpu.as_secs_f64());
    }

    fn new_time(&self, outcome: usize) -> Histogram {
        let labels = OutcomeLabels { wall: self.wall.clone(), outcome: OUTCOMES[outcome] };
        self.families.time.get_or_create_owned(&labels)
    }

    fn new_count(&self, method: usize, outcome: usize) -> Counter {
        let labels = CallLabels { wall: self.wall.clone(), method: METHODS[method], outcome: OUTCOMES[outcome] };
        self.families.calls.get_or_create_owned(&labels)
    }
}

/// Where a name is in its table; the last entry stands for all that are not.
fn position(table: &[&str], name: &str) -> usize {
    table.iter().position(|known| *known == name).unwrap_or(table.len() - 1)
}
