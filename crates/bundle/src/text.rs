//! Text from outside, made fit to be shown: nothing in it is invisible, and nothing in it is endless.

use std::fmt::Write;
use unicode_general_category::{GeneralCategory, get_general_category};

/// Whether a character shows nothing, or changes how others are shown: control characters, marks of direction, zero-width
/// ones, tags, variation selectors, blanks other than the space, and what has no meaning that everybody knows.
pub fn is_hidden(c: char) -> bool {
    use GeneralCategory as G;
    if c == ' ' || c.is_ascii_graphic() {
        return false;
    }
    match get_general_category(c) {
        G::Control | G::Format | G::LineSeparator | G::ParagraphSeparator | G::SpaceSeparator => true,
        G::PrivateUse | G::Surrogate | G::Unassigned => true,
        // Letters, marks and symbols that are blank.
        _ => matches!(c,
            '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fffc}' | '\u{16fe4}' | '\u{1d159}'
            | '\u{e0100}'..='\u{e01ef}'),
    }
}

/// The first character that hides something in text for people: one that [`is_hidden`], unless it is where writing needs it.
/// Lines end and are indented, blanks have other widths, symbols are joined (ZWJ) and shown as emoji (variation selectors), and
/// scripts from Arabic to Mongolian join or part letters.
pub fn hidden_in(text: &str) -> Option<char> {
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if !is_in_place(before, c, rest.peek().copied()) {
            return Some(c);
        }
        before = Some(c);
    }
    None
}

/// Every character that [`hidden_in`] would stop at, each once.
pub(crate) fn all_hidden_in(text: &str) -> Vec<char> {
    let (mut before, mut found) = (None, Vec::new());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let in_place = is_in_place(before, c, rest.peek().copied());
        if !in_place && !found.contains(&c) {
            found.push(c);
        }
        before = Some(c).filter(|_| in_place);
    }
    found
}

/// The text without the characters that [`hidden_in`] finds.
pub fn without_hidden(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if is_in_place(out.chars().next_back(), c, rest.peek().copied()) {
            out.push(c);
        }
    }
    out
}

/// The text with the characters that [`hidden_in`] finds written out, such as `\u{202e}`. Lines stay lines.
pub fn spelled_out(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        before = Some(c).filter(|c| is_in_place(before, *c, rest.peek().copied()));
        match before {
            Some(c) => out.push(c),
            // Writing into a string cannot fail.
            None => drop(write!(out, "\\u{{{:x}}}", u32::from(c))),
        }
    }
    out
}

fn is_in_place(before: Option<char>, c: char, after: Option<char>) -> bool {
    use GeneralCategory as G;
    if !is_hidden(c) {
        return true;
    }
    let is_symbol = |c: char| matches!(get_general_category(c), G::OtherSymbol | G::MathSymbol | G::ModifierSymbol);
    let is_joined_script = |c: char| matches!(c, '\u{600}'..='\u{1cff}') && !is_hidden(c);
    let joins_symbols = || before.is_some_and(|c| c == '\u{fe0f}' || is_symbol(c)) && after.is_some_and(is_symbol);
    let joins_letters = || before.is_some_and(is_joined_script) && after.is_some_and(is_joined_script);
    match c {
        '\n' | '\t' => true,
        '\r' => after == Some('\n'),
        // A base to stand on, and never a second one on top.
        '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(|base| !is_hidden(base) && !base.is_alphabetic() && base != ' '),
        '\u{200d}' => joins_symbols() || joins_letters(),
        '\u{200c}' => joins_letters(),
        c => get_general_category(c) == G::SpaceSeparator,
    }
}

/// The text with its hidden characters written out, such as `\u{202e}`, and each backslash doubled.
pub fn visible(text: &str) -> String {
    reveal(&text.replace('\\', "\\\\"))
}

