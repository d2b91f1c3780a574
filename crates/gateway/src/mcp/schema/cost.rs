//! What checking a value against a schema can cost, before anybody checks one.
//!
//! A schema of a stranger may make a validator work for years: `anyOf` of two references to an `anyOf` of two references,
//! thirty times, is a small text and 2³⁰ checks of one value. So the number of times that any single place of a value can
//! be looked at is computed from the schema alone, and schemas where it is large are refused. What each look costs is
//! added up for each level of a value ([`Weights`]); with the size of a value that bounds the work to check it.

use super::expressions::Expressions;
use super::size::{LONGEST_MEMCMP, Weights};
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
    #[error("`{at}`: {why}")]
    Expression { at: String, why: String },
}

/// What is known of a schema before it is compiled.
#[derive(Debug)]
pub struct Cost {
    /// Bytes that the compiled schema takes, at most.
    pub memory: usize,
    /// What looking at one place costs, by the depth of the place. The last is for all that lies deeper.
    pub levels: Vec<Weights>,
    /// Whether the validator collects every error of several branches to tell of one.
    pub collects: bool,
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
    /// What its own keywords cost at a place.
    own: Weights,
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
    /// Bytes of the values that parts compare with.
    data_bytes: usize,
    expressions: Expressions<'a>,
    collects: bool,
}

/// Bytes of a compiled part beside its pointers.
const PART_BYTES: usize = 1 << 10;
/// A compiled schema keeps several copies of a pointer, and of what it compares with.
const COPIES: usize = 4;

/// Whether it can be compiled within these bytes of memory, and asked at a bounded cost.
pub fn measure(schema: &Value, memory: usize) -> Result<Cost, TooCostly> {
    let mut graph = Graph {
        root: schema,
        own_id: schema.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#')),
        by_pointer: HashMap::new(),
        anchors: HashMap::new(),
        names: HashMap::new(),
        nodes: Vec::new(),
        waiting: Vec::new(),
        pointer_bytes: 0,
        data_bytes: 0,
        expressions: Expressions::new(memory),
        collects: false,
    };
    graph.find_anchors(schema, &mut String::new(), 0)?;
    graph.add(schema, String::new())?;
    // Not by recursion: a chain of references may be longer than any stack.
    while let Some((index, map)) = graph.waiting.pop() {
        graph.look_into(index, map)?;
    }
    let levels = graph.weigh()?;
    let parts = graph.nodes.len() * PART_BYTES + COPIES * (graph.pointer_bytes + graph.data_bytes);
    Ok(Cost { memory: parts + graph.expressions.bytes(), levels, collects: graph.collects })
}

/// Bytes of a value in memory, and how many values it has, itself included.
fn extent(value: &Value) -> usize {
    const ONE: usize = 64;
    match value {
        Value::String(text) => ONE + text.len(),
        Value::Array(items) => ONE + items.iter().map(extent).sum::<usize>(),
        Value::Object(map) => ONE + map.iter().map(|(key, inner)| ONE + key.len() + extent(inner)).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) => ONE,
    }
}

