//! Our words on stderr, beside those of the server.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Says lines that begin with `bulkhead: `, each on a line of its own.
#[derive(Clone, Default)]
pub(crate) struct Voice {
    /// Whether the server has begun a line and not ended it.
    unfinished: Arc<Mutex<bool>>,
}

impl Voice {
    pub(crate) fn say(&self, line: &str) {
        let mut unfinished = self.unfinished.lock().unwrap_or_else(PoisonError::into_inner);
        let before = if *unfinished { "\n" } else { "" };
        // Parts of it come from the server.
        let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        // There is nobody else to tell.
        let _ = io::stderr().write_all(format!("{before}bulkhead: {line}\n").as_bytes());
        *unfinished = false;
    }

    /// The server's own words, as they are.
    pub(crate) fn pass(&self, bytes: &[u8]) {
        let mut unfinished = self.unfinished.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = io::stderr().write_all(bytes);
        if let Some(last) = bytes.last() {
            *unfinished = *last != b'\n';
        }
    }
}
