//! What a run says: a table, a file, the promises, and the section of docs/benchmarks.md.

use crate::machine::Machine;
use crate::memory::Memory;
use crate::rounds::Times;
use crate::rows::{Row, Way, bare};
use anyhow::{Context, Result};
use bench_process::server::Server;
use serde::Serialize;
use std::path::Path;

#[derive(Serialize)]
pub struct Report {
    pub machine: Machine,
    pub quick: bool,
    pub rows: Vec<Figures>,
    pub promises: Vec<Promise>,
}

/// A line of the result. What does not apply, or was not measured, is none.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    pub name: &'static str,
    pub cold_ms: Option<f64>,
    pub warm_ms: Option<f64>,
    pub call_p50_ms: Option<f64>,
    pub call_p99_ms: Option<f64>,
    pub tree_mb: f64,
    /// Whoever wraps the program, and what the host keeps of it.
    pub beside_mb: f64,
    /// What the kernel has for it beside what it has for the bare one.
    pub kernel_mb: f64,
    pub note: &'static str,
}

/// A difference within one run; absolute times say more about the machine than about the code.
#[derive(Serialize)]
pub struct Promise {
    pub text: String,
    pub value: f64,
    pub kept: bool,
}

const MOST_WARM_MS: f64 = 10.0;
const MOST_COLD_MS: f64 = 30.0;
const MOST_OWN_MB: f64 = 2.0;

const HEAD: [&str; 8] =
    ["", "cold ms", "warm ms", "call p50 ms", "call p99 ms", "memory MB", "of it or beside it MB", "kernel MB"];
const NOTE: &str = "Warm: the machine (files in the page cache, one turn of everybody before the first that counts) and the host \
    (wall started, filter compiled). Nothing of the server runs before `cold`; a program that has started and said hello waits before `warm`.";

impl Figures {
    pub fn of(row: &Row, times: &Times, memory: &Memory, of_bare: &Memory) -> Figures {
        let ms = |values: &[f64], rank| percentile(values, rank).map(|value| rounded(value, 3));
        let mb = |kb: u64| rounded(kb as f64 / 1024.0, 2);
        Figures {
            name: row.name,
            cold_ms: ms(&times.cold, 0.5),
            warm_ms: ms(&times.warm, 0.5),
            call_p50_ms: ms(&times.call, 0.5),
            call_p99_ms: ms(&times.call, 0.99),
            tree_mb: mb(memory.tree_kb),
            beside_mb: mb(memory.wrapper_kb + if row.way == Way::Jailed { memory.host_kb } else { 0 }),
            kernel_mb: mb(memory.kernel_kb.saturating_sub(of_bare.kernel_kb)),
            note: row.note,
        }
    }

    fn cells(&self) -> [String; 8] {
        let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| value.to_string());
        [
            self.name.to_owned(),
            shown(self.cold_ms),
            shown(self.warm_ms),
            shown(self.call_p50_ms),
            shown(self.call_p99_ms),
            self.tree_mb.to_string(),
            self.beside_mb.to_string(),
            self.kernel_mb.to_string(),
        ]
    }
}

pub fn promises(rows: &[Row], figures: &[Figures]) -> Vec<Promise> {
    let mut found = Vec::new();
    // The first call of somebody else's server has its own price, which the table shows for the bare one.
    let held = |row: &Row| row.way == Way::Jailed && row.server != Server::Everything;
    for (row, own) in rows.iter().zip(figures).filter(|(row, _)| held(row)) {
        let Some(bare) = bare(rows, row.server).map(|index| &figures[index]) else { continue };
        let mut below = |what: &str, value: Option<f64>, most: f64| {
            let value = rounded(value.unwrap_or(f64::NAN), 3);
            found.push(Promise { text: format!("{}: {what} ≤ {most}", row.name), value, kept: value <= most });
        };
        let over = |one: Option<f64>, other: Option<f64>| Some(one? - other?);
        below(
            "ms of a warm first call above a call of the bare one",
            over(own.warm_ms, bare.call_p50_ms),
            MOST_WARM_MS,
        );
        below("ms of a cold start above the bare one's", over(own.cold_ms, bare.cold_ms), MOST_COLD_MS);
        below("MB of our own, the kernel's included", Some(own.beside_mb + own.kernel_mb), MOST_OWN_MB);
    }
    found
}

