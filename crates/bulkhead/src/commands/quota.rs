//! The flags of a quota.

use serde_json::{Map, Value, json};

#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Quota (what is not given is inherited)")]
pub struct QuotaArgs {
    /// Requests per second, in the long run
    #[arg(long, value_name = "N")]
    requests_per_s: Option<f64>,
    /// Requests at once above that
    #[arg(long, value_name = "N")]
    burst: Option<u32>,
    /// Calls that run or wait at once
    #[arg(long, value_name = "N")]
    concurrent: Option<u32>,
    /// CPU seconds of compartments per minute
    #[arg(long, value_name = "SECONDS")]
    cpu_s_per_min: Option<f64>,
    /// Bytes that compartments send and receive per minute
    #[arg(long, value_name = "BYTES")]
    egress_bytes_per_min: Option<u64>,
    /// Bytes of the disk for everything that is deployed, and 1 MiB for each server's log; for tenants only
    #[arg(long, value_name = "BYTES")]
    disk_bytes: Option<u64>,
}

impl QuotaArgs {
    pub fn is_empty(&self) -> bool {
        self.values().is_empty()
    }

    /// The flags that were given.
    pub fn values(&self) -> Map<String, Value> {
        let all = [
            ("requests_per_s", self.requests_per_s.map(|n| json!(n))),
            ("burst", self.burst.map(|n| json!(n))),
            ("concurrent", self.concurrent.map(|n| json!(n))),
            ("cpu_s_per_min", self.cpu_s_per_min.map(|n| json!(n))),
            ("egress_bytes_per_min", self.egress_bytes_per_min.map(|n| json!(n))),
            ("disk_bytes", self.disk_bytes.map(|n| json!(n))),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}
