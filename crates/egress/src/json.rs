//! One string in a JSON body. Only the way to it is taken apart: numbers, order and what lies beside it stay as they are.

use crate::denied::quote;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use zeroize::Zeroizing;

/// Steps of a pointer.
const MOST_STEPS: usize = 16;
/// Entries of one object or array on the way.
const MOST_ENTRIES: usize = 64 << 10;

/// Why a body cannot be changed; in words without anything of the body.
pub(crate) type Wrong = &'static str;

/// The steps of a JSON pointer.
pub(crate) fn steps(pointer: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("{} is no JSON pointer to a field, such as `/auth/key`", quote(pointer));
    let rest = pointer.strip_prefix('/').ok_or_else(wrong)?;
    let steps: Vec<String> = rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    let odd = rest.split('~').skip(1).any(|after| !after.starts_with(['0', '1']));
    if odd || steps.len() > MOST_STEPS { Err(wrong()) } else { Ok(steps) }
}

enum Level<'a> {
    Object(Vec<(String, &'a RawValue)>),
    Array(Vec<&'a RawValue>),
    /// A string, a number and so on.
    Leaf,
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Level<'de>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Level<'de>, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry::<String, &'de RawValue>()? {
            if pairs.len() == MOST_ENTRIES {
                return Err(A::Error::custom("too many"));
            }
            pairs.push(pair);
        }
        Ok(Level::Object(pairs))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Level<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element::<&'de RawValue>()? {
            if items.len() == MOST_ENTRIES {
                return Err(A::Error::custom("too many"));
            }
            items.push(item);
        }
        Ok(Level::Array(items))
    }
}

fn level(text: &str) -> Result<Level<'_>, Wrong> {
    if !text.trim_start().starts_with(['{', '[']) {
        return serde_json::from_str::<&RawValue>(text).map(|_| Level::Leaf).map_err(|_| "is no JSON");
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let level = deserializer.deserialize_any(Reader).map_err(|_| "is no JSON, or has too many entries")?;
    deserializer.end().map_err(|_| "is no JSON")?;
    Ok(level)
}

/// Where the next step leads; a field that is there twice is read differently by different servers.
fn next<'a>(level: &Level<'a>, step: &str) -> Result<Option<(usize, &'a RawValue)>, Wrong> {
    match level {
        Level::Object(pairs) => {
            let mut same = pairs.iter().enumerate().filter(|(_, (key, _))| key == step);
            match (same.next(), same.next()) {
                (Some(_), Some(_)) => Err("has a field twice"),
                (first, _) => Ok(first.map(|(at, (_, value))| (at, *value))),
            }
        }
        Level::Array(items) => {
            let index = step.parse::<usize>().ok().filter(|index| index.to_string() == step);
            Ok(index.and_then(|index| items.get(index).map(|value| (index, *value))))
        }
        Level::Leaf => Ok(None),
    }
}

/// The string at the end of the steps, if there is one.
pub(crate) fn string_at(body: &[u8], steps: &[String]) -> Result<Option<String>, Wrong> {
    let mut text = std::str::from_utf8(body).map_err(|_| "is no UTF-8")?;
    for step in steps {
        match next(&level(text)?, step)? {
            Some((_, value)) => text = value.get(),
            None => return Ok(None),
        }
    }
    Ok(serde_json::from_str(text).ok())
}

/// The body with this string at the end of the steps. Objects that are missing on the way are made.
pub(crate) fn with_string(body: &[u8], steps: &[String], value: &str) -> Result<Zeroizing<Vec<u8>>, Wrong> {
    let text = std::str::from_utf8(body).map_err(|_| "is no UTF-8")?;
    if !text.trim_start().starts_with('{') {
        return Err("is no JSON object");
    }
    let literal = serde_json::to_string(value).map(Zeroizing::new).map_err(|_| "cannot carry the secret")?;
    let changed = put(text, steps, &literal)?;
    Ok(Zeroizing::new(changed.as_bytes().to_vec()))
}

