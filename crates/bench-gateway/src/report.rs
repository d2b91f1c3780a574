//! What a run says: a table, a file, the promises, and the section of docs/benchmarks.md.

use crate::machine::Machine;
use crate::rounds::{Figures, rounded};
use anyhow::{Context, Result, ensure};
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

/// A ratio or a difference within one run; absolute times say more about the machine than about the code.
#[derive(Serialize)]
pub struct Promise {
    pub text: String,
    pub value: f64,
    pub bound: f64,
    pub kept: bool,
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
            found.push(Promise { text, value, bound: factor, kept: value >= factor });
        }
    }
    if let (Some(host), Some(wall)) = (find("bulkhead/server").and_then(|row| row.gateway_cpu_us), wall) {
        let value = rounded(host - wall.gateway_cpu_us.unwrap_or(0.0), 1);
        let text = "bulkhead/server: the host's CPU per call beside the wall's own < 30 µs".to_owned();
        found.push(Promise { text, value, bound: 30.0, kept: value < 30.0 });
    }
    found
}

fn cells(row: &Figures) -> [String; 8] {
    let gateway = row.gateway_cpu_us.map_or("–".to_owned(), |value| value.to_string());
    [
        row.name.clone(),
        row.calls_per_s.to_string(),
        row.p50_ms.to_string(),
        row.p99_ms.to_string(),
        row.cpu_us.to_string(),
        gateway,
        row.alone_p50_ms.to_string(),
        row.alone_p99_ms.to_string(),
    ]
}

impl Report {
    fn lines(&self) -> impl Iterator<Item = &Figures> {
        self.rows.iter().chain(&self.wall)
    }

    pub fn print(&self) {
        let table: Vec<[String; 8]> = std::iter::once(HEAD.map(str::to_owned)).chain(self.lines().map(cells)).collect();
        let width = |column: usize| table.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        for line in &table {
            let padded = line.iter().enumerate().map(|(column, cell)| match column {
                0 => format!("{cell:<width$}", width = width(column)),
                _ => format!("{cell:>width$}", width = width(column)),
            });
            println!("{}", padded.collect::<Vec<_>>().join("  "));
        }
        for promise in &self.promises {
            println!("promise: {}", promise.line());
        }
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        std::fs::write(path, serde_json::to_string_pretty(self)? + "\n").with_context(|| format!("{}", path.display()))
    }

    /// Replaces what stands between the marks.
    pub fn write_docs(&self, path: &Path) -> Result<()> {
        replace_marked(path, "gateway", &self.markdown())
    }

    fn markdown(&self) -> String {
        let m = &self.machine;
        let packages: Vec<String> = m.packages.iter().map(|(name, version)| format!("{name} {version}")).collect();
        let mut text = format!(
            "{}, {} cores, {} GB, Linux {}, load {} at the start; Node {}, {}; {}; {}.\n\n",
            m.cpu,
            m.cores,
            m.memory_gb,
            m.kernel,
            m.load_1m,
            m.node,
            m.python,
            packages.join(", "),
            m.date
        );
        text += &format!(
            "| {} | protocol | note |\n| --- |{} --- | --- |\n",
            HEAD.join(" | "),
            " --: |".repeat(HEAD.len() - 1)
        );
        for row in self.lines() {
            text += &format!("| {} | {} | {} |\n", cells(row).join(" | "), row.era, row.note);
        }
        text += "\n";
        for promise in &self.promises {
            text += &format!("- {}\n", promise.line());
        }
        text
    }
}

impl Promise {
    pub fn line(&self) -> String {
        format!("{}: {} {}", self.text, self.value, if self.kept { "ok" } else { "MISSED" })
    }
}

/// The part of a document between `<!-- NAME:begin -->` and `<!-- NAME:end -->` is made by a program.
pub fn replace_marked(path: &Path, name: &str, text: &str) -> Result<()> {
    let (begin, end) = (format!("<!-- {name}:begin -->\n"), format!("<!-- {name}:end -->"));
    let document = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let parts = document.split_once(&begin).and_then(|(head, rest)| Some((head, rest.split_once(&end)?.1)));
    ensure!(parts.is_some(), "{} has lost its {name}:begin and {name}:end marks", path.display());
    let (head, tail) = parts.unwrap_or_default();
    std::fs::write(path, format!("{head}{begin}{text}{end}{tail}")).with_context(|| format!("{}", path.display()))
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

    #[test]
    fn only_the_marked_part_of_a_document_changes() {
        let path = std::env::temp_dir().join(format!("bench-gateway-{}.md", std::process::id()));
        std::fs::write(&path, "a\n<!-- x:begin -->\nold\n<!-- x:end -->\nb\n").unwrap();
        replace_marked(&path, "x", "new\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lost = replace_marked(&path, "y", "new\n");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text, "a\n<!-- x:begin -->\nnew\n<!-- x:end -->\nb\n");
        assert!(lost.is_err());
    }
}
