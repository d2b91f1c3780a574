//! What a run says: a table, a file, the promises, and the section of docs/benchmarks.md.

use crate::rounds::Figures;
use anyhow::Result;
use bench_report::{Machine, Promise, Table, listed, print, replace_marked};
use serde::Serialize;
use std::path::Path;

#[derive(Serialize)]
pub struct Report {
    pub machine: Machine,
    pub quick: bool,
    pub threads: u8,
    pub rows: Vec<Figures>,
    pub promises: Vec<Promise>,
}

const MOST_ADDED_US: f64 = 150.0;
/// Of requests on new connections, for which times would be of connecting.
const MOST_OPENED_PERCENT: f64 = 1.0;
const HEAD: [&str; 7] = [
    "",
    "p50 µs",
    "p99 µs",
    "p50 added µs",
    "16 at once: requests/s",
    "new connections %",
    "16 at once: new connections %",
];
const NOTE: &str = "Warm: a round of turns before the first that counts, connections open, Node's code compiled. \
    The door's rates per tenant and host are raised out of the way; all its other limits are the defaults.";

pub fn promises(rows: &[Figures]) -> Vec<Promise> {
    let mut found = Vec::new();
    for row in rows.iter().filter(|row| ["door/visit", "door/call"].contains(&row.name.as_str())) {
        let below = |what: &str, value: f64, most: f64| Promise {
            text: format!("{}: {what} < {most}", row.name),
            value,
            kept: value < most,
        };
        found.push(below("µs added to hyper's p50", row.added_p50_us, MOST_ADDED_US));
        found.push(below("% of requests on new connections", row.alone_opened_percent, MOST_OPENED_PERCENT));
    }
    found
}

fn cells(row: &Figures) -> Vec<String> {
    let numbers =
        [row.p50_us, row.p99_us, row.added_p50_us, row.per_second, row.alone_opened_percent, row.opened_percent];
    let numbers = numbers.iter().map(f64::to_string);
    std::iter::once(row.name.clone()).chain(numbers).chain([row.note.clone()]).collect()
}

impl Report {
    fn table(&self) -> Table<'_> {
        Table { figures: &HEAD, words: &["note"], rows: self.rows.iter().map(cells).collect() }
    }

    pub fn print(&self) {
        println!("{}{}\n{NOTE}", self.table(), self.machine.line());
        print(&self.promises);
    }

    /// Replaces what stands between the marks.
    pub fn write_docs(&self, path: &Path) -> Result<()> {
        let (table, promises) = (self.table().markdown(), listed(&self.promises));
        replace_marked(path, "egress", &format!("{}\n\n{table}\n{NOTE}\n\n{promises}", self.machine.line()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, added_p50_us: f64, alone_opened_percent: f64) -> Figures {
        Figures {
            name: name.to_owned(),
            p50_us: 0.0,
            p99_us: 0.0,
            added_p50_us,
            per_second: 0.0,
            alone_opened_percent,
            opened_percent: 0.0,
            requests: 1,
            note: String::new(),
        }
    }

    #[test]
    fn promises_are_kept_or_missed() {
        let rows = [row("hyper", 0.0, 0.0), row("door/visit", 149.9, 0.0), row("door/call", 150.0, 1.0)];
        let kept: Vec<bool> = promises(&rows).iter().map(|promise| promise.kept).collect();
        assert_eq!(kept, [true, true, false, false]);
        let unknown = promises(&[row("door/visit", f64::NAN, 0.0)]);
        assert!(!unknown[0].kept, "what was not measured is not kept");
    }
}
