//! What was really used for a call.

use policy::{Boundary, Limits};
use serde::Serialize;

/// What a wall measured of one call.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    pub cpu_us: u64,
    pub memory_kb: u64,
    pub host_calls: u64,
    pub log_bytes: u64,
}

impl Usage {
    /// Counts another attempt at the same call.
    pub(crate) fn add(&mut self, more: &Usage) {
        self.cpu_us = self.cpu_us.saturating_add(more.cpu_us);
        self.memory_kb = self.memory_kb.max(more.memory_kb);
        self.host_calls = self.host_calls.saturating_add(more.host_calls);
        self.log_bytes = self.log_bytes.saturating_add(more.log_bytes);
    }
}

/// The account of one call, also of one that failed.
#[derive(Clone, Debug, Serialize)]
pub struct Receipt {
    pub wall: &'static str,
    pub boundary: Boundary,
    pub jit: bool,
    pub limits: Limits,
    /// CPU time of the compartment for this call, from the kernel's clock for that process.
    pub cpu_us: u64,
    /// From the caller's request to the answer.
    pub time_us: u64,
    /// Of that, waiting for a place and for a compartment.
    pub wait_us: u64,
    /// Growth of resident memory over a waiting compartment, at its peak.
    pub peak_memory_kb: u64,
    pub host_calls: u64,
    pub log_bytes: u64,
    /// Upstream hosts that were reached.
    pub hosts: Vec<String>,
    /// Names of the credentials that egress put in.
    pub credentials: Vec<String>,
    /// How many secrets were masked in what came back: each tells the code that a text is one.
    pub masked: u64,
}
