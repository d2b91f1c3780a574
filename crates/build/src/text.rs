//! Text of a project, made fit to be shown: nothing in it is invisible, and nothing in it is endless.

use bundle::is_hidden;
use std::fmt::Write;

/// One line with hidden characters written out, such as `\u{1b}`, and cut when it is long.
pub(crate) fn line(text: &str, most: usize) -> String {
    let mut out = String::new();
    for (index, c) in text.chars().enumerate() {
        if index == most {
            out.push('…');
            break;
        }
        match c {
            '\t' => out.push(' '),
            c if is_hidden(c) => {
                // Writing into a string cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// A path or the name of a module.
pub(crate) fn name(text: &str) -> String {
    line(text, 300)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_short_and_hide_nothing() {
        assert_eq!(line("a\x1b[2J\nb\tc\u{202e}", 100), "a\\u{1b}[2J\\u{a}b c\\u{202e}");
        assert_eq!(line("abcdef", 3), "abc…");
    }
}
