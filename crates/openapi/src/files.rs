//! The files of a specification as trees, and the way along references.

use crate::OpenApiError;
use crate::read::{MOST_BYTES, read};
use crate::report::Notes;
use crate::schema::Patterns;
use crate::text::quote;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::collections::BTreeMap;
use std::rc::Rc;

const MOST_FILES: usize = 256;
const MOST_TOTAL: usize = 4 * MOST_BYTES;
/// A reference to a reference to a reference …
const MOST_HOPS: usize = 32;

pub(crate) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Where something stands: a file and a JSON pointer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    /// Empty for the first file.
    file: Rc<str>,
    pointer: String,
}

impl Place {
    pub fn below(&self, key: &str) -> Place {
        Place { file: self.file.clone(), pointer: format!("{}/{}", self.pointer, escape(key)) }
    }

    pub fn shown(&self) -> String {
        match &*self.file {
            "" if self.pointer.is_empty() => "/".to_owned(),
            "" => self.pointer.clone(),
            file => format!("{file}#{}", self.pointer),
        }
    }

    /// The last part of the pointer, or the file.
    pub fn name(&self) -> String {
        let last = self.pointer.rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or(&self.file);
        last.replace("~1", "/").replace("~0", "~")
    }
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct At<'a> {
    pub value: &'a Value,
    pub place: Place,
}

impl<'a> At<'a> {
    pub fn get(&self, key: &str) -> Option<At<'a>> {
        let value = self.value.as_object()?.get(key)?;
        Some(At { value, place: self.place.below(key) })
    }

    pub fn str(&self, key: &str) -> Option<&'a str> {
        self.value.as_object()?.get(key)?.as_str()
    }

    pub fn is(&self, key: &str) -> bool {
        self.value.as_object().is_some_and(|map| map.get(key) == Some(&Value::Bool(true)))
    }

    pub fn entries(&self) -> impl Iterator<Item = (&'a str, At<'a>)> + use<'a> {
        let place = self.place.clone();
        let entries = self.value.as_object().into_iter().flatten();
        entries.map(move |(key, value)| (key.as_str(), At { value, place: place.below(key) }))
    }

    pub fn items(&self) -> impl Iterator<Item = At<'a>> + use<'a> {
        let place = self.place.clone();
        let items = self.value.as_array().into_iter().flatten().enumerate();
        items.map(move |(index, value)| At { value, place: place.below(&index.to_string()) })
    }

    /// Notes every key but these.
    pub fn only(&self, known: &[&str], notes: &mut Notes) {
        for key in self.value.as_object().into_iter().flat_map(|map| map.keys()) {
            if known.contains(&key.as_str()) {
                continue;
            } else if key.starts_with("x-") {
                notes.extension(&self.place, key);
            } else if !notes.full() {
                notes.ignored(&self.place.below(key), format!("{} has no effect here", quote(key)));
            }
        }
    }
}

/// Why there is nothing where a reference leads, or nothing that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub place: Place,
    pub text: String,
}

impl Refusal {
    pub fn new(place: &Place, text: impl Into<String>) -> Refusal {
        Refusal { place: place.clone(), text: text.into() }
    }
}

pub(crate) struct Files {
    /// Kept here, as all who make schemas have the files.
    pub patterns: Patterns,
    root: String,
    trees: BTreeMap<String, Result<Value, String>>,
}

impl Files {
    /// Reads the first file and all that it refers to.
    pub fn load(files: &BTreeMap<String, Vec<u8>>, root: &str, notes: &mut Notes) -> Result<Files, OpenApiError> {
        let bytes = files.get(root).ok_or_else(|| OpenApiError::NoFile(quote(root)))?;
        let unreadable = |message| OpenApiError::Unreadable { file: quote(root), message };
        let tree = read(bytes).map_err(unreadable)?;
        let mut loaded = Files { patterns: Patterns::default(), root: root.to_owned(), trees: BTreeMap::new() };
        let mut wanted = Vec::new();
        loaded.add(root, tree.value, tree.lost, &mut wanted, notes);
        let mut total = bytes.len();
        while let Some(path) = wanted.pop() {
            if loaded.trees.contains_key(&path) {
                continue;
            }
            let Some(bytes) = files.get(&path) else { continue };
            total = total.saturating_add(bytes.len());
            if total > MOST_TOTAL || loaded.trees.len() >= MOST_FILES {
                let message =
                    format!("the files together have more than {MOST_TOTAL} bytes, or are more than {MOST_FILES}");
                return Err(unreadable(message));
            }
            match read(bytes) {
                Ok(tree) => loaded.add(&path, tree.value, tree.lost, &mut wanted, notes),
                Err(message) => {
                    loaded.trees.insert(path, Err(message));
                }
            }
        }
        Ok(loaded)
    }

