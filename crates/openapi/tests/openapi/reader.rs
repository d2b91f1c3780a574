//! The reader: nothing panics, nothing explodes, nothing takes for ever.

use crate::{fixture, made, one};
use openapi::{Options, convert};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn bombs_and_depths() {
    let head = "openapi: 3.0.0\nservers: [{url: 'https://a.example'}]\npaths: {/a: {get: {operationId: a}}}\n";
    let mut bomb = head.to_owned() + "x-0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for n in 1..20 {
        bomb += &format!("x-{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(", "));
    }
    assert!(made(&one(bomb)).unwrap_err().to_string().contains("aliases"));
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for depth in [99, 1_000, 100_000] {
            let deep = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let json = format!("{{\"openapi\":\"3.0.0\",\"paths\":{{}},\"x-a\":{deep}}}");
            let error = made(&one(json)).unwrap_err().to_string();
            assert_eq!(error.contains("nested"), depth > 99, "{error}");
            let yaml = format!("{head}x-a: {deep}\n");
            let read = made(&one(yaml));
            assert_eq!(read.is_ok(), depth == 99, "{depth}: {read:?}");
        }
    }
    let indented: String = (0..2_000).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    assert!(made(&one(indented)).is_err());
    let large = format!("{head}x-a: '{}'\n", "a".repeat(4 << 20));
    assert!(made(&one(large)).unwrap_err().to_string().contains("bytes"));
    let wide = format!("{head}x-a: [{}]\n", "1,".repeat(600_000));
    assert!(made(&one(wide)).unwrap_err().to_string().contains("values"));
}

#[test]
fn long_ways_to_a_value_are_bounded() {
    let long = "k".repeat(3_000);
    for levels in [2, 3] {
        let open: String = (0..levels).map(|_| format!("{{\"{long}\":")).collect();
        let json = format!("{{\"openapi\":\"3.0.0\",\"paths\":{{}},\"x-a\":{open}1{}}}", "}".repeat(levels));
        assert_eq!(made(&one(json)).unwrap_err().to_string().contains("on the way"), levels == 3);
        let mut yaml = "openapi: 3.0.0\npaths: {}\nx-0: &a0 1\n".to_owned();
        for n in 0..levels {
            yaml += &format!("x-{}: &a{} {{\"{long}\": *a{n}}}\n", n + 1, n + 1);
        }
        // The scanner has a bound of its own for keys in one line, so they are given the long way.
        let yaml = yaml.replace("{\"", "{? \"").replace("\": ", "\" : ");
        let error = made(&one(yaml)).unwrap_err().to_string();
        assert_eq!(error.contains("on the way"), levels == 3, "{error}");
    }
}

#[test]
fn many_files_are_bounded_too() {
    let mut files = one("openapi: 3.0.0\npaths: {}\nx-a: {$ref: f0.yaml}\n");
    for n in 0..10 {
        let more = format!("$ref: f{}.yaml\na: '{}'\n", n + 1, "a".repeat(4_000_000));
        files.insert(format!("f{n}.yaml"), more.into());
    }
    assert!(made(&files).unwrap_err().to_string().contains("together"));
}

#[test]
fn references_in_a_circle_end() {
    let text = "openapi: 3.0.0\nservers: [{url: 'https://a.example'}]\npaths:\n  /a: {$ref: '#/paths/~1b'}\n  /b: {$ref: '#/paths/~1a'}\n  /c:\n    get:\n      \
                parameters: [{$ref: '#/components/parameters/P'}]\n  /d: {get: {requestBody: {$ref: '#/components/requestBodies/B'}}}\n  \
                /e: {get: {operationId: e, responses: {'200': {$ref: '#/components/responses/R'}}}}\n\
                components:\n  parameters: {P: {$ref: '#/components/parameters/P'}}\n  requestBodies: {B: {$ref: '#/components/requestBodies/B'}}\n  \
                responses: {R: {$ref: '#/components/responses/R'}}\n";
    let converted = made(&one(text)).unwrap();
    assert_eq!(converted.tools, 1);
    assert_eq!(converted.report.refused().count(), 4, "{:?}", converted.report);
}

