//! What untrusted code says must not steer the terminal it is shown on, nor pass for a line of ours.

use solo::steers;

/// For people: what steers becomes a mark, and lines after the first are indented.
pub fn text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\n  "),
            '\t' => shown.push(c),
            c if steers(c) => shown.push('\u{fffd}'),
            c => shown.push(c),
        }
    }
    shown
}

/// For files and pipes: what steers becomes a mark, and lines stay lines.
pub fn lines(text: &str) -> String {
    text.chars().map(|c| if steers(c) && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// For programs: the same JSON value, with what steers as an escape. JSON allows these characters in strings only.
pub fn json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        // All of them are in the first plane, so one escape is enough.
        if steers(c) { shown.push_str(&format!("\\u{:04x}", u32::from(c))) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_marks_and_lines_are_indented() {
        assert_eq!(
            text("\x1b[31mred\u{9b}0m\u{202e}\nreceipt: forged\tö"),
            "\u{fffd}[31mred\u{fffd}0m\u{fffd}\n  receipt: forged\tö"
        );
    }

    #[test]
    fn json_keeps_its_value() {
        let value = "\x1b \u{7f} \u{9b} \u{202e} ö 😀";
        let shown = json(&serde_json::to_string(value).unwrap());
        assert_eq!(shown, r#""\u001b \u007f \u009b \u202e ö 😀""#);
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), value);
    }
}
