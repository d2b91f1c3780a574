//! What a run says: a table, a file, the promises, and the section of docs/benchmarks.md.

use crate::memory::Memory;
use crate::rounds::Times;
use crate::rows::{Row, Way, bare};
use anyhow::Result;
use bench_report::{Machine, Promise, Table, listed, print, replace_marked, rounded};
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

    fn cells(&self) -> Vec<String> {
        let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| value.to_string());
        vec![
            self.name.to_owned(),
            shown(self.cold_ms),
            shown(self.warm_ms),
            shown(self.call_p50_ms),
            shown(self.call_p99_ms),
            self.tree_mb.to_string(),
            self.beside_mb.to_string(),
            self.kernel_mb.to_string(),
            self.note.to_owned(),
        ]
    }
}

pub fn promises(rows: &[Row], figures: &[Figures]) -> Vec<Promise> {
    let mut found = Vec::new();
    let held = |row: &Row| row.way == Way::Jailed;
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
    fn table(&self) -> Table<'_> {
        Table { figures: &HEAD, words: &["note"], rows: self.rows.iter().map(Figures::cells).collect() }
    }

    pub fn print(&self) {
        println!("{}{}\n{NOTE}", self.table(), self.machine.line());
        print(&self.promises);
    }

    /// Replaces what stands between the marks.
    pub fn write_docs(&self, path: &Path) -> Result<()> {
        let (table, promises) = (self.table().markdown(), listed(&self.promises));
        replace_marked(path, "process", &format!("{}\n\n{table}\n{NOTE}\n\n{promises}", self.machine.line()))
    }
}

/// Nearest rank.
fn percentile(values: &[f64], rank: f64) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let place = (values.len() as f64 * rank).ceil() as usize;
    values.get(place.max(1) - 1).copied()
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
}
