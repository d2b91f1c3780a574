//! The keywords of schemas, and which values they take.

use crate::text::is_short;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// An `enum` as JSON.
const MOST_VALUES: usize = 64 << 10;
/// A compiled expression, as hosts allow it.
const MOST_PATTERN: usize = 1 << 20;
const LONGEST_PATTERN: usize = 1_000;
/// Different ones in a specification.
const MOST_PATTERNS: usize = 2_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Schema,
    Schemas,
    Named,
    Type,
    /// A number, or a flag in 3.0.
    Bound,
    Positive,
    Count,
    Flag,
    Text,
    Pattern,
    /// A list of different texts.
    Names,
    NamedNames,
    Values,
    Any,
    Example,
    /// It changes what references mean.
    Refused,
    /// Read somewhere else.
    Elsewhere,
    Unknown,
}

pub fn kind(key: &str) -> Kind {
    match key {
        "not"
        | "if"
        | "then"
        | "else"
        | "additionalProperties"
        | "propertyNames"
        | "items"
        | "contains"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Kind::Schema,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Kind::Schemas,
        "properties" | "patternProperties" | "dependentSchemas" => Kind::Named,
        "type" => Kind::Type,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => Kind::Bound,
        "multipleOf" => Kind::Positive,
        "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties" | "minContains"
        | "maxContains" => Kind::Count,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => Kind::Flag,
        "title" | "description" | "format" | "contentEncoding" | "contentMediaType" => Kind::Text,
        "pattern" => Kind::Pattern,
        "required" => Kind::Names,
        "dependentRequired" => Kind::NamedNames,
        "enum" => Kind::Values,
        "const" | "default" => Kind::Any,
        "example" | "examples" => Kind::Example,
        "$dynamicRef" | "$recursiveRef" => Kind::Refused,
        "nullable" | "$defs" | "definitions" => Kind::Elsewhere,
        _ => Kind::Unknown,
    }
}

/// The value as it goes over, if it can.
pub fn plain(kind: Kind, key: &str, value: &Value, patterns: &Patterns) -> Option<Value> {
    let good = match kind {
        Kind::Positive => value.as_f64().is_some_and(|number| number > 0.0),
        Kind::Count => {
            let whole = value.as_u64().or_else(|| {
                let number = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..1e15).contains(number));
                number.map(|number| number as u64)
            });
            return whole.map(Value::from);
        }
        Kind::Flag => value.is_boolean(),
        Kind::Text => value.is_string(),
        Kind::Pattern => value.as_str().is_some_and(|text| patterns.fit(text)),
        // A property's `required: true` of older drafts is no list.
        Kind::Names => return names(value),
        Kind::NamedNames => value.as_object().is_some_and(|map| map.values().all(|value| names(value).is_some())),
        Kind::Values => value.as_array().is_some_and(|values| !values.is_empty()) && is_short(value, MOST_VALUES),
        Kind::Any if key == "const" => is_short(value, MOST_VALUES),
        Kind::Any => is_short(value, super::MOST_EXAMPLE),
        _ => false,
    };
    good.then(|| value.clone())
}

fn names(value: &Value) -> Option<Value> {
    let names: Option<BTreeSet<&str>> = value.as_array()?.iter().map(Value::as_str).collect();
    names.map(|names| json!(names))
}

/// Expressions that were tried. Each costs a compilation, and thousands of operations may share one.
#[derive(Default)]
pub(crate) struct Patterns(RefCell<BTreeMap<String, bool>>);

impl Patterns {
    /// Whether hosts take the expression: it must run in linear time, without lookaround and back references.
    pub fn fit(&self, pattern: &str) -> bool {
        let mut tried = self.0.borrow_mut();
        if let Some(fits) = tried.get(pattern) {
            return *fits;
        }
        if pattern.len() > LONGEST_PATTERN || tried.len() == MOST_PATTERNS {
            return false;
        }
        let build = |text: &str| {
            regex::RegexBuilder::new(text).size_limit(MOST_PATTERN).dfa_size_limit(MOST_PATTERN).build().is_ok()
        };
        let fits = jsonschema_regex::to_rust_regex(pattern).is_ok_and(|translated| build(&translated));
        tried.insert(pattern.to_owned(), fits);
        fits
    }
}

/// Types of JSON, and whether anything had to be read differently.
pub fn types(value: &Value) -> (Option<Value>, bool) {
    let one = |name: &str| match name {
        "string" | "number" | "integer" | "boolean" | "object" | "array" | "null" => Some(name.to_owned()),
        "file" => Some("string".to_owned()),
        "int" => Some("integer".to_owned()),
        "float" | "double" => Some("number".to_owned()),
        "bool" => Some("boolean".to_owned()),
        _ => None,
    };
    match value {
        Value::String(name) => {
            let read = one(name);
            let lost = read.as_deref() != Some(name);
            (read.map(Value::from), lost)
        }
        Value::Array(names) => {
            let mut read: Vec<String> = Vec::new();
            for name in names.iter().filter_map(Value::as_str).filter_map(one) {
                if !read.contains(&name) {
                    read.push(name);
                }
            }
            let lost = read.len() != names.len();
            ((!read.is_empty()).then(|| json!(read)), lost)
        }
        _ => (None, true),
    }
}
