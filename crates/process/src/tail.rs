//! The last lines a program wrote to its standard error.

use std::collections::VecDeque;

const MOST_LINES: usize = 12;
/// The first ones, too: some say what is wrong, and then how they are used.
const FIRST_LINES: usize = 3;
/// They are forgotten when so many have come: a program that has said so much has started long ago.
const STARTING_LINES: usize = 100;
const LONGEST_LINE: usize = 400;

#[derive(Debug, Default)]
pub(crate) struct Tail {
    first: Vec<String>,
    last: VecDeque<String>,
    count: usize,
}

impl Tail {
    pub(crate) fn push(&mut self, line: &str) {
        if line.trim_ascii().is_empty() {
            return;
        }
        self.count = self.count.saturating_add(1);
        let mut kept = line[..line.floor_char_boundary(LONGEST_LINE)].to_owned();
        if kept.len() < line.len() {
            kept.push('…');
        }
        if self.first.len() < FIRST_LINES && self.count <= FIRST_LINES {
            return self.first.push(kept);
        }
        if self.count > STARTING_LINES {
            self.first.clear();
        }
        if self.last.len() == MOST_LINES {
            self.last.pop_front();
        }
        self.last.push_back(kept);
    }

    /// For the end of a message: nothing, or the lines.
    pub(crate) fn shown(&self) -> String {
        if self.first.is_empty() && self.last.is_empty() {
            return String::new();
        }
        let left_out = self.count > self.first.len() + self.last.len() && !self.first.is_empty();
        let between = left_out.then_some("…");
        let lines = self.first.iter().map(String::as_str).chain(between).chain(self.last.iter().map(String::as_str));
        format!("; its last words on stderr:\n{}", lines.collect::<Vec<_>>().join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_kept_and_none_is_long() {
        let mut tail = Tail::default();
        assert_eq!(tail.shown(), "");
        for number in 0..100 {
            tail.push(&format!("line {number}"));
            tail.push("  ");
        }
        tail.push(&"ä".repeat(1000));
        let shown = tail.shown();
        assert!(shown.contains("line 99") && !shown.contains("line 88\n"), "{shown}");
        assert!(shown.lines().all(|line| line.len() <= LONGEST_LINE + 3));
    }

    #[test]
    fn the_first_lines_of_a_start_are_kept() {
        let mut tail = Tail::default();
        for number in 0..50 {
            tail.push(&format!("line {number}."));
        }
        let shown = tail.shown();
        assert!(shown.contains("\nline 0.\nline 1.\nline 2.\n…\nline 38.\n") && shown.ends_with("line 49."), "{shown}");
        for number in 50..150 {
            tail.push(&format!("line {number}."));
        }
        assert!(!tail.shown().contains("line 0."), "it has started long ago");
    }
}
