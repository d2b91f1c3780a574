//! What untrusted code says must not steer the terminal it is shown on, nor pass for a line of ours.

/// How wide the lines of stdout may be: as `COLUMNS` says, or as wide as the terminal is. `None` for files and pipes.
pub fn columns() -> Option<usize> {
    let told = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|columns| *columns > 0);
    let found = || rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
    told.or_else(|| found().filter(|columns| *columns > 0))
}

/// For people: what steers or hides is written out, as `\u{202e}`, and lines after the first are indented.
pub fn text(text: &str) -> String {
    lines(text).replace('\n', "\n  ")
}

/// For files and pipes: what steers or hides is written out, and lines stay lines.
pub fn lines(text: &str) -> String {
    // A carriage return before a line break is harmless in a file, and steers a terminal.
    bundle::spelled_out(&text.replace("\r\n", "\n"))
}

/// For programs: the same JSON value, with what steers or hides as an escape. JSON allows these characters in strings only.
pub fn json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in bundle::escaped_json(json).chars() {
        // What a host sends as JSON need not be any.
        if c.is_control() { shown.push_str(&format!("\\u{:04x}", u32::from(c))) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_is_written_out_and_lines_are_indented() {
        assert_eq!(
            text("\x1b[31mred\u{9b}0m\u{202e}\nreceipt: forged\tö"),
            "\\u{1b}[31mred\\u{9b}0m\\u{202e}\n  receipt: forged\tö"
        );
    }

    #[test]
    fn json_keeps_its_value() {
        let value = "\x1b \u{7f} \u{9b} \u{202e} \u{200b} \u{e0041} ö 😀";
        let shown = json(&serde_json::to_string(value).unwrap());
        assert_eq!(shown, r#""\u001b \u007f \u009b \u202e \u200b \udb40\udc41 ö 😀""#);
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), value);
    }
}
