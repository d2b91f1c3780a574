//! Our words on stderr, beside those of the server.

use bundle::spelled_out;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Before every line of the server's, so that none passes for ours.
const SERVERS: &str = "server: ";

/// Says lines that begin with `bulkhead: `, each on a line of its own, and passes on the server's with another beginning.
#[derive(Clone, Default)]
pub(crate) struct Voice {
    theirs: Arc<Mutex<Theirs>>,
}

impl Voice {
    pub(crate) fn say(&self, line: &str) {
        let mut theirs = self.theirs.lock().unwrap_or_else(PoisonError::into_inner);
        let before = if theirs.unfinished { "\n" } else { "" };
        // Parts of it come from the server.
        let line = spelled_out(line).replace(['\n', '\r'], " ");
        // There is nobody else to tell.
        let _ = io::stderr().write_all(format!("{before}bulkhead: {line}\n").as_bytes());
        theirs.unfinished = false;
    }

    /// The server's own words, as a text that steers nothing.
    pub(crate) fn pass(&self, bytes: &[u8]) {
        let mut theirs = self.theirs.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = theirs.shown(bytes);
        let _ = io::stderr().write_all(shown.as_bytes());
    }
}

/// Where the server is in what it says.
#[derive(Default)]
struct Theirs {
    /// It has begun a line and not ended it.
    unfinished: bool,
    /// Its last character was a carriage return, which has ended the line.
    returned: bool,
    /// The beginning of a character whose end has not come yet.
    partial: Vec<u8>,
}

impl Theirs {
    fn shown(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.partial);
        all.extend_from_slice(bytes);
        let mut shown = String::with_capacity(all.len() + SERVERS.len());
        let mut chunks = all.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            chunk.valid().chars().for_each(|c| self.show(c, &mut shown));
            let incomplete = std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
            if incomplete && chunks.peek().is_none() {
                self.partial = chunk.invalid().to_owned();
            } else if !chunk.invalid().is_empty() {
                self.show(char::REPLACEMENT_CHARACTER, &mut shown);
            }
        }
        spelled_out(&shown)
    }

    fn show(&mut self, c: char, shown: &mut String) {
        let returned = std::mem::replace(&mut self.returned, c == '\r');
        if c == '\n' && returned {
            return;
        }
        if !self.unfinished {
            shown.push_str(SERVERS);
        }
        self.unfinished = c != '\n' && c != '\r';
        match c {
            '\r' => shown.push('\n'),
            c => shown.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(parts: &[&[u8]]) -> String {
        let mut theirs = Theirs::default();
        parts.iter().map(|part| theirs.shown(part)).collect()
    }

    #[test]
    fn every_line_of_the_server_is_marked_and_nothing_steers() {
        assert_eq!(
            shown(&[b"one\ntwo", b" and a half\n\nbulkhead: forged\n"]),
            "server: one\nserver: two and a half\nserver: \nserver: bulkhead: forged\n"
        );
        assert_eq!(
            shown(&[b"10 %\rbulkhead: 100 %\r\nend\r", b"\nx"]),
            "server: 10 %\nserver: bulkhead: 100 %\nserver: end\nserver: x"
        );
        let clipboard = "\x1b]52;c;cm0gLXJm\x07\u{9b}2J\u{202e}\u{2028}\tö";
        assert_eq!(shown(&[clipboard.as_bytes()]), "server: \\u{1b}]52;c;cm0gLXJm\\u{7}\\u{9b}2J\\u{202e}\\u{2028}\tö");
    }

    #[test]
    fn characters_in_two_parts_stay_whole() {
        let euro = "€".as_bytes();
        assert_eq!(shown(&[&euro[..1], &euro[1..], b"\xff!", &euro[..2], b"x"]), "server: €\u{fffd}!\u{fffd}x");
    }
}
