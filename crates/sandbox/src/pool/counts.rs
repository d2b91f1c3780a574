//! What a pool has done so far, for whoever keeps statistics.

use crate::{Code, Failure};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The failures that cost a compartment its life.
const KILLS: [Code; 10] = [
    Code::CpuLimit,
    Code::TimeLimit,
    Code::MemoryLimit,
    Code::LogLimit,
    Code::HostCallLimit,
    Code::JailViolation,
    Code::ProtocolViolation,
    Code::Crashed,
    Code::CompartmentLost,
    // It gave way to another tenant while no call was in it.
    Code::Busy,
];

/// Totals since the pool was made. They only rise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolTotals {
    /// Calls that were answered, refused ones included.
    pub calls: u64,
    /// Compartments grown, for a call or as spares.
    pub grown: u64,
    /// Deployments initialised, and how many of those attempts failed.
    pub plants: u64,
    pub failed_plants: u64,
    /// Callers that heard "busy".
    pub busy: u64,
    /// Time callers waited for a place and a compartment, together.
    pub waited: Duration,
    /// Compartments that were ended, by the reason. `cancelled`: the caller went away.
    pub kills: Vec<(Code, u64)>,
}

#[derive(Default)]
pub(super) struct Counts {
    calls: AtomicU64,
    grown: AtomicU64,
    plants: AtomicU64,
    failed_plants: AtomicU64,
    busy: AtomicU64,
    waited_us: AtomicU64,
    kills: [AtomicU64; KILLS.len()],
    cancelled: AtomicU64,
}

impl Counts {
    pub(super) fn call(&self, waited_us: u64, failure: Option<&Failure>) {
        add(&self.calls, 1);
        add(&self.waited_us, waited_us);
        match failure.map(|failure| failure.code) {
            Some(Code::Busy) => add(&self.busy, 1),
            Some(code) => self.killed(code),
            None => {}
        }
    }

    /// A compartment was ended for this, if that is something to be ended for.
    pub(super) fn killed(&self, code: Code) {
        if let Some(index) = KILLS.iter().position(|kill| *kill == code) {
            add(&self.kills[index], 1);
        }
    }

    pub(super) fn grown(&self) {
        add(&self.grown, 1);
    }

    pub(super) fn planted(&self, well: bool) {
        add(&self.plants, 1);
        add(&self.failed_plants, u64::from(!well));
    }

    pub(super) fn cancelled(&self) {
        add(&self.cancelled, 1);
    }

    pub(super) fn totals(&self) -> PoolTotals {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let kills = KILLS.iter().zip(&self.kills).map(|(code, count)| (*code, read(count)));
        PoolTotals {
            calls: read(&self.calls),
            grown: read(&self.grown),
            plants: read(&self.plants),
            failed_plants: read(&self.failed_plants),
            busy: read(&self.busy),
            waited: Duration::from_micros(read(&self.waited_us)),
            kills: kills.chain([(Code::Cancelled, read(&self.cancelled))]).collect(),
        }
    }
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}
