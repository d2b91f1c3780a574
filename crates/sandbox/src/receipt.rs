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
}
