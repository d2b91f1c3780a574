//! Schemas that refer to themselves without going deeper into the value: checking one would never end.

use super::DEFS;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// One of the definitions that are nothing but each other.
pub fn find(defs: &Map<String, Value>) -> Option<String> {
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, def) in defs {
        let mut here = BTreeSet::new();
        collect(def, &mut here);
        open.insert(name, here.len());
        here.into_iter().for_each(|used| users.entry(used).or_default().push(name));
    }
    // What refers to nothing that is open ends, and so does what refers to that.
    let mut ended: Vec<&str> = open.iter().filter(|(_, here)| **here == 0).map(|(name, _)| *name).collect();
    while let Some(name) = ended.pop() {
        open.remove(name);
        for user in users.get(name).into_iter().flatten() {
            if let Some(here) = open.get_mut(user) {
                *here -= 1;
                if *here == 0 {
                    ended.push(user);
                }
            }
        }
    }
    open.into_keys().next().map(str::to_owned)
}

/// The definitions that are looked at where this schema is.
fn collect<'a>(schema: &'a Value, found: &mut BTreeSet<&'a str>) {
    let Value::Object(map) = schema else { return };
    for (key, value) in map {
        match (key.as_str(), value) {
            ("$ref", Value::String(reference)) => found.extend(reference.strip_prefix(DEFS)),
            ("allOf" | "anyOf" | "oneOf", Value::Array(items)) => items.iter().for_each(|item| collect(item, found)),
            ("not" | "if" | "then" | "else", inner) => collect(inner, found),
            ("dependentSchemas", Value::Object(inner)) => inner.values().for_each(|inner| collect(inner, found)),
            _ => {}
        }
    }
}
