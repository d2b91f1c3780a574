//! YAML 1.2 with the core schema, as events: no recursion, and aliases cost what they stand for.

use super::{Budget, MOST_DEPTH, MOST_POINTER, Tree, too_deep, too_long, twice};
use crate::text::quote;
use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Number, Value};
use std::collections::HashMap;

pub fn read(text: &str) -> Result<Tree, String> {
    let mut builder = Builder { budget: Budget::new(), lost: Vec::new(), open: Vec::new(), anchors: HashMap::new() };
    let mut document = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let (line, column) = (error.marker().line(), error.marker().col() + 1);
            format!("line {line}, column {column}: {}", error.info().escape_debug())
        })?;
        let done = builder.event(event).map_err(|message| format!("line {}: {message}", span.start.line()))?;
        if let Some(value) = done {
            if document.is_some() {
                let text = "the file has more than one document; only the first is read".to_owned();
                builder.lost.push((String::new(), text));
                break;
            }
            document = Some(value);
        }
    }
    Ok(Tree { value: document.unwrap_or(Value::Null), lost: builder.lost })
}

/// What a value is made of, with all below.
#[derive(Clone, Copy, Default)]
struct Size {
    parts: usize,
    text: usize,
    depth: usize,
    /// Bytes of the longest pointer to something in it.
    pointer: usize,
}

enum Open {
    List { anchor: usize, size: Size, items: Vec<Value> },
    Map { anchor: usize, size: Size, map: Map<String, Value>, key: Option<String>, merged: Vec<Value> },
}

struct Builder {
    budget: Budget,
    lost: Vec<(String, String)>,
    open: Vec<Open>,
    /// Value and size; a value that is still open is not here, so none contains itself.
    anchors: HashMap<usize, (Value, Size)>,
}

impl Builder {
    /// Gives the document when it is complete.
    fn event(&mut self, event: Event<'_>) -> Result<Option<Value>, String> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                if let Some(Open::Map { key: key @ None, size, .. }) = self.open.last_mut() {
                    self.budget.take(1, text.len())?;
                    size.parts += 1;
                    size.text += text.len();
                    // A null key comes as `~`, and is a text like others.
                    let merge = text == "<<" && style == ScalarStyle::Plain;
                    *key = Some(if merge { MERGE.to_owned() } else { text.into_owned() });
                    return Ok(None);
                }
                let text_size = text.len();
                let value = scalar(&text, style, tag.as_deref());
                self.budget.take(1, text_size)?;
                self.close(value, anchor, Size { parts: 1, text: text_size, depth: 1, pointer: 0 })
            }
            Event::SequenceStart(anchor, _) => self.open(Open::List { anchor, size: START, items: Vec::new() }),
            Event::MappingStart(anchor, _) => {
                let (map, merged) = (Map::new(), Vec::new());
                self.open(Open::Map { anchor, size: START, map, key: None, merged })
            }
            Event::SequenceEnd => match self.open.pop() {
                Some(Open::List { anchor, size, items }) => self.close(Value::Array(items), anchor, size),
                _ => Err("a list ends that did not begin".to_owned()),
            },
            Event::MappingEnd => match self.open.pop() {
                Some(Open::Map { anchor, size, mut map, merged, .. }) => {
                    for entry in merged.into_iter().flat_map(mappings) {
                        for (key, value) in entry {
                            map.entry(key).or_insert(value);
                        }
                    }
                    self.close(Value::Object(map), anchor, size)
                }
                _ => Err("a mapping ends that did not begin".to_owned()),
            },
            Event::Alias(anchor) => {
                let unknown = "an alias stands for something that is not there, or for what it is part of";
                let (_, size) = self.anchors.get(&anchor).ok_or(unknown)?;
                let size = *size;
                self.budget.take(size.parts, size.text)?;
                if self.open.len() + size.depth > MOST_DEPTH {
                    return Err(too_deep());
                }
                let value = self.anchors.get(&anchor).map(|(value, _)| value.clone()).unwrap_or_default();
                self.close(value, 0, size)
            }
            _ => Ok(None),
        }
    }

    fn open(&mut self, open: Open) -> Result<Option<Value>, String> {
        if let Some(Open::Map { key: None, .. }) = self.open.last() {
            return Err("a key is a mapping or a list, and a text is needed".to_owned());
        }
        if self.open.len() == MOST_DEPTH {
            return Err(too_deep());
        }
        self.budget.take(1, 0)?;
        self.open.push(open);
        Ok(None)
    }

    fn close(&mut self, value: Value, anchor: usize, size: Size) -> Result<Option<Value>, String> {
        if anchor > 0 {
            // The copy is kept until the end.
            self.budget.take(size.parts, size.text)?;
            self.anchors.insert(anchor, (value.clone(), size));
        }
        let at = self.pointer();
        let Some(open) = self.open.last_mut() else { return Ok(Some(value)) };
        let key = if let Open::Map { key: Some(key), .. } = open { key.len() } else { 8 };
        let (Open::List { size: whole, .. } | Open::Map { size: whole, .. }) = open;
        whole.pointer = whole.pointer.max(size.pointer + key + 1);
        if whole.pointer > MOST_POINTER {
            return Err(too_long());
        }
        whole.parts += size.parts;
        whole.text += size.text;
        whole.depth = whole.depth.max(size.depth + 1);
        match open {
            Open::List { items, .. } => items.push(value),
            Open::Map { map, key, merged, .. } => match key.take() {
                None => return Err("a key is an alias, and a text is needed".to_owned()),
                Some(key) if key == MERGE => match mappings(value) {
                    found if found.is_empty() => {
                        self.lost.push((at.unwrap_or_default(), format!("{} merges no mapping", quote("<<"))));
                    }
                    found => merged.extend(found.into_iter().map(Value::Object)),
                },
                Some(key) if map.contains_key(&key) => self.lost.push(twice(&at.unwrap_or_default(), &key)),
                Some(key) => {
                    map.insert(key, value);
                }
            },
        }
        Ok(None)
    }

    /// Of what is open, and only where it may be needed: it costs a walk.
    fn pointer(&self) -> Option<String> {
        let Some(Open::Map { map, key: Some(key), .. }) = self.open.last() else { return None };
        if key != MERGE && !map.contains_key(key) {
            return None;
        }
        let outer = &self.open[..self.open.len() - 1];
        let part = |open: &Open| match open {
            Open::List { items, .. } => format!("/{}", items.len()),
            Open::Map { key, .. } => format!("/{}", crate::files::escape(key.as_deref().unwrap_or_default())),
        };
        Some(outer.iter().map(part).collect())
    }
}

