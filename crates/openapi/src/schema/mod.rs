//! Schemas of OpenAPI become schemas of JSON Schema 2020-12 that stand for themselves.
//!
//! Only what is known to be sound goes over: a host refuses a whole server for one bad keyword. Every target of a
//! reference becomes an entry of `$defs`, so recursion stays recursion and nothing multiplies.

mod endless;
mod keyword;

pub(crate) use keyword::Patterns;

use crate::files::{At, Files, Place, Refusal};
use crate::report::Notes;
use crate::text::{Names, cut, fit, is_short, quote};
use keyword::{Kind, kind};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};

/// A host takes a few times as many.
const MOST_PARTS: usize = 5_000;
const MOST_KEYWORDS: usize = 200;
/// Where a schema keeps what it refers to.
const DEFS: &str = "#/$defs/";
const MOST_DESCRIPTION: usize = 1_000;
const MOST_EXAMPLE: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// What is only read is left out.
    In,
    /// What is only written is left out.
    Out,
}

/// One schema in the making, with its `$defs`.
pub(crate) struct Maker<'a, 'n> {
    pub files: &'a Files,
    pub notes: &'n mut Notes,
    way: Way,
    /// OpenAPI 3.0, where a reference has no siblings.
    old: bool,
    parts: usize,
    names: BTreeMap<Place, String>,
    taken: Names,
    queue: VecDeque<(String, At<'a>)>,
    defs: Map<String, Value>,
}

impl<'a, 'n> Maker<'a, 'n> {
    pub fn new(files: &'a Files, notes: &'n mut Notes, way: Way, old: bool) -> Maker<'a, 'n> {
        let (names, taken, queue) = (BTreeMap::new(), Names::default(), VecDeque::new());
        Maker { files, notes, way, old, parts: 0, names, taken, queue, defs: Map::new() }
    }

    /// The schema, whose references are to the `$defs` of the same maker.
    pub fn schema(&mut self, at: &At<'a>) -> Result<Value, Refusal> {
        let schema = self.convert(at)?;
        while let Some((name, at)) = self.queue.pop_front() {
            let def = self.convert(&at)?;
            self.defs.insert(name, def);
        }
        Ok(schema)
    }

    /// What all schemas of this maker refer to.
    pub fn defs(self, at: &Place) -> Result<Map<String, Value>, Refusal> {
        match endless::find(&self.defs) {
            Some(name) => Err(Refusal::new(at, format!("the schema {} is nothing but itself", quote(&name)))),
            None => Ok(self.defs),
        }
    }

