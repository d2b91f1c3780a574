//! What a server shows, in one order and one spelling.

use crate::canonical::canonical;
use crate::text::{hidden_in, is_hidden, message, quote, visible};
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

    /// The first character that would hide something from people who look at this, with its place. Names, addresses and
    /// keys have none of those at all; other text has them where writing needs them ([`hidden_in`]).
    pub fn hidden(&self) -> Option<Hidden> {
        find(&self.0, &mut String::new(), false)
    }

    /// The entries of a list by what they are known by, each with its place.
    pub(crate) fn entries(&self, list: &str, id: &str) -> BTreeMap<&str, (usize, &Value)> {
        let list = self.0[list].as_array().map(Vec::as_slice).unwrap_or_default();
        let entries = list.iter().enumerate();
        entries.map(|(index, entry)| (entry[id].as_str().unwrap_or_default(), (index, entry))).collect()
    }
}

/// A hidden character, and the JSON pointer to the text or key that it is in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pointer}` has the hidden character U+{:04X}: write it without, or spell it out", u32::from(*.character))]
pub struct Hidden {
    pub pointer: String,
    pub character: char,
}

fn find(value: &Value, pointer: &mut String, is_name: bool) -> Option<Hidden> {
    let end = pointer.len();
    let found = |pointer: &str, character| Hidden { pointer: visible(pointer), character };
    match value {
        Value::String(text) if is_name => text.chars().find(|c| is_hidden(*c)).map(|c| found(pointer, c)),
        Value::String(text) => hidden_in(text).map(|c| found(pointer, c)),
        Value::Array(values) => values.iter().enumerate().find_map(|(index, value)| {
            pointer.truncate(end);
            pointer.push_str(&format!("/{index}"));
            find(value, pointer, false)
        }),
        Value::Object(values) => values.iter().find_map(|(key, value)| {
            pointer.truncate(end);
            pointer.push_str(&format!("/{}", key.replace('~', "~0").replace('/', "~1")));
            let hidden = key.chars().find(|c| is_hidden(*c)).map(|c| found(pointer, c));
            hidden.or_else(|| find(value, pointer, matches!(key.as_str(), "name" | "uri" | "uriTemplate" | "mimeType")))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hidden_characters_are_found_where_they_are() {
        let tool = |more: Value| {
            let mut tool =
                json!({ "name": "b", "description": "two\nlines ❤\u{fe0f}", "inputSchema": { "type": "object" } });
            tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            Surface::new(json!({ "tools": [tool, { "name": "a" }] })).unwrap().hidden()
        };
        assert_eq!(tool(json!({})), None);
        let schema = |property: Value| json!({ "inputSchema": { "properties": { "x/y": property } } });
        for (more, pointer, character) in [
            (json!({ "description": "pay\u{200b}pal" }), "/tools/1/description", '\u{200b}'),
            (json!({ "name": "b\u{fe0f}" }), "/tools/1/name", '\u{fe0f}'),
            (json!({ "name": "b\n" }), "/tools/1/name", '\n'),
            (json!({ "title": "\u{202e}x" }), "/tools/1/title", '\u{202e}'),
            (
                schema(json!({ "description": "\u{e0041}" })),
                "/tools/1/inputSchema/properties/x~1y/description",
                '\u{e0041}',
            ),
            (schema(json!({ "enum": ["a", "b\u{ad}"] })), "/tools/1/inputSchema/properties/x~1y/enum/1", '\u{ad}'),
            (schema(json!({ "k\u{200d}": 1 })), "/tools/1/inputSchema/properties/x~1y/k\\u{200d}", '\u{200d}'),
        ] {
            assert_eq!(tool(more.clone()), Some(Hidden { pointer: pointer.to_owned(), character }), "{more}");
        }
        for surface in [
            json!({ "instructions": "a\u{2066}" }),
            json!({ "name": "n\u{a0}" }),
            json!({ "resources": [{ "uri": "r://a\u{200b}" }] }),
            json!({ "resourceTemplates": [{ "uriTemplate": "r://{a}\u{200b}" }] }),
            json!({ "prompts": [{ "name": "p", "arguments": [{ "name": "a\u{200b}" }] }] }),
        ] {
            assert!(Surface::new(surface.clone()).unwrap().hidden().is_some(), "{surface}");
        }
        let message = Hidden { pointer: "/tools/0/name".to_owned(), character: '\u{200b}' }.to_string();
        assert!(message.starts_with("`/tools/0/name` has the hidden character U+200B"), "{message}");
    }
}