/// What it costs to compare one place with each of these.
fn compared<'v>(values: impl Iterator<Item = &'v Value>) -> Weights {
    let mut weights = Weights::default();
    for value in values {
        weights.place += 1.0;
        match value {
            Value::String(_) => weights.byte += 1.0 / LONGEST_MEMCMP,
            Value::Array(_) | Value::Object(_) => weights.tree += 1.0,
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    weights
}

/// Names that are looked for in every object.
fn looked_for(names: &Value) -> f64 {
    let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
    names.map(|name| 1.0 + name.len() as f64 / LONGEST_MEMCMP).sum()
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
        self.nodes.push(Node {
            pointer,
            here: Vec::new(),
            named: Vec::new(),
            below: Vec::new(),
            twice: false,
            own: Weights::default(),
        });
        self.waiting.extend(schema.as_object().map(|map| (index, map)));
        Ok(index)
    }

    fn look_into(&mut self, index: usize, map: &'a Map<String, Value>) -> Result<(), TooCostly> {
        let pointer = self.nodes[index].pointer.clone();
        let (mut here, mut named, mut below, mut twice) = (Vec::new(), Vec::new(), Vec::new(), false);
        let mut own = Weights { place: 1.0 + map.len() as f64, ..Weights::default() };
        for (key, value) in map {
            let at = || format!("{pointer}/{}", escape(key));
            match key.as_str() {
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    if let Some(reference) = value.as_str() {
                        here.push(self.follow(reference)?);
                    }
                }
                "allOf" | "anyOf" | "oneOf" => {
                    self.collects |= key != "allOf";
                    here.extend(self.add_each(value, &at())?);
                }
                "not" | "if" | "then" | "else" => here.push(self.add(value, at())?),
                "dependentSchemas" | "dependencies" | "dependentRequired" => {
                    for (name, inner) in value.as_object().into_iter().flatten() {
                        own.place += 1.0 + name.len() as f64 / LONGEST_MEMCMP + looked_for(inner);
                        self.data_bytes += extent(inner);
                    }
                    if key != "dependentRequired" {
                        here.extend(self.add_each(value, &at())?);
                    }
                }
                "required" => {
                    own.place += looked_for(value);
                    self.data_bytes += extent(value);
                }
                "enum" => {
                    own += compared(value.as_array().into_iter().flatten());
                    self.data_bytes += extent(value);
                }
                "const" => {
                    own += compared(std::iter::once(value));
                    self.data_bytes += extent(value);
                }
                "uniqueItems" if value.as_bool() == Some(true) => {
                    // Up to 15 items are compared in pairs; more are hashed, and hashes of lists and objects may be alike.
                    (own.place, own.tree, own.square) = (own.place + 15.0, own.tree + 15.0, own.square + 1.0);
                }
                "minLength" | "maxLength" => own.byte += 1.0 / LONGEST_MEMCMP,
                // Before 2019-09 these are asserted.
                "contentEncoding" | "contentMediaType" => own.byte += 4.0,
                "pattern" => {
                    if let Some(pattern) = value.as_str() {
                        own.byte += self.expressions.add(pattern).map_err(|why| expression(at(), why))?;
                    }
                }
                "properties" => {
                    own.place += value.as_object().map_or(0, Map::len) as f64;
                    for (name, inner) in value.as_object().into_iter().flatten() {
                        let child = self.add(inner, format!("{}/{}", at(), escape(name)))?;
                        let next = self.names.len();
                        named.push((*self.names.entry(name).or_insert(next), child));
                    }
                }
                "patternProperties" => {
                    for pattern in value.as_object().into_iter().flatten().map(|(pattern, _)| pattern) {
                        // Keys belong to the level below, whose costs are added up there.
                        let cost = self.expressions.add(pattern).map_err(|why| expression(at(), why))?;
                        own.key += cost;
                    }
                    below.extend(self.add_each(value, &at())?);
                }
                "prefixItems" => below.extend(self.add_each(value, &at())?),
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
        self.nodes[index] = Node { pointer, here, named, below, twice, own };
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

    /// What looking at a place costs, by its depth.
    fn weigh(&self) -> Result<Vec<Weights>, TooCostly> {
        let mut spreads = Spreads::new(self.nodes.len());
        for index in 0..self.nodes.len() {
            self.spread(index, &mut spreads, 0)?;
        }
        // Of the deepest place, for values of one more level in every turn.
        let here = spreads.done.into_iter().map(Option::unwrap_or_default);
        let (mut weights, steps): (Vec<Weights>, Vec<Steps>) =
            here.map(|spread| (self.at_one_place(&spread), self.steps(&spread))).unzip();
        let mut levels = Vec::new();
        for _ in 0..DEPTH {
            if weights[0].visits > MOST_VISITS {
                return Err(TooCostly::Branching);
            }
            levels.push(weights[0]);
            let deeper: Vec<Weights> = steps.iter().map(|steps| steps.weights(&weights)).collect();
            // Nothing is left to visit, or the same for ever.
            if deeper == weights {
                break;
            }
            weights = deeper;
        }
        // Costs of keys were found with the objects that have them.
        for level in (1..levels.len()).rev() {
            levels[level].byte += levels[level - 1].key;
        }
        let deepest = levels.last().copied().unwrap_or_default();
        levels.push(Weights { byte: deepest.byte + deepest.key, ..deepest });
        Ok(levels)
    }

    fn at_one_place(&self, spread: &HashMap<usize, f64>) -> Weights {
        let mut all = Weights::default();
        for (index, times) in spread {
            all += Weights { visits: 1.0, ..self.nodes[*index].own } * *times;
        }
        all
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
    fn weights(&self, weights: &[Weights]) -> Weights {
        let mut all = Weights::default();
        for (child, times) in &self.any {
            all += weights[*child] * *times;
        }
        let mut most = Weights::default();
        for same in self.named.chunk_by(|one, other| one.0 == other.0) {
            let mut named = Weights::default();
            for (_, child, times) in same {
                named += weights[*child] * *times;
            }
            most = most.max(named);
        }
        all += most;
        all
    }
}

fn expression(at: String, why: String) -> TooCostly {
    TooCostly::Expression { at: at.chars().take(200).collect(), why }
}

#[cfg(test)]
mod tests;
