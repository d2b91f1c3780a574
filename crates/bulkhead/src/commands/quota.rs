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
    /// Bytes that compartments send and receive per minute, such as `1048576` or `1MiB`
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    egress_bytes_per_min: Option<u64>,
    /// Bytes of the disk for everything that is deployed, and 1 MiB for each server's log, such as `1073741824` or `1GiB`; for tenants only
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    disk_bytes: Option<u64>,
}

/// A number of bytes, with a unit if there is one.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        unit => return Err(format!("`{unit}` is no unit; there are KiB, MiB and GiB")),
    };
    let number =
        digits.parse::<u64>().map_err(|_| format!("`{text}` is no number of bytes, such as `1048576` or `1MiB`"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("`{text}` is too much"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units_if_they_say_so() {
        for (text, expected) in [("0", 0), ("7", 7), ("2KiB", 2048), ("3MiB", 3 << 20), ("1GiB", 1 << 30)] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for bad in ["", "MiB", "1MB", "-1", "1.5MiB", "1 MiB", "18446744073709551615KiB", "ä"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