/// Puts something else somewhere.
fn mutate(value: &mut Value, path: &[usize], with: &Value) {
    let Some((first, rest)) = path.split_first() else {
        *value = with.clone();
        return;
    };
    match value {
        Value::Object(map) if !map.is_empty() => {
            let index = first % map.len();
            if let Some((_, inner)) = map.iter_mut().nth(index) {
                mutate(inner, rest, with);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let index = first % items.len();
            mutate(&mut items[index], rest, with);
        }
        value => *value = with.clone(),
    }
}

fn anything() -> impl Strategy<Value = Value> {
    let references = ["#", "#/", "#/paths", "#/components/schemas/Pet", "x.yaml#/a", "//x", "#a", ""];
    prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(-1)),
        Just(json!(1e300)),
        Just(json!([])),
        Just(json!({})),
        Just(json!("")),
        Just(json!("\u{2028}`${x}`\\\"")),
        Just(json!([[[{}]]])),
        Just(json!({ "__proto__": { "a": 1 }, "constructor": 1 })),
        (0..references.len()).prop_map(move |index| json!({ "$ref": references[index] })),
        ".{0,20}".prop_map(Value::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_specifications_make_a_server_or_an_error(
        changes in prop::collection::vec((prop::collection::vec(0usize..50, 1..9), anything()), 1..6),
    ) {
        let mut value = whole();
        for (path, with) in &changes {
            mutate(&mut value, path, with);
        }
        let base_url = Some("https://a.example".to_owned());
        if let Ok(converted) = convert(&one(value.to_string()), "api.yaml", &Options { base_url, ..Options::default() }) {
            prop_assert!(converted.module.is_ascii());
            for made in crate::table(&converted)["tools"].as_array().unwrap() {
                crate::compiles(&made["input"]);
                if !made["output"].is_null() {
                    crate::compiles(&made["output"]);
                }
            }
        }
    }

    #[test]
    fn damaged_text_makes_a_server_or_an_error(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..6, "[\\[\\]{}:,\"'#&*!|>%@`~?\\- \n\ta-c0-9é]{0,4}"), 1..8),
    ) {
        let mut text = String::from_utf8(fixture("petstore.yaml")).unwrap();
        for (at, remove, insert) in &cuts {
            let chars: Vec<char> = text.chars().collect();
            let at = at.index(chars.len());
            let end = (at + remove).min(chars.len());
            text = chars[..at].iter().chain(insert.chars().collect::<Vec<_>>().iter()).chain(&chars[end..]).collect();
        }
        let _ = made(&one(text));
    }

    #[test]
    fn any_text_makes_an_error(text in "[\\[\\]{}:,\"'#&*!|>%@`~?<= \n\r\ta-c0-9é\u{0}\u{85}\u{2028}\u{feff}-]{0,60}") {
        prop_assert!(made(&one(text)).is_err());
    }

    #[test]
    fn any_bytes_make_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(made(&one(bytes)).is_err());
    }
}

/// The largest fixture as a tree.
fn whole() -> Value {
    json!({
        "openapi": "3.0.3", "info": { "title": "T", "version": "1" }, "servers": [{ "url": "https://{a}.example", "variables": { "a": { "default": "b", "enum": ["b"] } } }],
        "security": [{ "key": [] }, { "other": [] }],
        "paths": {
            "/pets/{id}": {
                "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }],
                "get": { "operationId": "get", "summary": "s", "description": "d", "tags": ["a"], "parameters": [
                    { "name": "q", "in": "query", "style": "form", "explode": true, "schema": { "type": "array", "items": { "$ref": "#/components/schemas/Pet" } } },
                    { "$ref": "#/components/parameters/P" } ],
                    "responses": { "200": { "description": "", "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Pet" } } } }, "default": { "$ref": "#/components/responses/R" } } },
                "post": { "operationId": "post", "security": [], "requestBody": { "required": true, "content": { "multipart/form-data": {
                    "schema": { "type": "object", "properties": { "f": { "type": "string", "format": "binary" }, "g": { "type": "array", "items": { "type": "string" } } } },
                    "encoding": { "f": { "contentType": "image/png" }, "g": { "style": "form" } } } } } },
                "put": { "requestBody": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Pet" } } } } },
            },
        },
        "components": {
            "parameters": { "P": { "name": "h", "in": "header", "schema": { "type": "integer", "minimum": 1, "exclusiveMinimum": true } } },
            "responses": { "R": { "description": "", "content": { "text/plain": {} } } },
            "securitySchemes": { "key": { "type": "apiKey", "in": "header", "name": "k" }, "other": { "type": "http", "scheme": "basic" } },
            "schemas": { "Pet": { "type": "object", "required": ["a"], "nullable": true, "properties": {
                "a": { "type": "string", "pattern": "^a", "enum": ["a"], "nullable": true }, "b": { "allOf": [{ "$ref": "#/components/schemas/Pet" }] },
                "c": { "oneOf": [{ "type": "integer", "maximum": 3 }, { "type": "array", "items": {}, "minItems": 1 }] },
                "d": { "type": "object", "additionalProperties": { "type": "string" }, "example": { "a": 1 } } } } },
        },
    })
}
