//! What a run says: a table, a file, the promises, and the section of docs/benchmarks.md.

use crate::machine::Machine;
use crate::rounds::Figures;
use anyhow::{Context, Result};
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

/// A difference within one run; absolute times say more about the machine than about the code.
#[derive(Serialize)]
pub struct Promise {
    pub text: String,
    pub value: f64,
    pub kept: bool,
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

fn cells(row: &Figures) -> [String; 7] {
    let numbers =
        [row.p50_us, row.p99_us, row.added_p50_us, row.per_second, row.alone_opened_percent, row.opened_percent];
    let [a, b, c, d, e, f] = numbers.map(|number| number.to_string());
    [row.name.clone(), a, b, c, d, e, f]
}

impl Report {
    pub fn print(&self) {
        let table: Vec<[String; 7]> =
            std::iter::once(HEAD.map(str::to_owned)).chain(self.rows.iter().map(cells)).collect();
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
            text += &format!("| {} | {} |\n", cells(row).join(" | "), row.note);
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

const BEGIN: &str = "<!-- egress:begin -->\n";
const END: &str = "<!-- egress:end -->";

/// The part of a document between the marks is made by this program.
fn replace_marked(path: &Path, text: &str) -> Result<()> {
    let name = || format!("{}", path.display());
    let document = std::fs::read_to_string(path).with_context(name)?;
    let parts = document.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = parts.with_context(|| format!("{} has lost its egress:begin and egress:end marks", name()))?;
    std::fs::write(path, format!("{head}{BEGIN}{text}{END}{tail}")).with_context(name)
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

    #[test]
    fn only_the_marked_part_of_a_document_changes() {
        let path = std::env::temp_dir().join(format!("bench-egress-{}.md", std::process::id()));
        std::fs::write(&path, "a\n<!-- egress:begin -->\nold\n<!-- egress:end -->\nb\n").unwrap();
        replace_marked(&path, "new\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, "a\n").unwrap();
        let lost = replace_marked(&path, "new\n");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text, "a\n<!-- egress:begin -->\nnew\n<!-- egress:end -->\nb\n");
        assert!(lost.is_err());
    }
}
