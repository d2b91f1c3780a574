//! The last lines a program wrote to its standard error.

use std::collections::VecDeque;

const MOST_LINES: usize = 12;
const LONGEST_LINE: usize = 400;

#[derive(Debug, Default)]
pub(crate) struct Tail(VecDeque<String>);

impl Tail {
    pub(crate) fn push(&mut self, line: &str) {
        if line.trim_ascii().is_empty() {
            return;
        }
        if self.0.len() == MOST_LINES {
            self.0.pop_front();
        }
        let mut kept = line[..line.floor_char_boundary(LONGEST_LINE)].to_owned();
        if kept.len() < line.len() {
            kept.push('…');
        }
        self.0.push_back(kept);
    }

    /// For the end of a message: nothing, or the lines.
    pub(crate) fn shown(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let lines: Vec<&str> = self.0.iter().map(String::as_str).collect();
        format!("; its last words on stderr:\n{}", lines.join("\n"))
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
}
