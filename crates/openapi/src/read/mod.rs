//! Bytes of a file become a tree, within bounds.

mod json;
mod yaml;

use serde_json::Value;

pub(crate) const MOST_BYTES: usize = 4 << 20;
/// Of one file, with what aliases stand for.
const MOST_PARTS: usize = 500_000;
const MOST_TEXT: usize = 16 << 20;
/// All later walks recurse no deeper than this.
const MOST_DEPTH: usize = 100;

/// A file as a tree, and what of the file is not in it: a JSON pointer and a text each.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub value: Value,
    pub lost: Vec<(String, String)>,
}

pub(crate) fn read(bytes: &[u8]) -> Result<Tree, String> {
    if bytes.len() > MOST_BYTES {
        return Err(format!("it has {} bytes, and {MOST_BYTES} are the most", bytes.len()));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| format!("it is not UTF-8: {error}"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('{') {
        match json::read(text) {
            // Flow mappings of YAML begin like JSON.
            Err(json::Failed::NoJson(message)) => yaml::read(text).map_err(|_| message),
            Err(json::Failed::Bound(message)) => Err(message),
            Ok(tree) => Ok(tree),
        }
    } else {
        yaml::read(text)
    }
}

/// A JSON pointer, which every place below repeats.
const MOST_POINTER: usize = 8 << 10;

fn too_long() -> String {
    format!("the keys on the way to a value have together more than {MOST_POINTER} bytes")
}

/// What is left of the bounds of a file.
struct Budget {
    parts: usize,
    text: usize,
}

impl Budget {
    fn new() -> Budget {
        Budget { parts: MOST_PARTS, text: MOST_TEXT }
    }

    fn take(&mut self, parts: usize, text: usize) -> Result<(), String> {
        let too_large = || {
            format!(
                "it has more than {MOST_PARTS} values or {MOST_TEXT} bytes of text, with what its aliases stand for"
            )
        };
        self.parts = self.parts.checked_sub(parts).ok_or_else(too_large)?;
        self.text = self.text.checked_sub(text).ok_or_else(too_large)?;
        Ok(())
    }
}

fn too_deep() -> String {
    format!("it is nested deeper than {MOST_DEPTH} levels")
}

/// A duplicate key is lost; which of them counts is the reader's choice, and it is always the first.
fn twice(pointer: &str, key: &str) -> (String, String) {
    let at = format!("{pointer}/{}", crate::files::escape(key));
    (at, "the key is there twice; the first one counts".to_owned())
}
