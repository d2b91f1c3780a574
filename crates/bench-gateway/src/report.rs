//! What a run says: a table, a file, the promises, and the section of docs/benchmarks.md.

use crate::rounds::Figures;
use anyhow::Result;
use bench_report::{Machine, Promise, Table, listed, print, replace_marked, rounded};
use serde::Serialize;
use std::path::Path;

#[derive(Serialize)]
pub struct Report {
    pub machine: Machine,
    pub quick: bool,
    pub connections: usize,
    pub rows: Vec<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall: Option<Figures>,
    pub promises: Vec<Promise>,
}

const HEAD: [&str; 8] =
    ["", "calls/s", "p50 ms", "p99 ms", "CPU µs", "gateway CPU µs", "alone: p50 ms", "alone: p99 ms"];

pub fn promises(rows: &[Figures], wall: Option<&Figures>) -> Vec<Promise> {
    let find = |name: &str| rows.iter().find(|row| row.name == name);
    let mut found = Vec::new();
    for (ours, factor) in [("bulkhead/server", 3.0), ("bulkhead/call", 1.0)] {
        if let (Some(ours), Some(node)) = (find(ours), find("node-sdk/plain")) {
            let value = rounded(ours.calls_per_s / node.calls_per_s, 2);
            let text = format!("{} calls/s ≥ {factor} × node-sdk/plain", ours.name);
            found.push(Promise { text, value, kept: value >= factor });
        }
    }
    if let (Some(host), Some(wall)) = (find("bulkhead/server").and_then(|row| row.gateway_cpu_us), wall) {
        let value = rounded(host - wall.gateway_cpu_us.unwrap_or(0.0), 1);
        let text = "bulkhead/server: the host's CPU per call beside the wall's own < 30 µs".to_owned();
        found.push(Promise { text, value, kept: value < 30.0 });
    }
    found
}

fn cells(row: &Figures) -> Vec<String> {
    let gateway = row.gateway_cpu_us.map_or("–".to_owned(), |value| value.to_string());
    vec![
        row.name.clone(),
        row.calls_per_s.to_string(),
        row.p50_ms.to_string(),
        row.p99_ms.to_string(),
        row.cpu_us.to_string(),
        gateway,
        row.alone_p50_ms.to_string(),
        row.alone_p99_ms.to_string(),
        row.era.clone(),
        row.note.clone(),
    ]
}

impl Report {
    fn table(&self) -> Table<'_> {
        let rows = self.rows.iter().chain(&self.wall).map(cells).collect();
        Table { figures: &HEAD, words: &["protocol", "note"], rows }
    }

    pub fn print(&self) {
        println!("{}{}", self.table(), self.machine.line());
        print(&self.promises);
    }

    /// Replaces what stands between the marks.
    pub fn write_docs(&self, path: &Path) -> Result<()> {
        let (table, promises) = (self.table().markdown(), listed(&self.promises));
        replace_marked(path, "gateway", &format!("{}\n\n{table}\n{promises}", self.machine.line()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, calls_per_s: f64, gateway_cpu_us: f64) -> Figures {
        Figures {
            name: name.to_owned(),
            calls_per_s,
            p50_ms: 0.0,
            p99_ms: 0.0,
            cpu_us: 0.0,
            gateway_cpu_us: Some(gateway_cpu_us),
            alone_p50_ms: 0.0,
            alone_p99_ms: 0.0,
            calls: 1,
            era: String::new(),
            note: String::new(),
        }
    }

    #[test]
    fn promises_are_kept_or_missed() {
        let wall = row("wall/server", 0.0, 10.0);
        let rows =
            [row("node-sdk/plain", 100.0, 0.0), row("bulkhead/server", 300.0, 39.9), row("bulkhead/call", 99.0, 0.0)];
        let kept: Vec<bool> = promises(&rows, Some(&wall)).iter().map(|promise| promise.kept).collect();
        assert_eq!(kept, [true, false, true]);
        let slow = [row("node-sdk/plain", 101.0, 0.0), row("bulkhead/server", 300.0, 40.0)];
        let kept: Vec<bool> = promises(&slow, Some(&wall)).iter().map(|promise| promise.kept).collect();
        assert_eq!(kept, [false, false]);
        assert!(promises(&slow[..1], None).is_empty());
    }
}
