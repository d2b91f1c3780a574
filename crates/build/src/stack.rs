//! Stack traces of a built module in terms of the project's files.

use crate::text::name;
use serde::Deserialize;

/// V8 shows ten frames unless it is told otherwise. Of more positions than this the rest stays as it is.
const MOST_POSITIONS: usize = 64;

#[derive(Deserialize)]
struct Map {
    sources: Vec<Option<String>>,
    mappings: String,
}

/// A position in the module, and what is known of it. All count from zero.
struct Position {
    line: u32,
    column: u32,
    /// Where it stands in the trace.
    begin: usize,
    end: usize,
    origin: Option<Origin>,
}

#[derive(Clone, Copy)]
struct Origin {
    source: i64,
    line: i64,
    column: i64,
}

/// Replaces every `bundle_name:LINE:COLUMN` in a trace of V8 by the file, line and column in the project that it was made of.
///
/// What the map does not know stays as it is, and so does everything when there is no map. The trace may say anything.
pub fn map_stack(map: &str, stack: &str, bundle_name: &str) -> String {
    let mut positions = positions(stack, bundle_name);
    let Some(map) = (!positions.is_empty()).then(|| serde_json::from_str::<Map>(map).ok()).flatten() else {
        return stack.to_owned();
    };
    look_up(&map.mappings, &mut positions);
    let mut out = String::with_capacity(stack.len());
    let mut copied = 0;
    for position in &positions {
        let Some(origin) = position.origin else { continue };
        let source = usize::try_from(origin.source).ok().and_then(|source| map.sources.get(source)?.as_ref());
        let Some(source) = source else { continue };
        out += &stack[copied..position.begin];
        out += &format!("{}:{}:{}", name(source), origin.line.saturating_add(1), origin.column.saturating_add(1));
        copied = position.end;
    }
    out + &stack[copied..]
}

/// The places of the name with two numbers behind it, where it is not the end of another name.
fn positions(stack: &str, bundle_name: &str) -> Vec<Position> {
    let mut found = Vec::new();
    if bundle_name.is_empty() {
        return found;
    }
    for (begin, _) in stack.match_indices(bundle_name).filter(|(begin, _)| stands_alone(&stack[..*begin])) {
        let rest = &stack[begin + bundle_name.len()..];
        let Some((line, rest)) = number(rest) else { continue };
        let Some((column, rest)) = number(rest) else { continue };
        let (Some(line), Some(column)) = (line.checked_sub(1), column.checked_sub(1)) else { continue };
        found.push(Position { line, column, begin, end: stack.len() - rest.len(), origin: None });
        if found.len() == MOST_POSITIONS {
            break;
        }
    }
    found
}

fn stands_alone(before: &str) -> bool {
    before.chars().next_back().is_none_or(|c| c.is_whitespace() || "(@,<[".contains(c))
}

/// A colon and a number.
fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.strip_prefix(':')?;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    Some((digits[..end].parse().ok()?, &digits[end..]))
}

/// Gives each position the last piece of its line that begins at or before it. Goes through the mappings once and keeps
/// nothing of them.
fn look_up(mappings: &str, positions: &mut [Position]) {
    let mut origin = Origin { source: 0, line: 0, column: 0 };
    for (number, line) in mappings.split(';').enumerate() {
        let mut wanted: Vec<&mut Position> =
            positions.iter_mut().filter(|position| position.line as usize == number).collect();
        let mut column = 0i64;
        for segment in line.split(',').filter(|segment| !segment.is_empty()) {
            let Some((fields, count)) = decode(segment.as_bytes()) else { return };
            column = column.saturating_add(fields[0]);
            if count >= 4 {
                origin.source = origin.source.saturating_add(fields[1]);
                origin.line = origin.line.saturating_add(fields[2]);
                origin.column = origin.column.saturating_add(fields[3]);
            }
            for position in wanted.iter_mut().filter(|position| column <= i64::from(position.column)) {
                position.origin = (count >= 4).then_some(origin);
            }
        }
    }
}

/// Up to five numbers in groups of five bits, the lowest first: the sign is the lowest bit of all, and a sixth bit says that
/// more follow.
fn decode(segment: &[u8]) -> Option<([i64; 5], usize)> {
    let mut fields = [0; 5];
    let mut count = 0;
    let mut rest = segment.iter();
    while !rest.as_slice().is_empty() {
        let (mut value, mut shift) = (0i64, 0);
        loop {
            let digit = digit(*rest.next()?)?;
            value |= (digit & 31) << shift;
            if digit & 32 == 0 {
                break;
            }
            shift += 5;
            if shift > 35 {
                return None;
            }
        }
        *fields.get_mut(count)? = if value & 1 == 1 { -(value >> 1) } else { value >> 1 };
        count += 1;
    }
    Some((fields, count))
}

fn digit(letter: u8) -> Option<i64> {
    let digit = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(digit.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Line 1: column 0 is a.ts 1:1, column 4 is a.ts 1:5, column 8 is nobody's; line 3: column 2 is b.ts 17:3.
    const MAP: &str = r#"{"version":3,"sources":["a.ts","b.ts"],"names":[],"mappings":"AAAA,IAAI,I;;ECgBF"}"#;

    #[test]
    fn positions_are_replaced_where_they_are_known() {
        let stack =
            "Error: b.js:1:1 in b.js:1:6\n    at f (b.js:3:9)\n    at b.js:1:9\n    at b.js:2:1\n    at b.js:99:1";
        let mapped =
            "Error: a.ts:1:1 in a.ts:1:5\n    at f (b.ts:17:3)\n    at b.js:1:9\n    at b.js:2:1\n    at b.js:99:1";
        assert_eq!(map_stack(MAP, stack, "b.js"), mapped);
    }

    #[test]
    fn what_only_looks_like_a_position_stays() {
        for stack in [
            "",
            "b.js",
            "b.js:",
            "b.js:1",
            "b.js:1:",
            "b.js:0:1",
            "b.js:1:0",
            "b.js:-1:1",
            "b.js:x:1",
            "lib.js:1:1",
            "a/b.js:1:1",
            "ab.js:1:1",
            "b.js:4294967296:1",
            "b.js:1:99999999999999999999",
            "B.JS:1:1",
            "b.js:١:١",
        ] {
            assert_eq!(map_stack(MAP, stack, "b.js"), stack);
        }
        assert_eq!(map_stack("", "b.js:1:1", "b.js"), "b.js:1:1");
        assert_eq!(map_stack("{}", "b.js:1:1", "b.js"), "b.js:1:1");
        assert_eq!(map_stack(MAP, ":1:1", ""), ":1:1");
    }

    #[test]
    fn maps_that_are_not_well_made_do_no_harm() {
        for mappings in ["AAAA,*", "AAAAAAAAAA", "gggggggggggggggB", "g", "AD+/AA", "A/////////AA", "AEAA", "ADAA"] {
            let map = serde_json::json!({ "version": 3, "sources": ["\u{1b}[2J", null], "mappings": mappings });
            let mapped = map_stack(&map.to_string(), "at b.js:1:9", "b.js");
            assert!(!mapped.contains('\u{1b}'), "{mappings}");
        }
    }

    proptest! {
        #[test]
        fn anything_may_be_said(stack in "(b\\.js|:|1|9|\\(|ä|\n| ){0,40}", mappings in "[A-Za-f+/g-z,;*]{0,60}") {
            let map = serde_json::json!({ "version": 3, "sources": ["a.ts"], "mappings": mappings }).to_string();
            map_stack(&map, &stack, "b.js");
            prop_assert_eq!(map_stack("", &stack, "b.js"), stack);
        }
    }
}