fn put(text: &str, steps: &[String], literal: &str) -> Result<Zeroizing<String>, Wrong> {
    let Some((step, rest)) = steps.split_first() else {
        return Ok(Zeroizing::new(literal.to_owned()));
    };
    let level = level(text)?;
    let found = next(&level, step)?;
    let inner = match found {
        Some((_, value)) => put(value.get(), rest, literal)?,
        None => put("{}", rest, literal)?,
    };
    // All of it at once: what grows leaves copies behind.
    let mut out = Zeroizing::new(String::with_capacity(text.len() * 2 + inner.len() + step.len() * 6 + 16));
    let chosen = found.map(|(at, _)| at);
    match level {
        Level::Object(pairs) => {
            out.push('{');
            for (at, (key, value)) in pairs.iter().enumerate() {
                entry(&mut out, key, if chosen == Some(at) { &inner } else { value.get() })?;
            }
            if chosen.is_none() {
                entry(&mut out, step, &inner)?;
            }
            out.push('}');
        }
        Level::Array(items) if chosen.is_some() => {
            out.push('[');
            for (at, value) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                out.push_str(if chosen == Some(at) { &inner } else { value.get() });
            }
            out.push(']');
        }
        _ => return Err("has something else where the secret belongs"),
    }
    Ok(out)
}

fn entry(out: &mut String, key: &str, value: &str) -> Result<(), Wrong> {
    out.push_str(if out.len() > 1 { "," } else { "" });
    out.push_str(&serde_json::to_string(key).map_err(|_| "has a field without a name")?);
    out.push(':');
    out.push_str(value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(body: &str, pointer: &str) -> Result<String, Wrong> {
        let changed = with_string(body.as_bytes(), &steps(pointer).unwrap(), "v\"\\\n")?;
        Ok(String::from_utf8(changed.to_vec()).unwrap())
    }

    #[test]
    fn only_the_field_changes() {
        let value = r#""v\"\\\n""#;
        for (body, pointer, want) in [
            ("{}", "/a", format!("{{\"a\":{value}}}")),
            (
                r#" {"z":1.0e400, "a":12345678901234567890.10, "k":0} "#,
                "/k",
                format!(r#"{{"z":1.0e400,"a":12345678901234567890.10,"k":{value}}}"#),
            ),
            (r#"{"a":{"b":[1,{"c":2}]}}"#, "/a/b/1/c", format!(r#"{{"a":{{"b":[1,{{"c":{value}}}]}}}}"#)),
            (r#"{"x":1}"#, "/a/b", format!(r#"{{"x":1,"a":{{"b":{value}}}}}"#)),
            (r#"{"a/b":{"c~d":1}}"#, "/a~1b/c~0d", format!(r#"{{"a/b":{{"c~d":{value}}}}}"#)),
            (r#"{"\u0061":1}"#, "/a", format!("{{\"a\":{value}}}")),
            (r#"{"a":null}"#, "/", format!("{{\"a\":null,\"\":{value}}}")),
        ] {
            assert_eq!(set(body, pointer).unwrap(), want, "{body} {pointer}");
        }
    }

    #[test]
    fn what_cannot_be_changed() {
        for (body, pointer) in [
            ("[]", "/0"),
            ("7", "/a"),
            ("", "/a"),
            ("{", "/a"),
            ("{}{}", "/a"),
            (r#"{"a":1}x"#, "/a"),
            (r#"{"a":1,"a":2}"#, "/a"),
            (r#"{"a":{"b":1},"\u0061":2}"#, "/a/b"),
            (r#"{"a":1}"#, "/a/b"),
            (r#"{"a":[1]}"#, "/a/1"),
            (r#"{"a":[1]}"#, "/a/00"),
            (r#"{"a":[1]}"#, "/a/-"),
        ] {
            assert!(set(body, pointer).is_err(), "{body} {pointer}");
        }
        assert!(with_string(b"{\"a\":\"\xff\"}", &["a".to_owned()], "v").is_err());
        let many = format!("{{\"a\":[{}0]}}", "0,".repeat(MOST_ENTRIES));
        assert!(set(&many, "/a/1").is_err());
        for bad in ["", "a", "a/b", "/~", "/~2", "/a~", &"/a".repeat(MOST_STEPS + 1)] {
            assert!(steps(bad).is_err(), "{bad}");
        }
    }

    /// As deep as a body can be, on the way and beside it.
    #[test]
    fn depth_costs_no_stack() {
        let deep = "[".repeat(1 << 20) + &"]".repeat(1 << 20);
        assert!(set(&format!("{{\"deep\":{deep}}}"), "/a").unwrap().len() > deep.len());
    }
}