    fn add(
        &mut self,
        path: &str,
        value: Value,
        lost: Vec<(String, String)>,
        wanted: &mut Vec<String>,
        notes: &mut Notes,
    ) {
        for (pointer, text) in lost {
            notes.ignored(&Place { file: self.name(path), pointer }, text);
        }
        mentioned(&value, path, wanted);
        self.trees.insert(path.to_owned(), Ok(value));
    }

    /// How a file is called in places.
    fn name(&self, path: &str) -> Rc<str> {
        if path == self.root { "".into() } else { path.into() }
    }

    pub fn root(&self) -> At<'_> {
        static NULL: Value = Value::Null;
        let value = self.trees.get(&self.root).and_then(|tree| tree.as_ref().ok()).unwrap_or(&NULL);
        At { value, place: Place { file: "".into(), pointer: String::new() } }
    }

    /// Where a reference leads, which stands at that place.
    pub fn follow(&self, reference: &str, from: &Place) -> Result<At<'_>, Refusal> {
        let refuse = |why: String| Refusal::new(from, format!("the reference {} {why}", quote(reference)));
        let base = if from.file.is_empty() { self.root.as_str() } else { &from.file };
        let (path, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let path = local(path, base).map_err(|why| refuse(why.to_owned()))?;
        let tree =
            self.trees.get(&path).ok_or_else(|| refuse(format!("names no file that is there: {}", quote(&path))))?;
        let tree =
            tree.as_ref().map_err(|message| refuse(format!("leads to a file that cannot be read: {message}")))?;
        let pointer = percent_decode_str(fragment).decode_utf8();
        let pointer = pointer.map_err(|_| refuse("is not UTF-8".to_owned()))?;
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return Err(refuse("names an anchor, and only JSON pointers (`#/…`) are followed".to_owned()));
        }
        let value = tree.pointer(&pointer).ok_or_else(|| refuse("leads to nothing".to_owned()))?;
        Ok(At { value, place: Place { file: self.name(&path), pointer: pointer.into_owned() } })
    }

    /// The thing itself, where there may be a reference to it. Siblings of the reference are noted.
    pub fn resolve<'a>(&'a self, at: &At<'a>, notes: &mut Notes) -> Result<At<'a>, Refusal> {
        let mut at = at.clone();
        for _ in 0..MOST_HOPS {
            let Some(reference) = at.get("$ref") else { return Ok(at) };
            let text = reference.value.as_str();
            let text = text.ok_or_else(|| Refusal::new(&reference.place, "a reference is a text"))?;
            at.only(&["$ref"], notes);
            at = self.follow(text, &reference.place)?;
        }
        Err(Refusal::new(&at.place, "references lead to each other and to nothing else"))
    }
}

/// The files that references in here name.
fn mentioned(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get("$ref")
                && let Ok(file) = local(reference.split('#').next().unwrap_or_default(), path)
            {
                found.push(file);
            }
            map.values().for_each(|value| mentioned(value, path, found));
        }
        Value::Array(items) => items.iter().for_each(|value| mentioned(value, path, found)),
        _ => {}
    }
}

/// The file that a reference from `base` names, among the given ones.
fn local(reference: &str, base: &str) -> Result<String, &'static str> {
    if reference.is_empty() {
        return Ok(base.to_owned());
    }
    let decoded = percent_decode_str(reference).decode_utf8().map_err(|_| "is not UTF-8")?;
    if decoded.contains("://") || decoded.starts_with("//") {
        return Err("is remote; nothing is fetched: put the file beside the specification and refer to it there");
    }
    // A colon makes a scheme or a drive of a path elsewhere.
    if decoded.starts_with('/') || decoded.contains(['\\', ':', '\0']) {
        return Err("is no path below the folder of the specification");
    }
    let mut parts: Vec<&str> = base.split('/').collect();
    parts.pop();
    for part in decoded.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop().ok_or("leaves the folder of the specification")?;
            }
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_stay_in_the_folder() {
        for (reference, base, file) in [
            ("", "a.yaml", "a.yaml"),
            ("b.yaml", "a.yaml", "b.yaml"),
            ("./b%20c.yaml", "a.yaml", "b c.yaml"),
            ("../b.yaml", "x/a.yaml", "b.yaml"),
            ("y/../b.yaml", "x/a.yaml", "x/b.yaml"),
        ] {
            assert_eq!(local(reference, base).as_deref(), Ok(file));
        }
        for bad in
            ["../b", "x/../../b", "%2e%2e/b", "/etc/passwd", "http://a/b", "//a/b", "file:b", "C:b", "..\\b", "%ff"]
        {
            assert!(local(bad, "a.yaml").is_err(), "{bad}");
        }
    }
}