    /// Follows references at the top, and gives what is there.
    pub fn top(&mut self, at: &At<'a>) -> Result<At<'a>, Refusal> {
        let mut at = at.clone();
        for _ in 0..32 {
            match at.get("$ref") {
                Some(reference) if self.old || at.value.as_object().is_some_and(|map| map.len() == 1) => {
                    let text = reference.value.as_str().unwrap_or_default();
                    at = self.files.follow(text, &reference.place)?;
                }
                _ => break,
            }
        }
        Ok(at)
    }

    fn convert(&mut self, at: &At<'a>) -> Result<Value, Refusal> {
        self.parts += 1;
        if self.parts > MOST_PARTS {
            return Err(Refusal::new(&at.place, format!("the schema has more than {MOST_PARTS} parts")));
        }
        let map = match at.value {
            Value::Object(map) if map.len() > MOST_KEYWORDS => {
                return Err(Refusal::new(&at.place, format!("the schema has more than {MOST_KEYWORDS} keywords")));
            }
            Value::Object(map) => map,
            Value::Bool(any) => return Ok((*any).into()),
            _ => {
                self.notes.ignored(&at.place, "a schema is an object; any value is taken instead");
                return Ok(json!({}));
            }
        };
        let mut schema = Map::new();
        if let Some(reference) = at.get("$ref") {
            let text = reference.value.as_str();
            let text = text.ok_or_else(|| Refusal::new(&reference.place, "a reference is a text"))?;
            schema.insert("$ref".to_owned(), self.refer(text, &reference.place)?.into());
            if self.old {
                at.only(&["$ref"], self.notes);
                return Ok(Value::Object(schema));
            }
        }
        for (key, value) in at.entries().filter(|(key, _)| *key != "$ref") {
            self.keyword(key, &value, (map, &at.place), &mut schema)?;
        }
        self.properties(at, &mut schema);
        if at.is("nullable") {
            return Ok(nullable(schema));
        }
        Ok(Value::Object(schema))
    }

    fn refer(&mut self, reference: &str, from: &Place) -> Result<String, Refusal> {
        let target = self.files.follow(reference, from)?;
        if let Some(name) = self.names.get(&target.place) {
            return Ok(format!("{DEFS}{name}"));
        }
        let wanted = match fit(&target.place.name()) {
            name if name.is_empty() => "schema".to_owned(),
            name => name,
        };
        let name = self.taken.claim(&wanted);
        self.names.insert(target.place.clone(), name.clone());
        self.queue.push_back((name.clone(), target));
        Ok(format!("{DEFS}{name}"))
    }

    fn keyword(
        &mut self,
        key: &str,
        at: &At<'a>,
        (whole, holder): (&Map<String, Value>, &Place),
        schema: &mut Map<String, Value>,
    ) -> Result<(), Refusal> {
        let mut put = |key: &str, value: Value| {
            schema.insert(key.to_owned(), value);
        };
        match kind(key) {
            Kind::Schema => put(key, self.convert(at)?),
            Kind::Schemas if at.value.as_array().is_some_and(|items| !items.is_empty()) => {
                let items: Result<Vec<_>, _> = at.items().map(|item| self.convert(&item)).collect();
                put(key, items?.into());
            }
            Kind::Named if at.value.is_object() => {
                let mut map = Map::new();
                for (name, inner) in at.entries() {
                    if key == "patternProperties" && !self.files.patterns.fit(name) {
                        self.notes.ignored(&inner.place, "the expression is not one that runs in linear time");
                        continue;
                    }
                    map.insert(name.to_owned(), self.convert(&inner)?);
                }
                put(key, map.into());
            }
            Kind::Type => match keyword::types(at.value) {
                (Some(types), lost) => {
                    if lost {
                        self.notes.changed(&at.place, format!("{} is read as {types}", quote(&at.value.to_string())));
                    }
                    put(key, types);
                }
                (None, _) => self.notes.ignored(&at.place, "this is no type of JSON; any is taken"),
            },
            Kind::Bound => match (at.value, key) {
                (Value::Number(_), _) => {
                    // A bound of 3.0 may be made exclusive by a flag beside it.
                    let exclusive = if key == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" };
                    let flagged = matches!(key, "minimum" | "maximum") && whole.get(exclusive) == Some(&true.into());
                    put(if flagged { exclusive } else { key }, at.value.clone());
                }
                (Value::Bool(_), "exclusiveMinimum" | "exclusiveMaximum") => {}
                _ => self.wrong(at),
            },
            Kind::Text if key == "description" && at.value.is_string() => {
                let (text, shortened) = cut(at.value.as_str().unwrap_or_default(), MOST_DESCRIPTION);
                if shortened {
                    self.notes.changed(&at.place, format!("cut at {MOST_DESCRIPTION} characters"));
                }
                put(key, text.into());
            }
            Kind::Example => {
                if key == "examples" && !at.value.is_array() {
                    self.wrong(at);
                } else if !is_short(at.value, MOST_EXAMPLE) {
                    self.notes.ignored(&at.place, format!("the example has more than {MOST_EXAMPLE} bytes"));
                } else if key == "examples" {
                    put(key, at.value.clone());
                } else if !whole.contains_key("examples") {
                    put("examples", json!([at.value]));
                }
            }
            Kind::Refused => return Err(Refusal::new(&at.place, format!("{} is not supported", quote(key)))),
            Kind::Elsewhere => {}
            Kind::Unknown if key.starts_with("x-") => self.notes.extension(holder, key),
            Kind::Unknown => self.notes.ignored(&at.place, format!("{} has no effect here", quote(key))),
            plain => match keyword::plain(plain, key, at.value, &self.files.patterns) {
                Some(value) => put(key, value),
                None if key == "pattern" => {
                    self.notes.ignored(&at.place, "the expression is not one that runs in linear time");
                }
                None => self.wrong(at),
            },
        }
        Ok(())
    }

    fn wrong(&mut self, at: &At<'_>) {
        self.notes.ignored(&at.place, "this value cannot stand here");
    }

    /// Takes out what goes the other way.
    fn properties(&mut self, at: &At<'a>, schema: &mut Map<String, Value>) {
        let (flag, text) = match self.way {
            Way::In => ("readOnly", "only read, so no input has it"),
            Way::Out => ("writeOnly", "only written, so no output has it"),
        };
        let properties = at.get("properties");
        let gone: BTreeMap<&str, At<'_>> =
            properties.iter().flat_map(At::entries).filter(|(_, property)| property.is(flag)).collect();
        for property in gone.values() {
            self.notes.changed(&property.place, text);
        }
        if let Some(Value::Object(map)) = schema.get_mut("properties") {
            map.retain(|name, _| !gone.contains_key(name.as_str()));
        }
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.retain(|name| !gone.contains_key(name.as_str().unwrap_or_default()));
        }
    }
}

fn nullable(mut schema: Map<String, Value>) -> Value {
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    let composed = ["$ref", "allOf", "anyOf", "oneOf", "not"].iter().any(|key| schema.contains_key(*key));
    match schema.get_mut("type") {
        Some(Value::Array(types)) if types.contains(&"null".into()) => {}
        Some(Value::Array(types)) => types.push("null".into()),
        Some(one) => *one = json!([one.take(), "null"]),
        None if composed => return json!({ "anyOf": [schema, { "type": "null" }] }),
        None => {}
    }
    Value::Object(schema)
}

/// Replaces what recurs by anything at all, for a host that finds the recursion too costly.
pub(crate) fn loosened(schema: &Value) -> Value {
    fn walk(value: &mut Value) {
        match value {
            Value::Object(map) => {
                if map.get("$ref").is_some_and(|target| target.as_str().is_some_and(|text| text.starts_with(DEFS))) {
                    map.retain(|key, _| key == "description");
                }
                map.remove("$defs");
                map.values_mut().for_each(walk);
            }
            Value::Array(items) => items.iter_mut().for_each(walk),
            _ => {}
        }
    }
    let mut schema = schema.clone();
    walk(&mut schema);
    schema
}