/// The same for JSON, in which backslashes are doubled already.
pub(crate) fn reveal(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_hidden(c) {
            // Writing into a string cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// JSON text in which hidden characters are escaped as JSON does it: still the same JSON.
pub fn escaped_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        // Those of ASCII that are left stand between the values.
        if c.is_ascii() && c != '\u{7f}' || !is_hidden(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

/// Text to repeat in a message: visible, and cut when it is long.
pub(crate) fn quote(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("`{}…` ({} characters)", visible(&text[..end]), text.chars().count()),
        None => format!("`{}`", visible(text)),
    }
}

/// A message of a parser, which may repeat anything.
pub(crate) fn message(text: &str) -> String {
    const MOST: usize = 300;
    let line = text.lines().collect::<Vec<_>>().join("; ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", reveal(&line[..end])),
        None => reveal(&line),
    }
}

/// The word that was probably meant.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Long words would take long to compare, and are no typing errors.
    if word.len() > 64 {
        return None;
    }
    let lower = word.to_ascii_lowercase().replace('-', "_");
    let far = |known: &str| strsim::damerau_levenshtein(&lower, known);
    let (distance, nearest) = known.map(|known| (far(known), known)).min_by_key(|(distance, _)| *distance)?;
    (distance <= (nearest.len() / 3).clamp(1, 3)).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_nobody_sees_is_hidden() {
        let hidden = "\0\x07\x1b\t\n\r\x7f\u{85}\u{a0}\u{ad}\u{34f}\u{61c}\u{115f}\u{180e}\u{200b}\u{200d}\u{200e}\u{202e}\
                      \u{2028}\u{2029}\u{2060}\u{2066}\u{2069}\u{2800}\u{3000}\u{3164}\u{fe0f}\u{feff}\u{ffa0}\u{fff9}\
                      \u{e000}\u{e0001}\u{e0041}\u{e0100}\u{10ffff}";
        for c in hidden.chars() {
            assert!(is_hidden(c), "{c:?}");
        }
        for c in "aZ09 ~\\`\"äßжあ漢字😀é€→…".chars() {
            assert!(!is_hidden(c), "{c:?}");
        }
    }

    #[test]
    fn text_for_people_may_have_what_writing_needs() {
        for fine in [
            "",
            "two\n\tlines\r\nand a third",
            "\u{3000}日本語\u{a0}!",
            "❤\u{fe0f} 1\u{fe0f}\u{20e3} 👩\u{200d}🚀 👨🏽\u{200d}💻 🏳\u{fe0f}\u{200d}🌈",
            "می\u{200c}خواهم क्\u{200d}ष",
        ] {
            assert_eq!(hidden_in(fine), None, "{fine:?}");
            assert_eq!(without_hidden(fine), fine);
        }
        for (bad, found, plain) in [
            ("a\u{200b}b", '\u{200b}', "ab"),
            ("pay\u{202e}lap", '\u{202e}', "paylap"),
            ("a\u{200d}b\u{200c}c", '\u{200d}', "abc"),
            ("hi\u{e0068}\u{e0069}", '\u{e0068}', "hi"),
            ("a\u{fe0f}", '\u{fe0f}', "a"),
            ("❤\u{fe0f}\u{fe0e}\u{fe0f}", '\u{fe0e}', "❤\u{fe0f}"),
            ("\u{fe0f}", '\u{fe0f}', ""),
            ("a\rb", '\r', "ab"),
            ("\x1b[2J", '\x1b', "[2J"),
            ("❤\u{200d}", '\u{200d}', "❤"),
            ("x\u{e0100}\u{feff}\u{ad}\u{2028}\u{3164}\u{e000}", '\u{e0100}', "x"),
        ] {
            assert_eq!(hidden_in(bad), Some(found), "{bad:?}");
            assert_eq!(without_hidden(bad), plain, "{bad:?}");
        }
    }

    #[test]
    fn what_is_written_out_cannot_be_forged() {
        assert_eq!(visible("a\u{202e}b"), r"a\u{202e}b");
        assert_eq!(visible(r"a\u{202e}b"), r"a\\u{202e}b");
    }

    #[test]
    fn what_is_repeated_is_short() {
        assert!(quote(&"\u{202e}".repeat(1_000_000)).len() < 1000);
        assert!(message(&"\u{202e}".repeat(1_000_000)).len() < 4000);
    }

    proptest! {
        #[test]
        fn escaped_json_is_the_same_json(text in any::<String>()) {
            let value = serde_json::Value::from(text);
            let escaped = escaped_json(&format!("{value:#}"));
            prop_assert!(!escaped.chars().any(is_hidden));
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
        }

        #[test]
        fn nothing_stays_hidden(text in any::<String>()) {
            for shown in [visible(&text), quote(&text), message(&text)] {
                prop_assert!(!shown.chars().any(is_hidden));
            }
            for shown in [without_hidden(&text), spelled_out(&text)] {
                prop_assert_eq!(hidden_in(&shown), None);
            }
        }
    }
}
