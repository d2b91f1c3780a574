//! Which files differ between two deployments.

use crate::text::{quote, reveal};
use crate::{Digest, Layer, Lock, canonical_digest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// A file that differs: as it was, and as it is. Each has `sha256` and `size`; a link of a layer has `link`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    pub path: String,
    pub old: Option<Value>,
    pub new: Option<Value>,
}

/// The files of a deployment by their paths; those of a program's layer are below `layer/`.
#[derive(Clone, Debug, Default)]
pub struct Contents(BTreeMap<String, Value>);

impl Contents {
    pub fn new(lock: &Lock, layer: Option<&Layer>) -> Contents {
        let own = lock.files.iter().map(|(path, file)| (path.to_string(), json!(file)));
        let entries = layer.into_iter().flat_map(Layer::entries);
        Contents(own.chain(entries.map(|(path, entry)| (format!("layer/{path}"), entry.value()))).collect())
    }

    /// What differs between this and what comes after it, by path.
    pub fn changes(&self, new: &Contents) -> Vec<FileChange> {
        let change = |path: &String| FileChange {
            path: path.clone(),
            old: self.0.get(path).cloned(),
            new: new.0.get(path).cloned(),
        };
        let added = new.0.keys().filter(|path| !self.0.contains_key(*path));
        let mut changes: Vec<_> = self.0.keys().chain(added).map(change).filter(|it| it.old != it.new).collect();
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes
    }
}

/// One line for a terminal, with nothing invisible in it.
impl fmt::Display for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = quote(&self.path);
        match (&self.old, &self.new) {
            (None, Some(new)) => write!(f, "+ file {path}: {}", one(new)),
            (Some(old), None) => write!(f, "- file {path}: {}", one(old)),
            (old, new) => {
                let side = |side: &Option<Value>| side.as_ref().map_or("nothing".to_owned(), one);
                write!(f, "~ file {path}: {} → {}", side(old), side(new))
            }
        }
    }
}

fn one(file: &Value) -> String {
    let text = match (file["sha256"].as_str(), file["size"].as_u64()) {
        (Some(digest), Some(size)) => {
            let mode = if file["executable"] == true { ", executable" } else { "" };
            format!("sha256 {digest}, {size} bytes{mode}")
        }
        _ => file.to_string(),
    };
    match text.char_indices().nth(160) {
        Some((end, _)) => format!("{}…", reveal(&text[..end])),
        None => reveal(&text),
    }
}

/// Names one proposal: what is to run, as which step of its server, and instead of what. Whoever agrees names it, so that nothing
/// else is agreed to than what was shown.
pub fn proposal(lock: &Digest, step: u64, current: Option<&Digest>) -> Digest {
    canonical_digest(&json!({ "lock": lock, "step": step, "instead_of": current }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(files: &[(&str, Value)]) -> Contents {
        Contents(files.iter().map(|(path, file)| ((*path).to_owned(), file.clone())).collect())
    }

    #[test]
    fn each_file_that_differs_is_named_with_both_digests() {
        let file = |digest: &str, size: u64| json!({ "sha256": digest, "size": size });
        let old = contents(&[("a", file("00", 1)), ("b", file("11", 2)), ("same", file("22", 3))]);
        let new =
            contents(&[("b", file("33", 4)), ("c\n\u{202e}", json!({ "link": "../b" })), ("same", file("22", 3))]);
        let lines: Vec<_> = old.changes(&new).iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "- file `a`: sha256 00, 1 bytes",
                "~ file `b`: sha256 11, 2 bytes → sha256 33, 4 bytes",
                "+ file `c\\u{a}\\u{202e}`: {\"link\":\"../b\"}",
            ]
        );
        assert!(old.changes(&old).is_empty());
    }

    #[test]
    fn a_proposal_is_of_one_lock_for_one_step_instead_of_one_other() {
        let [a, b] = [json!("a"), json!("b")].map(|value| canonical_digest(&value));
        let all = [proposal(&a, 1, None), proposal(&b, 1, None), proposal(&a, 2, None), proposal(&a, 1, Some(&b))];
        assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), 4);
    }
}