const START: Size = Size { parts: 1, text: 0, depth: 1, pointer: 0 };

/// No key in a file has a NUL: the scanner refuses it.
const MERGE: &str = "\0<<";

/// What `<<` merges: a mapping, or those of a list.
fn mappings(value: Value) -> Vec<Map<String, Value>> {
    match value {
        Value::Object(map) => vec![map],
        Value::Array(items) => items.into_iter().flat_map(|item| item.as_object().cloned()).collect(),
        _ => Vec::new(),
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let core = tag.filter(|tag| tag.is_yaml_core_schema()).map(|tag| tag.suffix.as_str());
    if style != ScalarStyle::Plain || core == Some("str") {
        return text.into();
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ => number(text).map_or_else(|| text.into(), Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some(hex) = text.strip_prefix("0x") {
        let plain = hex.bytes().all(|b| b.is_ascii_hexdigit());
        return u64::from_str_radix(hex, 16).ok().filter(|_| plain).map(Number::from);
    }
    if let Some(octal) = text.strip_prefix("0o") {
        let plain = octal.bytes().all(|b| b.is_ascii_digit());
        return u64::from_str_radix(octal, 8).ok().filter(|_| plain).map(Number::from);
    }
    let first = digits.strip_prefix('.').unwrap_or(digits);
    let shaped = first.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    if !shaped {
        return None;
    }
    let whole = text.strip_prefix('+').unwrap_or(text);
    let integer = whole.parse::<i64>().map(Number::from).or_else(|_| whole.parse::<u64>().map(Number::from));
    integer.ok().or_else(|| whole.parse::<f64>().ok().and_then(Number::from_f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn value(text: &str) -> Value {
        read(text).map(|tree| tree.value).unwrap()
    }

    #[test]
    fn scalars_are_those_of_the_core_schema() {
        let text = "[a, '1', \"2\", 1, -2, +3, 0x1f, 0o17, 1.5, 1e3, .5, 1., ~, null, true, No, yes, 2020-01-01, 1.2.3, \
                    !!str 7, 0x, -a, 1_000, 18446744073709551615, 99999999999999999999]";
        let expected = json!([
            "a",
            "1",
            "2",
            1,
            -2,
            3,
            31,
            15,
            1.5,
            1000.0,
            0.5,
            1.0,
            null,
            null,
            true,
            "No",
            "yes",
            "2020-01-01",
            "1.2.3",
            "7",
            "0x",
            "-a",
            "1_000",
            18446744073709551615u64,
            1e20
        ]);
        assert_eq!(value(text), expected);
        assert_eq!(value("200: {}\ntrue: 1\n"), json!({ "200": {}, "true": 1 }));
    }

    #[test]
    fn aliases_and_merges() {
        assert_eq!(value("a: &x {b: 1}\nc: *x\n"), json!({ "a": { "b": 1 }, "c": { "b": 1 } }));
        let merged = value("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\ne: {'<<': 4}\n");
        assert_eq!(merged["d"], json!({ "b": 1, "c": 3 }));
        assert_eq!(merged["e"], json!({ "<<": 4 }));
        assert!(read("a: &x [*x]").unwrap_err().contains("part of"));
    }

    #[test]
    fn what_is_there_twice_is_reported() {
        let tree = read("a:\n  - b: 1\n    b: 2\n").unwrap();
        assert_eq!(tree.value, json!({ "a": [{ "b": 1 }] }));
        assert_eq!(tree.lost[0].0, "/a/0/b");
        assert_eq!(read("a: 1\n---\nb: 2\n").unwrap().lost.len(), 1);
    }

    #[test]
    fn bombs_do_not_go_off() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..30 {
            let aliases = vec![format!("*a{}", n - 1); 10].join(", ");
            bomb += &format!("a{n}: &a{n} [{aliases}]\n");
        }
        assert!(read(&bomb).unwrap_err().contains("aliases"));
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 50].join(","));
        assert!(read(&long).unwrap_err().contains("aliases"));
        let mut deep = "a0: &a0 [x]\n".to_owned();
        for n in 1..200 {
            deep += &format!("a{n}: &a{n} [*a{}]\n", n - 1);
        }
        assert!(read(&deep).unwrap_err().contains("nested"));
        for open in ["[", "{a: ", "- ", "? "] {
            assert!(read(&open.repeat(100_000)).is_err(), "{open}");
        }
    }
}
