//! What a server shows, in one order and one spelling.

use crate::canonical::canonical;
use crate::text::{message, quote};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The lists of a surface, and what an entry of each is known by.
pub(crate) const LISTS: [(&str, &str); 4] =
    [("tools", "name"), ("resources", "uri"), ("templates", "uriTemplate"), ("prompts", "name")];

/// Tools, resources, templates and prompts as the code showed them, each list in the order of its names or addresses;
/// and name, version, instructions and whatever else it says of itself. Two surfaces are equal exactly when their
/// canonical JSON is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Surface(Value);

/// Why something is no surface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SurfaceError {
    #[error("a surface is an object")]
    NoObject,
    #[error("`{0}` of a surface is a list of objects")]
    NoList(&'static str),
    #[error("an entry of `{list}` has no text as its `{id}`")]
    NoId { list: &'static str, id: &'static str },
    #[error("`{list}` has {entry} twice")]
    Twice { list: &'static str, entry: String },
    #[error("`{0}` of a surface is text")]
    NoText(&'static str),
    #[error("templates stand both in `templates` and in `resourceTemplates`")]
    TwoLists,
    #[error("the surface cannot be read again: {0}")]
    Unreadable(String),
}

impl Surface {
    /// Takes a surface as the worker gives it, where templates are `resourceTemplates`, or as it stands in a lock.
    pub fn new(value: Value) -> Result<Surface, SurfaceError> {
        let Value::Object(mut map) = value else { return Err(SurfaceError::NoObject) };
        if let Some(templates) = map.remove("resourceTemplates")
            && map.insert("templates".to_owned(), templates).is_some()
        {
            return Err(SurfaceError::TwoLists);
        }
        // What is null is not there.
        map.retain(|_, value| !value.is_null());
        for text in ["name", "version", "instructions"] {
            if map.get(text).is_some_and(|value| !value.is_string()) {
                return Err(SurfaceError::NoText(text));
            }
        }
        for (list, id) in LISTS {
            sort(&mut map, list, id)?;
        }
        // Numbers become what they are when they are read from the canonical form.
        let value = serde_json::from_slice(&canonical(&Value::Object(map)));
        value.map(Surface).map_err(|error| SurfaceError::Unreadable(message(&error.to_string())))
    }

    pub fn value(&self) -> &Value {
        &self.0
    }

    /// The entries of a list by what they are known by, each with its place.
    pub(crate) fn entries(&self, list: &str, id: &str) -> BTreeMap<&str, (usize, &Value)> {
        let list = self.0[list].as_array().map(Vec::as_slice).unwrap_or_default();
        let entries = list.iter().enumerate();
        entries.map(|(index, entry)| (entry[id].as_str().unwrap_or_default(), (index, entry))).collect()
    }
}

fn sort(map: &mut Map<String, Value>, list: &'static str, id: &'static str) -> Result<(), SurfaceError> {
    let entries = map.entry(list).or_insert_with(|| Value::Array(Vec::new()));
    let Value::Array(entries) = entries else { return Err(SurfaceError::NoList(list)) };
    let mut seen = BTreeSet::new();
    for entry in entries.iter() {
        let entry = entry.as_object().ok_or(SurfaceError::NoList(list))?;
        let known_by = entry.get(id).and_then(Value::as_str).ok_or(SurfaceError::NoId { list, id })?;
        if !seen.insert(known_by) {
            return Err(SurfaceError::Twice { list, entry: quote(known_by) });
        }
    }
    entries.sort_by(|a, b| a[id].as_str().cmp(&b[id].as_str()));
    Ok(())
}

impl TryFrom<Value> for Surface {
    type Error = SurfaceError;

    fn try_from(value: Value) -> Result<Surface, SurfaceError> {
        Surface::new(value)
    }
}

impl From<Surface> for Value {
    fn from(surface: Surface) -> Value {
        surface.0
    }
}
