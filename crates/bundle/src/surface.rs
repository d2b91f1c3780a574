//! What a server shows, in one order and one spelling.

use crate::canonical::canonical;
use crate::text::{all_hidden_in, is_hidden, message, quote, visible};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

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

    /// The characters that would hide something from people who look at this, with their places. Names, addresses and
    /// keys have none of those at all; other text has them where writing needs them ([`hidden_in`]).
    pub fn hidden(&self) -> Option<Hidden> {
        let mut hidden = Hidden::default();
        hidden.find(&self.0, &mut String::new(), "", false);
        (!hidden.places.is_empty()).then_some(hidden)
    }

    /// The entries of a list by what they are known by, each with its place.
    pub(crate) fn entries(&self, list: &str, id: &str) -> BTreeMap<&str, (usize, &Value)> {
        let list = self.0[list].as_array().map(Vec::as_slice).unwrap_or_default();
        let entries = list.iter().enumerate();
        entries.map(|(index, entry)| (entry[id].as_str().unwrap_or_default(), (index, entry))).collect()
    }
}

/// A text or key with hidden characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenPlace {
    /// The entry of a list that it belongs to, such as "tool `pay`"; empty for what belongs to none.
    pub entry: String,
    /// JSON pointer.
    pub pointer: String,
    /// Each once.
    pub characters: Vec<char>,
}

/// Where characters hide something.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}: remove these characters, or write them out", listed(self))]
pub struct Hidden {
    pub places: Vec<HiddenPlace>,
    /// Places that are not named.
    pub more: usize,
}

/// So many places are named, so many characters of each, and so much of its pointer.
const MOST_PLACES: usize = 20;
const MOST_CHARACTERS: usize = 8;
const LONGEST_POINTER: usize = 300;

fn listed(hidden: &Hidden) -> String {
    let mut places: Vec<_> = hidden.places.iter().map(ToString::to_string).collect();
    if hidden.more > 0 {
        places.push(format!("{} more places", hidden.more));
    }
    format!("hidden characters in {}", places.join("; "))
}

impl fmt::Display for HiddenPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.entry.is_empty() {
            write!(f, "{} at ", self.entry)?;
        }
        let points = self.characters.iter().take(MOST_CHARACTERS).map(|c| format!("U+{:04X}", u32::from(*c)));
        let more = if self.characters.len() > MOST_CHARACTERS { ", …" } else { "" };
        write!(f, "`{}` ({}{more})", self.pointer, points.collect::<Vec<_>>().join(", "))
    }
}

impl Hidden {
    /// What is kept is short, however many there are: a stranger chose all of it.
    fn add(&mut self, pointer: &str, entry: &str, characters: Vec<char>) {
        if characters.is_empty() {
            return;
        }
        if self.places.len() == MOST_PLACES {
            self.more += 1;
            return;
        }
        let pointer = match pointer.char_indices().nth(LONGEST_POINTER) {
            Some((end, _)) => format!("{}…", visible(&pointer[..end])),
            None => visible(pointer),
        };
        self.places.push(HiddenPlace { entry: entry.to_owned(), pointer, characters });
    }

    fn find(&mut self, value: &Value, pointer: &mut String, entry: &str, is_name: bool) {
        let end = pointer.len();
        match value {
            Value::String(text) if is_name => self.add(pointer, entry, hidden(text)),
            Value::String(text) => self.add(pointer, entry, all_hidden_in(text)),
            Value::Array(values) => {
                let list = LISTS.iter().find(|(list, _)| pointer.strip_prefix('/') == Some(list));
                for (index, value) in values.iter().enumerate() {
                    let named = list.map(|(list, id)| called(list, id, value));
                    pointer.push_str(&format!("/{index}"));
                    self.find(value, pointer, named.as_deref().unwrap_or(entry), false);
                    pointer.truncate(end);
                }
            }
            Value::Object(values) => {
                for (key, value) in values {
                    pointer.push_str(&format!("/{}", key.replace('~', "~0").replace('/', "~1")));
                    self.add(pointer, entry, hidden(key));
                    let is_name = matches!(key.as_str(), "name" | "uri" | "uriTemplate" | "mimeType");
                    self.find(value, pointer, entry, is_name);
                    pointer.truncate(end);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn hidden(name: &str) -> Vec<char> {
    name.chars().filter(|c| is_hidden(*c)).collect::<BTreeSet<_>>().into_iter().collect()
}

/// What people call an entry of a list: "tool `pay`".
fn called(list: &str, id: &str, entry: &Value) -> String {
    format!("{} {}", list.trim_end_matches('s'), quote(entry[id].as_str().unwrap_or_default()))
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
            let found = tool(more.clone()).unwrap_or_else(|| panic!("{more}"));
            let [place] = found.places.as_slice() else { panic!("{more}: {found}") };
            assert_eq!(
                (place.pointer.as_str(), place.characters.as_slice()),
                (pointer, [character].as_slice()),
                "{more}"
            );
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
    }

    #[test]
    fn every_field_that_hides_something_is_named() {
        let tools = json!([
            { "name": "pay", "description": "a\u{200b}b\u{202e}c\u{200b}", "title": "t\u{ad}" },
            { "name": "b", "inputSchema": { "properties": { "x\u{200d}": {} } } },
        ]);
        let hidden = Surface::new(json!({ "tools": tools, "instructions": "\u{2066}" })).unwrap().hidden().unwrap();
        assert_eq!(
            hidden.to_string(),
            "hidden characters in `/instructions` (U+2066); tool `b` at `/tools/0/inputSchema/properties/x\\u{200d}` \
             (U+200D); tool `pay` at `/tools/1/description` (U+200B, U+202E); tool `pay` at `/tools/1/title` (U+00AD): \
             remove these characters, or write them out"
        );
    }

    /// A stranger has a long key with many children, each of which hides something.
    #[test]
    fn what_is_said_of_hidden_characters_is_short() {
        let children: Map<String, Value> = (0..5000).map(|n| (format!("{n}\u{200b}"), Value::Null)).collect();
        let tools = json!([{ "name": "a", "inputSchema": { "k".repeat(200_000): children } }]);
        let hidden = Surface::new(json!({ "tools": tools })).unwrap().hidden().unwrap();
        assert_eq!((hidden.places.len(), hidden.more), (20, 4980));
        assert!(hidden.to_string().len() < 20_000);
    }
}
