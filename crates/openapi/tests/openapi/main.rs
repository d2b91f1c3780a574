//! Specifications of our own, against what is made of them.

mod answers;
mod attacks;
mod bodies;
mod callers;
mod outputs;
mod parameters;
mod reader;
mod reports;
mod run;
mod schemas;
mod selection;
mod servers;
mod wire;

use openapi::{Converted, OpenApiError, Options, convert};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub fn one(text: impl Into<Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    BTreeMap::from([("api.yaml".to_owned(), text.into())])
}

/// A specification with these paths, and whatever else.
pub fn spec(version: &str, paths: Value, more: Value) -> BTreeMap<String, Vec<u8>> {
    let mut whole = json!({
        "openapi": version,
        "info": { "title": "Test", "version": "1" },
        "servers": [{ "url": "https://api.example.com/v1" }],
        "paths": paths,
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        whole[key] = value.clone();
    }
    one(whole.to_string())
}

pub fn made(files: &BTreeMap<String, Vec<u8>>) -> Result<Converted, OpenApiError> {
    convert(files, "api.yaml", &Options::default())
}

/// The table that a module reads, taken out of its source.
pub fn table(converted: &Converted) -> Value {
    let (_, rest) = converted.module.split_once("JSON.parse(").unwrap();
    let (literal, _) = rest.split_once(");\n").unwrap();
    let text: String = serde_json::from_str(literal).unwrap();
    serde_json::from_str(&text).unwrap()
}

pub fn tool(converted: &Converted, name: &str) -> Value {
    let table = table(converted);
    let tools = table["tools"].as_array().unwrap();
    let found = tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no tool {name}"));
    // What hosts do with schemas: every one must compile.
    for schema in ["input", "output"] {
        if !found[schema].is_null() {
            compiles(&found[schema]);
        }
    }
    found.clone()
}

pub fn compiles(schema: &Value) {
    let patterns = jsonschema::PatternOptions::regex().size_limit(1 << 20).dfa_size_limit(1 << 20);
    if let Err(error) = jsonschema::options().with_pattern_options(patterns).build(schema) {
        panic!("{error}: {schema:#}");
    }
}

pub fn fits(schema: &Value, value: Value) -> bool {
    jsonschema::validator_for(schema).unwrap().is_valid(&value)
}

/// The texts of all entries with this pointer.
pub fn entries(converted: &Converted, pointer: &str) -> String {
    let found = converted.report.entries.iter().filter(|entry| entry.pointer == pointer);
    found.map(|entry| entry.to_string()).collect::<Vec<_>>().join("\n")
}

pub fn fixture(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read(path).unwrap()
}

/// Calls tools of the specification that has all ways to send something.
pub fn everything(calls: Value) -> run::Ran {
    run::run(&one(fixture("everything.yaml")), calls)
}

/// An answer of JSON.
pub fn reply(status: &str, body: &str) -> Value {
    let length = body.len();
    json!({ "raw": format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}") })
}
