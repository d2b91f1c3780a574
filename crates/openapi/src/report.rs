//! What of a specification is not in the server as it stands in the file.

use crate::files::Place;
use crate::text::{quote, visible};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// There is no tool for the operation.
    Refused,
    /// It has no effect.
    Ignored,
    /// It has an effect, but not to the letter.
    Changed,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Entry {
    /// JSON pointer; `other.yaml#/…` when it points into another file than the first.
    pub pointer: String,
    /// Such as `GET /pets`, when it concerns that one alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    pub level: Level,
    pub text: String,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Refused => "refused",
            Level::Ignored => "ignored",
            Level::Changed => "changed",
        };
        write!(f, "{level}: {}: {}", visible(&self.pointer, 300), self.text)?;
        self.operation.iter().try_for_each(|operation| write!(f, " ({})", visible(operation, 100)))
    }
}

/// Nothing is left out without an entry here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub entries: Vec<Entry>,
}

impl Report {
    pub fn refused(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.level == Level::Refused)
    }
}

/// A report is for people. What is beyond is counted.
const MOST_ENTRIES: usize = 10_000;

/// Collects entries, each once.
#[derive(Default)]
pub(crate) struct Notes {
    seen: BTreeSet<Entry>,
    entries: Vec<Entry>,
    extensions: BTreeSet<String>,
    more: usize,
    /// The operation that is being read.
    pub operation: Option<String>,
}

impl Notes {
    /// Whether nothing more is listed, so that nobody needs to find words for it.
    pub fn full(&mut self) -> bool {
        let full = self.entries.len() >= MOST_ENTRIES;
        self.more += usize::from(full);
        full
    }

    pub fn add(&mut self, level: Level, place: &Place, text: impl Into<String>) {
        if self.full() {
            return;
        }
        // What stands in shared parts is said once, and not for every operation that uses them.
        let own = level == Level::Refused || place.shown().starts_with("/paths/");
        let operation = self.operation.clone().filter(|_| own);
        let entry = Entry { pointer: place.shown(), operation, level, text: text.into() };
        if self.seen.insert(entry.clone()) {
            self.entries.push(entry);
        }
    }

    pub fn ignored(&mut self, place: &Place, text: impl Into<String>) {
        self.add(Level::Ignored, place, text);
    }

    pub fn changed(&mut self, place: &Place, text: impl Into<String>) {
        self.add(Level::Changed, place, text);
    }

    pub fn refused(&mut self, place: &Place, text: impl Into<String>) {
        self.add(Level::Refused, place, text);
    }

    /// One entry for all extensions of a name.
    pub fn extension(&mut self, holder: &Place, name: &str) {
        if !self.extensions.contains(name) && !self.full() {
            self.extensions.insert(name.to_owned());
            let text = format!("extensions named {} are not read, here and elsewhere", quote(name));
            let operation = self.operation.take();
            self.ignored(&holder.below(name), text);
            self.operation = operation;
        }
    }

    pub fn finish(mut self) -> Report {
        if self.more > 0 {
            let text =
                format!("there is more to say than these {MOST_ENTRIES} entries; select fewer operations to see it");
            self.entries.push(Entry { pointer: "/".to_owned(), operation: None, level: Level::Ignored, text });
        }
        Report { entries: self.entries }
    }
}