impl Report {
    pub fn print(&self) {
        let head = HEAD.map(str::to_owned);
        let table: Vec<[String; 8]> = std::iter::once(head).chain(self.rows.iter().map(Figures::cells)).collect();
        let width = |column: usize| table.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        for line in &table {
            let padded = line.iter().enumerate().map(|(column, cell)| match column {
                0 => format!("{cell:<width$}", width = width(column)),
                _ => format!("{cell:>width$}", width = width(column)),
            });
            println!("{}", padded.collect::<Vec<_>>().join("  "));
        }
        println!("{}\n{NOTE}", self.machine.line());
        for promise in &self.promises {
            println!("promise: {}", promise.line());
        }
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        std::fs::write(path, serde_json::to_string_pretty(self)? + "\n").with_context(|| format!("{}", path.display()))
    }

    /// Replaces what stands between the marks.
    pub fn write_docs(&self, path: &Path) -> Result<()> {
        replace_marked(path, &self.markdown())
    }

    fn markdown(&self) -> String {
        let mut text = format!("{}\n\n", self.machine.line());
        text += &format!("| {} | note |\n| --- |{} --- |\n", HEAD.join(" | "), " --: |".repeat(HEAD.len() - 1));
        for row in &self.rows {
            text += &format!("| {} | {} |\n", row.cells().join(" | "), row.note);
        }
        text += &format!("\n{NOTE}\n\n");
        for promise in &self.promises {
            text += &format!("- {}\n", promise.line());
        }
        text
    }
}

impl Promise {
    fn line(&self) -> String {
        format!("{}: {} {}", self.text, self.value, if self.kept { "ok" } else { "MISSED" })
    }
}

/// Nearest rank.
fn percentile(values: &[f64], rank: f64) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let place = (values.len() as f64 * rank).ceil() as usize;
    values.get(place.max(1) - 1).copied()
}

fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

const BEGIN: &str = "<!-- process:begin -->\n";
const END: &str = "<!-- process:end -->";

/// The part of a document between the marks is made by this program.
fn replace_marked(path: &Path, text: &str) -> Result<()> {
    let name = || format!("{}", path.display());
    let document = std::fs::read_to_string(path).with_context(name)?;
    let parts = document.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = parts.with_context(|| format!("{} has lost its process:begin and process:end marks", name()))?;
    std::fs::write(path, format!("{head}{BEGIN}{text}{END}{tail}")).with_context(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::chosen;

    fn figures(cold: f64, warm: f64, beside_mb: f64) -> Figures {
        Figures {
            name: "",
            cold_ms: Some(cold),
            warm_ms: Some(warm),
            call_p50_ms: Some(1.0),
            call_p99_ms: None,
            tree_mb: 1.0,
            beside_mb,
            kernel_mb: 0.5,
            note: "",
        }
    }

    #[test]
    fn promises_are_kept_or_missed() {
        let rows = chosen(&["node/bare".to_owned(), "node/bulkhead".to_owned()]).unwrap();
        let kept = |own: Figures| {
            let found = promises(&rows, &[figures(50.0, 1.0, 0.0), own]);
            found.iter().map(|promise| promise.kept).collect::<Vec<_>>()
        };
        assert_eq!(kept(figures(80.0, 11.0, 1.5)), [true; 3]);
        assert_eq!(kept(figures(80.1, 11.1, 1.6)), [false; 3]);
        let unknown = Figures { cold_ms: None, warm_ms: None, ..figures(0.0, 0.0, 0.0) };
        assert_eq!(kept(unknown), [false, false, true], "what was not measured is not kept");
        let alone = chosen(&["node/bulkhead".to_owned()]).unwrap();
        assert!(promises(&alone, &[figures(0.0, 0.0, 0.0)]).is_empty());
    }

    #[test]
    fn only_the_marked_part_of_a_document_changes() {
        let path = std::env::temp_dir().join(format!("bench-process-{}.md", std::process::id()));
        std::fs::write(&path, "a\n<!-- process:begin -->\nold\n<!-- process:end -->\nb\n").unwrap();
        replace_marked(&path, "new\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, "a\n").unwrap();
        let lost = replace_marked(&path, "new\n");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text, "a\n<!-- process:begin -->\nnew\n<!-- process:end -->\nb\n");
        assert!(lost.is_err());
    }
}
