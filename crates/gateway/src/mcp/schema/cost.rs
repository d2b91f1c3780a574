//! What checking a value against a schema can cost, before anybody checks one.
//!
//! A schema of a stranger may make a validator work for years: `anyOf` of two references to an `anyOf` of two references,
//! thirty times, is a small text and 2³⁰ checks of one value. So the number of times that any single place of a value can
//! be looked at is computed from the schema alone, and schemas where it is large are refused.

use serde_json::{Map, Value};
use std::collections::HashMap;
use std::rc::Rc;

/// How often one place of a value may be looked at.
const MOST_VISITS: f64 = 10_000.0;
const MOST_NODES: usize = 20_000;
/// As it is spelled in a pointer. Whatever lies below a key repeats it.
const LONGEST_KEY: usize = 1 << 10;
/// Of all pointers together: a validator keeps at least one for every part.
const MOST_POINTER_BYTES: usize = 4 << 20;
/// What all parts together lead to, at their own place and one below it. This is what the check itself costs.
const MOST_STEPS: usize = 1_000_000;
/// Values are not deeper than arguments may be, and results are cut by the parser at a little more.
const DEPTH: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TooCostly {
    #[error("it has more than {MOST_NODES} parts")]
    Large,
    #[error("a key that leads to one of its parts has more than {LONGEST_KEY} bytes")]
    LongKey,
    #[error("the pointers to its parts have more than {MOST_POINTER_BYTES} bytes together")]
    LongPointers,
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
struct Node {
    pointer: Rc<str>,
    /// At the same place of the value.
    here: Vec<usize>,
    /// At one named child: the number of the name, and the part.
    named: Vec<(usize, usize)>,
    /// At any child.
    below: Vec<usize>,
    /// Whether the parts that look at the same place are looked at again to learn what they left over.
    twice: bool,
}

struct Graph<'a> {
    root: &'a Value,
    own_id: Option<&'a str>,
    by_pointer: HashMap<Rc<str>, usize>,
    anchors: HashMap<&'a str, Rc<str>>,
    /// Numbers for the names of properties.
    names: HashMap<&'a str, usize>,
    nodes: Vec<Node>,
    /// Known, but not looked into yet.
    waiting: Vec<(usize, &'a Map<String, Value>)>,
    pointer_bytes: usize,
}

/// Whether it can be compiled and asked at a bounded cost; gives the bytes of all pointers to its parts.
pub fn measure(schema: &Value) -> Result<usize, TooCostly> {
    let mut graph = Graph {
        root: schema,
        own_id: schema.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#')),
        by_pointer: HashMap::new(),
        anchors: HashMap::new(),
        names: HashMap::new(),
        nodes: Vec::new(),
        waiting: Vec::new(),
        pointer_bytes: 0,
    };
    graph.find_anchors(schema, &mut String::new(), 0)?;
    graph.add(schema, String::new())?;
    // Not by recursion: a chain of references may be longer than any stack.
    while let Some((index, map)) = graph.waiting.pop() {
        graph.look_into(index, map)?;
    }
    graph.weigh()?;
    Ok(graph.pointer_bytes)
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

impl<'a> Graph<'a> {
    /// Data is searched as well, where keys may be long: the way is one text, and only copied for an anchor.
    fn find_anchors(&mut self, value: &'a Value, at: &mut String, depth: usize) -> Result<(), TooCostly> {
        if depth > DEPTH {
            return Err(TooCostly::Large);
        }
        let end = at.len();
        match value {
            Value::Object(map) => {
                if depth > 0 && map.get("$id").is_some_and(Value::is_string) {
                    return Err(TooCostly::NestedId);
                }
                for key in ["$anchor", "$dynamicAnchor"] {
                    if let Some(name) = map.get(key).and_then(Value::as_str) {
                        self.spell(at)?;
                        self.anchors.insert(name, at.as_str().into());
                    }
                }
                for (key, inner) in map {
                    at.push('/');
                    at.push_str(&escape(key));
                    self.find_anchors(inner, at, depth + 1)?;
                    at.truncate(end);
                }
            }
            Value::Array(items) => {
                for (index, inner) in items.iter().enumerate() {
                    at.push('/');
                    at.push_str(&index.to_string());
                    self.find_anchors(inner, at, depth + 1)?;
                    at.truncate(end);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Pointers count whenever they are spelled out, for an anchor is a short name of a long one.
    fn spell(&mut self, pointer: &str) -> Result<(), TooCostly> {
        if pointer.split('/').any(|key| key.len() > LONGEST_KEY) {
            return Err(TooCostly::LongKey);
        }
        self.pointer_bytes += pointer.len();
        if self.pointer_bytes > MOST_POINTER_BYTES { Err(TooCostly::LongPointers) } else { Ok(()) }
    }

    fn add(&mut self, schema: &'a Value, pointer: String) -> Result<usize, TooCostly> {
        self.spell(&pointer)?;
        if let Some(known) = self.by_pointer.get(pointer.as_str()) {
            return Ok(*known);
        }
        if self.nodes.len() >= MOST_NODES {
            return Err(TooCostly::Large);
        }
        let (index, pointer) = (self.nodes.len(), Rc::<str>::from(pointer));
        self.by_pointer.insert(pointer.clone(), index);
        self.nodes.push(Node { pointer, here: Vec::new(), named: Vec::new(), below: Vec::new(), twice: false });
        self.waiting.extend(schema.as_object().map(|map| (index, map)));
        Ok(index)
    }

    fn look_into(&mut self, index: usize, map: &'a Map<String, Value>) -> Result<(), TooCostly> {
        let pointer = self.nodes[index].pointer.clone();
        let (mut here, mut named, mut below, mut twice) = (Vec::new(), Vec::new(), Vec::new(), false);
        for (key, value) in map {
            let at = || format!("{pointer}/{}", escape(key));
            match key.as_str() {
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    if let Some(reference) = value.as_str() {
                        here.push(self.follow(reference)?);
                    }
                }
                "allOf" | "anyOf" | "oneOf" => here.extend(self.add_each(value, &at())?),
                "not" | "if" | "then" | "else" => here.push(self.add(value, at())?),
                "dependentSchemas" | "dependencies" => here.extend(self.add_each(value, &at())?),
                "properties" => {
                    for (name, inner) in value.as_object().into_iter().flatten() {
                        let child = self.add(inner, format!("{}/{}", at(), escape(name)))?;
                        let next = self.names.len();
                        named.push((*self.names.entry(name).or_insert(next), child));
                    }
                }
                "patternProperties" | "prefixItems" => below.extend(self.add_each(value, &at())?),
                "items" if value.is_array() => below.extend(self.add_each(value, &at())?),
                "items"
                | "additionalItems"
                | "additionalProperties"
                | "propertyNames"
                | "contains"
                | "contentSchema" => {
                    below.push(self.add(value, at())?);
                }
                "unevaluatedItems" | "unevaluatedProperties" => {
                    twice = true;
                    below.push(self.add(value, at())?);
                }
                _ => {}
            }
        }
        self.nodes[index] = Node { pointer, here, named, below, twice };
        Ok(())
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
            anchor => self.anchors.get(anchor).ok_or_else(elsewhere)?.to_string(),
        };
        let target = self.root.pointer(&pointer).ok_or_else(elsewhere)?;
        self.add(target, pointer)
    }

    fn weigh(&self) -> Result<(), TooCostly> {
        let mut spreads = Spreads::new(self.nodes.len());
        for index in 0..self.nodes.len() {
            self.spread(index, &mut spreads, 0)?;
        }
        // Visits of the deepest place, for values of one more level in every turn.
        let here = spreads.done.into_iter().map(Option::unwrap_or_default);
        let (mut visits, steps): (Vec<f64>, Vec<Steps>) =
            here.map(|spread| (spread.values().sum::<f64>(), self.steps(&spread))).unzip();
        for _ in 0..DEPTH {
            if visits[0] > MOST_VISITS {
                return Err(TooCostly::Branching);
            }
            let deeper: Vec<f64> = steps.iter().map(|steps| steps.visits(&visits)).collect();
            // Nothing is left to visit, or the same for ever.
            if deeper == visits {
                break;
            }
            visits = deeper;
        }
        Ok(())
    }

    /// Everything that is looked at where this one is, and how often.
    fn spread(&self, index: usize, spreads: &mut Spreads, depth: usize) -> Result<(), TooCostly> {
        if spreads.done[index].is_some() {
            return Ok(());
        }
        let node = &self.nodes[index];
        if spreads.open[index] || depth > 500 {
            let shown = if node.pointer.is_empty() { "#" } else { &node.pointer };
            return Err(TooCostly::Endless(shown.chars().take(200).collect()));
        }
        spreads.open[index] = true;
        let factor = if node.twice { 3.0 } else { 1.0 };
        let mut all = HashMap::from([(index, 1.0)]);
        for next in &node.here {
            self.spread(*next, spreads, depth + 1)?;
            for (inner, times) in spreads.done[*next].iter().flatten() {
                *all.entry(*inner).or_default() += times * factor;
            }
        }
        let next = |inner: &usize| 1 + self.nodes[*inner].below.len() + self.nodes[*inner].named.len();
        spreads.steps += all.keys().map(next).sum::<usize>();
        if spreads.steps > MOST_STEPS || all.values().sum::<f64>() > MOST_VISITS {
            return Err(TooCostly::Branching);
        }
        spreads.open[index] = false;
        spreads.done[index] = Some(all);
        Ok(())
    }

    fn steps(&self, spread: &HashMap<usize, f64>) -> Steps {
        let mut steps = Steps::default();
        for (index, times) in spread {
            let node = &self.nodes[*index];
            steps.any.extend(node.below.iter().map(|child| (*child, *times)));
            steps.named.extend(node.named.iter().map(|(name, child)| (*name, *child, *times)));
        }
        steps.named.sort_unstable_by_key(|(name, ..)| *name);
        steps
    }
}

/// What is looked at where each part is, as far as it is known.
struct Spreads {
    done: Vec<Option<HashMap<usize, f64>>>,
    open: Vec<bool>,
    /// Of all that are done.
    steps: usize,
}

impl Spreads {
    fn new(nodes: usize) -> Spreads {
        Spreads { done: vec![None; nodes], open: vec![false; nodes], steps: 0 }
    }
}

/// What is looked at one level below a part and everything at its place, and how often.
#[derive(Default)]
struct Steps {
    any: Vec<(usize, f64)>,
    /// In the order of the names.
    named: Vec<(usize, usize, f64)>,
}

impl Steps {
    fn visits(&self, visits: &[f64]) -> f64 {
        let any: f64 = self.any.iter().map(|(child, times)| times * visits[*child]).sum();
        let same = self.named.chunk_by(|one, other| one.0 == other.0);
        let named = same.map(|steps| steps.iter().map(|(_, child, times)| times * visits[*child]).sum());
        any + named.fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: &Value) -> Result<(), TooCostly> {
        measure(schema).map(drop)
    }

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

    fn map(entries: impl IntoIterator<Item = (String, Value)>) -> Value {
        Value::Object(entries.into_iter().collect())
    }

    #[test]
    fn large_schemas_that_are_ordinary_pass() {
        // Hundreds of kinds that refer to each other, as they are made from the description of an API.
        let kind = |n: usize| {
            let reference = |m: usize| json!({ "$ref": format!("#/$defs/kind_{}", (n * 7 + m) % 400) });
            json!({ "type": "object", "properties": map((0..20).map(|m| (format!("some_property_{m}"), reference(m)))) })
        };
        let kinds = map((0..400).map(|n| (format!("kind_{n}"), kind(n))));
        assert_eq!(check(&json!({ "$ref": "#/$defs/kind_0", "$defs": kinds })), Ok(()));
        let deep = (0..60).fold(json!({ "type": "string" }), |inner, _| json!({ "properties": { "inner": inner } }));
        let wide = map((0..100).map(|n| (format!("p{n}"), deep.clone())));
        assert_eq!(check(&json!({ "properties": wide })), Ok(()));
        let named = map([("k".repeat(LONGEST_KEY), json!({}))]);
        assert_eq!(check(&json!({ "properties": named })), Ok(()));
        let data = map([("k".repeat(100_000), json!([{}, {}, {}]))]);
        assert_eq!(check(&json!({ "properties": { "a": { "default": data } } })), Ok(()));
    }

    #[test]
    fn a_long_key_is_not_repeated_for_everything_below_it() {
        let below = map((0..19_990).map(|n| (n.to_string(), json!({}))));
        let long = map([("k".repeat(800_000), json!({ "properties": below }))]);
        assert_eq!(check(&json!({ "properties": long })), Err(TooCostly::LongKey));
        let branch = json!({ "$ref": "#/x", "x": { "anyOf": [{ "dependentSchemas": long }] } });
        assert_eq!(check(&branch), Err(TooCostly::LongKey));
        let anchors = map((0..10_000).map(|n| (n.to_string(), json!({ "$anchor": n.to_string() }))));
        let hidden = map([("k".repeat(800_000), anchors)]);
        assert_eq!(check(&json!({ "$defs": hidden })), Err(TooCostly::LongKey));
        // Referred to, though it is at no place for a schema.
        let reference = format!("#/{}", "k".repeat(LONGEST_KEY + 1));
        let elsewhere = map([("$ref".to_owned(), json!(reference)), (reference[2..].to_owned(), json!({}))]);
        assert_eq!(check(&elsewhere), Err(TooCostly::LongKey));
    }

    #[test]
    fn many_keys_on_one_way_do_not_add_up_to_a_long_one() {
        let nested = |inner: Value| {
            (0..50).fold(inner, |inner, _| json!({ "properties": map([("k".repeat(LONGEST_KEY), inner)]) }))
        };
        assert_eq!(check(&nested(json!({}))), Ok(()));
        let below = map((0..10_000).map(|n| (n.to_string(), json!({}))));
        assert_eq!(check(&nested(json!({ "properties": below }))), Err(TooCostly::LongPointers));
        // The same for one part that many refer to by a short name.
        let references = map((0..10_000).map(|n| (n.to_string(), json!({ "$ref": "#x" }))));
        let schema = json!({ "properties": references, "$defs": { "far": nested(json!({ "$anchor": "x" })) } });
        assert_eq!(check(&schema), Err(TooCostly::LongPointers));
    }

    #[test]
    fn what_many_refer_to_is_not_large() {
        let references = map((0..9_990).map(|n| (n.to_string(), json!({ "$ref": "#x" }))));
        let schema = |x: Value| json!({ "$defs": { "x": x }, "properties": references });
        let parts = vec![json!({}); 9_900];
        assert_eq!(check(&schema(json!({ "$anchor": "x", "allOf": parts }))), Err(TooCostly::Branching));
        // It looks at one place once, but has as much to go through one level deeper.
        let properties = map((0..9_900).map(|n| (n.to_string(), json!({}))));
        assert_eq!(check(&schema(json!({ "$anchor": "x", "properties": properties }))), Err(TooCostly::Branching));
        assert_eq!(check(&schema(json!({ "$anchor": "x", "allOf": vec![json!({}); 50] }))), Ok(()));
    }

    #[test]
    fn a_long_chain_of_references_needs_no_long_stack() {
        let next = |n: usize| json!({ "properties": { "a": { "$ref": format!("#/$defs/{}", n + 1) } } });
        let chain = map((0..9_000).map(|n| (n.to_string(), next(n))).chain([("9000".to_owned(), json!({}))]));
        assert_eq!(check(&json!({ "$ref": "#/$defs/0", "$defs": chain })), Ok(()));
        let next = |n: usize| json!({ "$ref": format!("#/$defs/{}", n + 1) });
        let chain = map((0..19_000).map(|n| (n.to_string(), next(n))).chain([("19000".to_owned(), json!({}))]));
        assert!(matches!(check(&json!({ "$ref": "#/$defs/0", "$defs": chain })), Err(TooCostly::Endless(_))));
    }
}
