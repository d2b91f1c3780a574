//! What checking a value against a schema can cost, before anybody checks one.
//!
//! A schema of a stranger may make a validator work for years: `anyOf` of two references to an `anyOf` of two references,
//! thirty times, is a small text and 2³⁰ checks of one value. So the number of times that any single place of a value can
//! be looked at is computed from the schema alone, and schemas where it is large are refused.

use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// How often one place of a value may be looked at.
const MOST_VISITS: f64 = 10_000.0;
const MOST_NODES: usize = 20_000;
/// Values are not deeper than arguments may be, and results are cut by the parser at a little more.
const DEPTH: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TooCostly {
    #[error("it has more than {MOST_NODES} parts")]
    Large,
    #[error("`{0}` refers to something outside this schema")]
    Elsewhere(String),
    #[error("`{0}` refers to itself without going deeper into the value")]
    Endless(String),
    #[error("checking one value could take more than {MOST_VISITS} steps for a single place in it")]
    Branching,
    #[error("`$id` below the top is not supported")]
    NestedId,
}

/// What one part of the schema makes a validator look at next.
#[derive(Default)]
struct Node {
    pointer: String,
    /// At the same place of the value.
    here: Vec<usize>,
    /// At one named child.
    named: BTreeMap<String, Vec<usize>>,
    /// At any child.
    below: Vec<usize>,
    /// Whether the parts that look at the same place are looked at again to learn what they left over.
    twice: bool,
}

struct Graph<'a> {
    root: &'a Value,
    own_id: Option<&'a str>,
    by_pointer: HashMap<String, usize>,
    anchors: HashMap<&'a str, String>,
    nodes: Vec<Node>,
}

pub fn check(schema: &Value) -> Result<(), TooCostly> {
    let mut graph = Graph {
        root: schema,
        own_id: schema.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#')),
        by_pointer: HashMap::new(),
        anchors: HashMap::new(),
        nodes: Vec::new(),
    };
    find_anchors(schema, String::new(), &mut graph.anchors, 0)?;
    graph.add(schema, String::new())?;
    graph.weigh()
}

