//! Names and texts that want to be more than that.

use crate::run::{Run, run};
use crate::{one, spec, tool};
use openapi::{Options, convert};
use serde_json::{Value, json};

const HOSTILE: &[&str] = &[
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "hasOwnProperty",
    "then",
    "`${globalThis.polluted=1}`",
    "\"); globalThis.polluted=1; (\"",
    "\u{2028}globalThis.polluted=1//",
    "\u{2029}",
    "</script>",
    "*/ globalThis.polluted=1 /*",
    "\\",
    "\\u0022",
    "\n",
    "\r\n",
    "\0",
    "'",
    "\u{202e}",
    "\u{feff}",
    "💥",
];

/// One more tool in the compartment that all calls share, which says what they have left there.
const POLLUTED: &str =
    "{ name: 'polluted', run: () => ({ keys: Object.keys(Object.prototype), polluted: 'polluted' in globalThis }) }";

#[test]
fn hostile_names_are_names() {
    let mut paths = serde_json::Map::new();
    for (index, name) in HOSTILE.iter().enumerate() {
        let properties: Value = json!({ (*name): { "type": "string", "title": name, "description": name, "default": name, "enum": [name] } });
        let operation = json!({
            "operationId": name, "summary": name, "description": name, "tags": [name],
            "parameters": [{ "name": name, "in": "query", "description": name, "schema": { "type": "string", "example": name } }],
            "requestBody": { "description": name, "required": true, "content": { "application/json": { "schema": { "type": "object", "properties": { "inner": { "properties": properties } } } } } },
            "responses": { "200": { "description": name, "content": { "application/json": { "schema": { "type": "object", "properties": properties } } } } },
        });
        paths.insert(format!("/{index}{}", name.replace(['?', '#', '{', '}'], "")), json!({ "post": operation }));
    }
    let more = json!({ "info": { "title": HOSTILE.concat(), "version": HOSTILE[7], "description": HOSTILE.concat() } });
    let files = spec("3.1.0", paths.into(), more);
    let names: Vec<String> = crate::made(&files).unwrap().endpoints.into_iter().map(|endpoint| endpoint.tool).collect();
    assert_eq!(names.len(), HOSTILE.len());
    let mut calls = Vec::new();
    for name in &names {
        let tool = tool(&crate::made(&files).unwrap(), name);
        let arguments = tool["input"]["properties"].as_object().unwrap().keys();
        let input: serde_json::Map<String, Value> = arguments.map(|argument| (argument.clone(), json!("v"))).collect();
        calls.push(json!({ "tool": name, "input": input }));
    }
    calls.push(json!({ "tool": "polluted", "input": {} }));
    let ran = Run::new(&files).whole_host().shared(POLLUTED).calls(calls.into());
    assert_eq!(ran.calls.last().unwrap().result, json!({ "keys": [], "polluted": false }));
    assert!(ran.converted.module.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)));
    let shown = ran.surface["tools"].as_array().unwrap();
    assert_eq!(shown.len(), HOSTILE.len() + 1);
    let titles: Vec<&str> = shown.iter().filter_map(|tool| tool["title"].as_str()).collect();
    assert!(titles.contains(&"`${globalThis.polluted=1}`") && titles.contains(&"__proto__"));
    for (name, answer) in names.iter().zip(&ran.calls) {
        let line = &answer.request().line;
        assert!(line.starts_with("POST /") && line.ends_with("=v HTTP/1.1") && !line.contains(".."), "{name}: {line}");
        assert_eq!(answer.request().body, r#"{"inner":"v"}"#);
        assert_eq!(answer.result["structuredContent"], json!({}));
    }
}

#[test]
fn no_tool_can_reach_another_host() {
    let paths = json!({
        "//evil.example/x": { "get": { "operationId": "double" } },
        "/@evil.example": { "get": { "operationId": "at" } },
        "/\\evil.example": { "get": { "operationId": "back" } },
        "/{p}": { "get": { "operationId": "whole", "parameters": [{ "name": "p", "in": "path", "required": true, "schema": {} }] } },
    });
    let calls = json!([
        { "tool": "double", "input": {} }, { "tool": "at", "input": {} }, { "tool": "back", "input": {} },
        { "tool": "whole", "input": { "p": "/evil.example" } }, { "tool": "whole", "input": { "p": "@evil.example:80" } },
    ]);
    let ran = Run::new(&spec("3.1.0", paths, json!({}))).whole_host().calls(calls);
    let lines: Vec<&str> = ran.calls.iter().map(|call| call.request().line.as_str()).collect();
    let expected =
        ["//evil.example/x", "/@evil.example", "/%5Cevil.example", "/%2Fevil.example", "/%40evil.example%3A80"];
    assert_eq!(lines, expected.map(|path| format!("GET {path} HTTP/1.1")));
}

#[test]
fn messages_show_what_is_hidden_and_stay_short() {
    let name = format!("\u{202e}\u{1b}[31m{}", "x".repeat(100_000));
    let text = json!({ "openapi": "3.0.0", "servers": [{ "url": "https://a.example" }], "paths": { "/a": { "get": {
        "operationId": name, "security": [{ name.as_str(): [] }] } } } });
    let error = crate::made(&one(text.to_string())).unwrap_err().to_string();
    assert!(error.len() < 1_500 && !error.contains(['\u{202e}', '\u{1b}']), "{} bytes", error.len());
}

#[test]
fn as_many_tools_as_there_may_be() {
    let operation = |number: usize| {
        let parameter = |p: usize| json!({ "name": format!("p{p}"), "in": "query", "description": "d".repeat(200), "schema": { "type": "string" } });
        let parameters: Vec<Value> = (0..15).map(parameter).collect();
        (format!("/{number}"), json!({ "get": { "operationId": format!("tool{number}"), "parameters": parameters } }))
    };
    let paths: serde_json::Map<String, Value> = (0..200).map(operation).collect();
    let ran = run(&spec("3.1.0", paths.into(), json!({})), json!([{ "tool": "tool199", "input": { "p14": "x" } }]));
    assert_eq!(ran.surface["tools"].as_array().unwrap().len(), 200);
    assert!(ran.surface.to_string().len() > 700_000, "{} bytes", ran.surface.to_string().len());
    assert_eq!(ran.calls[0].wire(), "GET /v1/199?p14=x HTTP/1.1\n");
}

/// Of a specification that is too large for one server, what is asked for can be had.
#[test]
fn one_of_very_many() {
    let operation = |number: usize| (format!("/{number}"), json!({ "get": { "operationId": "same name" } }));
    let paths: serde_json::Map<String, Value> = (0..20_000).map(operation).collect();
    let files = spec("3.0.0", paths.into(), json!({}));
    assert!(crate::made(&files).is_err());
    let only = |base| Options { base_url: Some(base), include: vec!["GET /19999".to_owned()], ..Options::default() };
    let alone = convert(&files, "api.yaml", &only("https://a.example".to_owned())).unwrap();
    let name = &alone.endpoints[0].tool;
    let ran = Run::new(&files).options(only).calls(json!([{ "tool": name, "input": {} }]));
    assert_eq!((ran.converted.tools, ran.calls[0].wire().as_str()), (1, "GET /v1/19999 HTTP/1.1\n"));
    assert!(name.starts_with("same_name_"), "{name}");
}
