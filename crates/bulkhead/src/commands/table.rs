//! Answers of the host as text for people.

use crate::terminal;
use serde_json::Value;
use std::time::{Duration, UNIX_EPOCH};

/// Longer cells are cut: a table is for looking, `--json` is for everything.
const MOST_CHARS: usize = 100;

/// Columns with a heading, padded; the last one is not. Where the lines are too narrow for that, each row is a block of lines
/// `heading: cell`.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(heading: &[&str]) -> Table {
        Table { rows: vec![heading.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|text| cell(&text)).collect());
    }

    pub fn text(&self) -> String {
        self.within(terminal::columns())
    }

    fn within(&self, most: Option<usize>) -> String {
        let table = self.padded();
        let fits = |most| table.lines().all(|line| line.chars().count() <= most);
        if most.is_none_or(fits) { table } else { self.blocks() }
    }

    fn blocks(&self) -> String {
        let Some((heading, rows)) = self.rows.split_first() else { return String::new() };
        let line = |(name, cell): (&String, &String)| match (name.is_empty(), cell.is_empty()) {
            (_, true) => None,
            (true, false) => Some(cell.clone()),
            (false, false) => Some(format!("{name}: {cell}")),
        };
        let block = |row: &Vec<String>| heading.iter().zip(row).filter_map(line).collect::<Vec<_>>().join("\n");
        rows.iter().map(block).collect::<Vec<_>>().join("\n\n")
    }

    fn padded(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        let line = |row: &Vec<String>| {
            let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        self.rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// One line of text that steers nothing.
pub fn cell(text: &str) -> String {
    let line = terminal::text(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    match line.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// A value in a word.
pub fn word(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) if list.is_empty() => "-".to_owned(),
        Value::Array(list) => list.iter().map(word).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// A field in a word; `-` when it is not there.
pub fn field(object: &Value, key: &str) -> String {
    object.get(key).map_or("-".to_owned(), word)
}

/// Seconds since 1970, readable.
pub fn when(object: &Value, key: &str) -> String {
    match object.get(key).and_then(Value::as_u64) {
        // Later than this has no four digits for its year.
        Some(seconds) if seconds < 253_402_300_800 => {
            humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string()
        }
        _ => field(object, key),
    }
}

/// An object as lines `key  value`, the keys of inner objects with a dot.
pub fn object(value: &Value) -> String {
    fn collect(prefix: &str, value: &Value, lines: &mut Vec<(String, String)>) {
        let Value::Object(map) = value else {
            lines.push((prefix.to_owned(), word(value)));
            return;
        };
        for (key, inner) in map {
            let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            match inner {
                _ if key.ends_with("_at") && inner.is_u64() => lines.push((name, when(value, key))),
                Value::Object(map) if map.is_empty() => lines.push((name, "-".to_owned())),
                _ => collect(&name, inner, lines),
            }
        }
    }
    let mut lines = Vec::new();
    collect("", value, &mut lines);
    let lines: Vec<_> = lines.iter().map(|(key, value)| (cell(key), cell(value))).collect();
    let width = lines.iter().map(|(key, _)| key.chars().count()).max().unwrap_or(0);
    let padded = |(key, value): &(String, String)| format!("{key:width$}  {value}").trim_end().to_owned();
    let plain = |(key, value): &(String, String)| format!("{key}: {value}");
    let table: Vec<_> = lines.iter().map(padded).collect();
    let fits = terminal::columns().is_none_or(|most| table.iter().all(|line| line.chars().count() <= most));
    if fits { table.join("\n") } else { lines.iter().map(plain).collect::<Vec<_>>().join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_is_aligned_and_steers_nothing() {
        let mut table = Table::new(&["name", "note"]);
        table.row(["acme".to_owned(), "a\nb\x1b[2J".to_owned()]);
        table.row(["größer".to_owned(), "x".repeat(200)]);
        assert_eq!(table.text(), format!("name    note\nacme    a b\\u{{1b}}[2J\ngrößer  {}…", "x".repeat(100)));
    }

    #[test]
    fn a_table_that_is_too_wide_becomes_blocks() {
        let mut table = Table::new(&["name", "", "note"]);
        table.row(["acme", "*", "x\n\x1b[2Jname: forged"].map(str::to_owned));
        table.row(["b", "", "y"].map(str::to_owned));
        assert_eq!(table.within(Some(60)), table.within(None));
        assert_eq!(table.within(Some(20)), "name: acme\n*\nnote: x \\u{1b}[2Jname: forged\n\nname: b\nnote: y");
    }

    #[test]
    fn an_object_becomes_lines() {
        let value =
            json!({ "name": "acme", "created_at": 0, "quota": { "burst": null, "rate": 2.5 }, "list": ["a", 1] });
        assert_eq!(
            object(&value),
            "created_at   1970-01-01T00:00:00Z\nlist         a, 1\nname         acme\nquota.burst  -\nquota.rate   2.5"
        );
    }
}
