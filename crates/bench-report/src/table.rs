//! Tables for terminals and documents.

use std::fmt;

/// A name, figures, and words behind them that only documents have.
pub struct Table<'a> {
    pub figures: &'a [&'a str],
    pub words: &'a [&'a str],
    /// Cells for all of them, in that order.
    pub rows: Vec<Vec<String>>,
}

impl Table<'_> {
    pub fn markdown(&self) -> String {
        let heads: Vec<&str> = self.figures.iter().chain(self.words).copied().collect();
        let rules = [" --- |", &" --: |".repeat(self.figures.len() - 1), &" --- |".repeat(self.words.len())].concat();
        let rows: String = self.rows.iter().map(|row| format!("| {} |\n", row.join(" | "))).collect();
        format!("| {} |\n|{rules}\n{rows}", heads.join(" | "))
    }
}

/// Aligned, for a terminal.
impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head: Vec<String> = self.figures.iter().map(|cell| (*cell).to_owned()).collect();
        let lines: Vec<&Vec<String>> = std::iter::once(&head).chain(&self.rows).collect();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        for line in &lines {
            let cells = line.iter().take(self.figures.len()).enumerate().map(|(column, cell)| match column {
                0 => format!("{cell:<width$}", width = width(column)),
                _ => format!("{cell:>width$}", width = width(column)),
            });
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_rows_for_people_and_pages() {
        let rows = vec![vec!["one".to_owned(), "1".to_owned(), "why".to_owned()]];
        let table = Table { figures: &["", "much"], words: &["note"], rows };
        assert_eq!(table.to_string(), "     much\none     1\n");
        assert_eq!(table.markdown(), "|  | much | note |\n| --- | --: | --- |\n| one | 1 | why |\n");
    }
}