fn find_anchors<'a>(
    value: &'a Value,
    at: String,
    found: &mut HashMap<&'a str, String>,
    depth: usize,
) -> Result<(), TooCostly> {
    if depth > DEPTH {
        return Err(TooCostly::Large);
    }
    match value {
        Value::Object(map) => {
            if depth > 0 && map.get("$id").is_some_and(Value::is_string) {
                return Err(TooCostly::NestedId);
            }
            for key in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = map.get(key).and_then(Value::as_str) {
                    found.insert(name, at.clone());
                }
            }
            for (key, inner) in map {
                find_anchors(inner, format!("{at}/{}", escape(key)), found, depth + 1)?;
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                find_anchors(inner, format!("{at}/{index}"), found, depth + 1)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

impl<'a> Graph<'a> {
    fn add(&mut self, schema: &'a Value, pointer: String) -> Result<usize, TooCostly> {
        if let Some(known) = self.by_pointer.get(&pointer) {
            return Ok(*known);
        }
        if self.nodes.len() >= MOST_NODES {
            return Err(TooCostly::Large);
        }
        let index = self.nodes.len();
        self.by_pointer.insert(pointer.clone(), index);
        self.nodes.push(Node { pointer: pointer.clone(), ..Node::default() });
        let Value::Object(map) = schema else { return Ok(index) };
        let mut node = Node { pointer: pointer.clone(), ..Node::default() };
        for (key, value) in map {
            let at = || format!("{pointer}/{}", escape(key));
            match key.as_str() {
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    if let Some(reference) = value.as_str() {
                        node.here.push(self.follow(reference)?);
                    }
                }
                "allOf" | "anyOf" | "oneOf" => node.here.extend(self.add_each(value, &at())?),
                "not" | "if" | "then" | "else" => node.here.push(self.add(value, at())?),
                "dependentSchemas" | "dependencies" => node.here.extend(self.add_each(value, &at())?),
                "properties" => {
                    for (name, inner) in value.as_object().into_iter().flatten() {
                        let child = self.add(inner, format!("{}/{}", at(), escape(name)))?;
                        node.named.entry(name.clone()).or_default().push(child);
                    }
                }
                "patternProperties" | "prefixItems" => node.below.extend(self.add_each(value, &at())?),
                "items" if value.is_array() => node.below.extend(self.add_each(value, &at())?),
                "items"
                | "additionalItems"
                | "additionalProperties"
                | "propertyNames"
                | "contains"
                | "contentSchema" => {
                    node.below.push(self.add(value, at())?);
                }
                "unevaluatedItems" | "unevaluatedProperties" => {
                    node.twice = true;
                    node.below.push(self.add(value, at())?);
                }
                _ => {}
            }
        }
        self.nodes[index] = node;
        Ok(index)
    }

    fn add_each(&mut self, value: &'a Value, at: &str) -> Result<Vec<usize>, TooCostly> {
        match value {
            Value::Array(items) => {
                items.iter().enumerate().map(|(index, inner)| self.add(inner, format!("{at}/{index}"))).collect()
            }
            Value::Object(map) => {
                map.iter().map(|(key, inner)| self.add(inner, format!("{at}/{}", escape(key)))).collect()
            }
            _ => Ok(Vec::new()),
        }
    }

    fn follow(&mut self, reference: &str) -> Result<usize, TooCostly> {
        let elsewhere = || TooCostly::Elsewhere(reference.chars().take(200).collect());
        let own = self.own_id.and_then(|id| reference.strip_prefix(id)).unwrap_or(reference);
        let fragment = match own {
            "" => "",
            text => text.strip_prefix('#').ok_or_else(elsewhere)?,
        };
        let decoded = percent_encoding::percent_decode_str(fragment).decode_utf8().map_err(|_| elsewhere())?;
        let pointer = match decoded.as_ref() {
            "" => String::new(),
            pointer if pointer.starts_with('/') => pointer.to_owned(),
            anchor => self.anchors.get(anchor).cloned().ok_or_else(elsewhere)?,
        };
        let target = self.root.pointer(&pointer).ok_or_else(elsewhere)?;
        self.add(target, pointer)
    }

    fn weigh(&self) -> Result<(), TooCostly> {
        let mut here: Vec<Option<HashMap<usize, f64>>> = vec![None; self.nodes.len()];
        let mut open = vec![false; self.nodes.len()];
        for index in 0..self.nodes.len() {
            self.spread(index, &mut here, &mut open, 0)?;
        }
        let here: Vec<HashMap<usize, f64>> = here.into_iter().map(Option::unwrap_or_default).collect();
        // Visits of the deepest place, for values of one more level in every turn.
        let mut visits: Vec<f64> = here.iter().map(|spread| spread.values().sum()).collect();
        for _ in 0..DEPTH {
            if visits[0] > MOST_VISITS {
                return Err(TooCostly::Branching);
            }
            visits = here.iter().map(|spread| self.deeper(spread, &visits)).collect();
        }
        Ok(())
    }

    /// Everything that is looked at where this one is, and how often.
    fn spread(
        &self,
        index: usize,
        done: &mut Vec<Option<HashMap<usize, f64>>>,
        open: &mut Vec<bool>,
        depth: usize,
    ) -> Result<(), TooCostly> {
        if done[index].is_some() {
            return Ok(());
        }
        let node = &self.nodes[index];
        if open[index] || depth > 500 {
            let shown = if node.pointer.is_empty() { "#" } else { &node.pointer };
            return Err(TooCostly::Endless(shown.to_owned()));
        }
        open[index] = true;
        let factor = if node.twice { 3.0 } else { 1.0 };
        let mut all = HashMap::from([(index, 1.0)]);
        for next in &node.here {
            self.spread(*next, done, open, depth + 1)?;
            for (inner, times) in done[*next].iter().flatten() {
                *all.entry(*inner).or_default() += times * factor;
            }
        }
        if all.values().sum::<f64>() > MOST_VISITS {
            return Err(TooCostly::Branching);
        }
        open[index] = false;
        done[index] = Some(all);
        Ok(())
    }

    fn deeper(&self, spread: &HashMap<usize, f64>, visits: &[f64]) -> f64 {
        let mut any = 0.0;
        let mut named: HashMap<&str, f64> = HashMap::new();
        for (index, times) in spread {
            let node = &self.nodes[*index];
            any += times * node.below.iter().map(|child| visits[*child]).sum::<f64>();
            for (name, children) in &node.named {
                *named.entry(name).or_default() += times * children.iter().map(|child| visits[*child]).sum::<f64>();
            }
        }
        any + named.into_values().fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ordinary_schemas_pass() {
        for schema in [
            json!(true),
            json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "items": { "type": "number" } } } }),
            json!({ "$defs": { "a": { "type": "number" } }, "properties": { "x": { "$ref": "#/$defs/a" }, "y": { "$ref": "#/$defs/a" } } }),
            json!({ "$defs": { "tree": { "$anchor": "t", "properties": { "kids": { "items": { "$ref": "#t" } } } } }, "$ref": "#/$defs/tree" }),
            json!({ "$id": "https://x.example/s", "$ref": "https://x.example/s#/$defs/a", "$defs": { "a": {} } }),
            json!({ "properties": (0..500).map(|n| (format!("p{n}"), json!({ "properties": (0..20).map(|m| (format!("q{m}"), json!({}))).collect::<serde_json::Map<_, _>>() }))).collect::<serde_json::Map<_, _>>() }),
        ] {
            assert_eq!(check(&schema), Ok(()), "{schema}");
        }
    }

    #[test]
    fn doubling_is_found_without_doubling() {
        let mut defs = serde_json::Map::new();
        for n in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
            defs.insert(format!("d{n}"), json!({ "anyOf": [next, next] }));
        }
        defs.insert("d40".to_owned(), json!({ "type": "number" }));
        assert_eq!(check(&json!({ "$ref": "#/$defs/d0", "$defs": defs })), Err(TooCostly::Branching));
    }

    #[test]
    fn doubling_with_each_level_of_the_value_is_found_too() {
        let again = json!({ "properties": { "x": { "$ref": "#" } } });
        assert_eq!(check(&json!({ "anyOf": [again, again] })), Err(TooCostly::Branching));
        let items = json!({ "items": { "$ref": "#" } });
        assert_eq!(check(&json!({ "allOf": [items, items] })), Err(TooCostly::Branching));
    }

    #[test]
    fn what_cannot_be_judged_is_refused() {
        assert!(matches!(check(&json!({ "$ref": "#" })), Err(TooCostly::Endless(_))));
        assert!(matches!(check(&json!({ "allOf": [{ "$ref": "#" }] })), Err(TooCostly::Endless(_))));
        assert!(matches!(check(&json!({ "$ref": "https://elsewhere.example/s" })), Err(TooCostly::Elsewhere(_))));
        assert!(matches!(check(&json!({ "$ref": "#/nowhere" })), Err(TooCostly::Elsewhere(_))));
        assert_eq!(check(&json!({ "properties": { "a": { "$id": "x" } } })), Err(TooCostly::NestedId));
    }
}
