//! Schemas of 3.0 and 3.1.

use crate::{compiles, entries, fits, made, spec, table, tool};
use openapi::{Level, Options, convert};
use serde_json::{Value, json};

/// The schema of the query parameter `p`, with the whole input around it.
fn input(version: &str, schema: Value, schemas: Value) -> (Value, openapi::Converted) {
    let paths = json!({ "/x": { "get": { "operationId": "get", "parameters": [{ "name": "p", "in": "query", "schema": schema }] } } });
    let converted = made(&spec(version, paths, json!({ "components": { "schemas": schemas } }))).unwrap();
    (tool(&converted, "get")["input"].clone(), converted)
}

const AT: &str = "/paths/~1x/get/parameters/0/schema";

#[test]
fn quirks_of_3_0() {
    for (schema, expected) in [
        (json!({ "type": "string", "nullable": true }), json!({ "type": ["string", "null"] })),
        (
            json!({ "type": "string", "nullable": true, "enum": ["a"] }),
            json!({ "type": ["string", "null"], "enum": ["a", null] }),
        ),
        (
            json!({ "nullable": true, "allOf": [{ "type": "string" }] }),
            json!({ "anyOf": [{ "allOf": [{ "type": "string" }] }, { "type": "null" }] }),
        ),
        (
            json!({ "type": "integer", "minimum": 1, "exclusiveMinimum": true }),
            json!({ "type": "integer", "exclusiveMinimum": 1 }),
        ),
        (
            json!({ "type": "integer", "maximum": 1, "exclusiveMaximum": false }),
            json!({ "type": "integer", "maximum": 1 }),
        ),
        (json!({ "type": "string", "example": "a" }), json!({ "type": "string", "examples": ["a"] })),
        (json!({ "type": "string", "maxLength": 3.0 }), json!({ "type": "string", "maxLength": 3 })),
    ] {
        let (input, converted) = input("3.0.3", schema, json!({}));
        assert_eq!(input["properties"]["p"], expected);
        assert_eq!(converted.report.entries, []);
    }
}

#[test]
fn json_schema_of_3_1_goes_over() {
    let schema = json!({
        "type": ["object", "null"], "exclusiveMinimum": 1, "const": 7, "examples": [1, 2],
        "prefixItems": [{ "type": "string" }], "patternProperties": { "^a": { "type": "string" } },
        "if": { "required": ["a"] }, "then": {}, "else": false, "propertyNames": { "pattern": "^[a-z]+$" },
        "dependentRequired": { "a": ["b"] }, "unevaluatedProperties": false, "contains": {}, "minContains": 1,
    });
    let (input, converted) = input("3.1.0", schema.clone(), json!({}));
    assert_eq!(input["properties"]["p"], schema);
    assert_eq!(converted.report.entries, []);
}

#[test]
fn a_bad_keyword_does_not_take_the_server_down() {
    for (key, value) in [
        ("type", json!("any")),
        ("type", json!(7)),
        ("required", json!(true)),
        ("minimum", json!("3")),
        ("enum", json!([])),
        ("enum", json!("a")),
        ("pattern", json!("(?=a)b")),
        ("pattern", json!("(a)\\1")),
        ("pattern", json!("[")),
        ("pattern", json!("((a{1000}){1000}){1000}")),
        ("patternProperties", json!({ "(?!a)": {} })),
        ("maxLength", json!(-1)),
        ("multipleOf", json!(0)),
        ("properties", json!([])),
        ("allOf", json!([])),
        ("allOf", json!({})),
        ("format", json!(7)),
        ("uniqueItems", json!("yes")),
        ("items", json!([{}])),
        ("not", json!("a")),
        ("examples", json!({})),
        ("default", json!("x".repeat(5000))),
        ("discriminator", json!({ "propertyName": "a" })),
        ("xml", json!({})),
        ("externalDocs", json!({})),
        ("$id", json!("urn:a")),
        ("$anchor", json!("a")),
        ("unheardOf", json!(1)),
        ("dependentRequired", json!({ "a": "b" })),
        ("x-own", json!(1)),
    ] {
        let (_, converted) = input("3.1.0", json!({ (key): value }), json!({}));
        let [entry] = &converted.report.entries[..] else { panic!("{key} {value}: {:?}", converted.report) };
        assert!(entry.pointer.starts_with(&format!("{AT}/{key}")) && entry.level == Level::Ignored, "{entry}");
    }
    let (input, converted) = input("3.0.0", json!({ "type": "file" }), json!({}));
    assert_eq!(input["properties"]["p"]["type"], "string");
    assert!(entries(&converted, &format!("{AT}/type")).starts_with("changed"));
}

#[test]
fn references() {
    let schemas = json!({
        "A": { "type": "object", "properties": { "b": { "$ref": "#/components/schemas/B~1~0%20c" } } },
        "B/~ c": { "type": "array", "items": { "$ref": "#/components/schemas/A" }, "maxItems": 2 },
        "A ": { "type": "string" },
    });
    let (input, _) = input(
        "3.1.0",
        json!({ "anyOf": [{ "$ref": "#/components/schemas/A" }, { "$ref": "#/components/schemas/A%20" }] }),
        schemas,
    );
    let names: Vec<&String> = input["$defs"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["A", "A_", "B_c"]);
    assert!(fits(&input, json!({ "p": { "b": [{ "b": [] }] } })));
    assert!(!fits(&input, json!({ "p": { "b": [{ "b": [1] }] } })));
    assert!(fits(&input, json!({ "p": "text" })));
}

#[test]
fn siblings_of_a_reference_count_since_3_1() {
    let schemas = json!({ "A": { "type": "integer" } });
    let schema = json!({ "$ref": "#/components/schemas/A", "maximum": 3 });
    let (new, _) = input("3.1.0", schema.clone(), schemas.clone());
    assert!(!fits(&new, json!({ "p": 4 })));
    let (old, converted) = input("3.0.0", schema, schemas);
    assert!(fits(&old, json!({ "p": 4 })) && !fits(&old, json!({ "p": "a" })));
    assert!(entries(&converted, &format!("{AT}/maximum")).starts_with("ignored"));
}

#[test]
fn a_schema_that_is_nothing_but_itself_refuses_its_operation() {
    for schemas in [
        json!({ "A": { "$ref": "#/components/schemas/A" } }),
        json!({ "A": { "$ref": "#/components/schemas/B" }, "B": { "$ref": "#/components/schemas/A" } }),
        json!({ "A": { "allOf": [{ "$ref": "#/components/schemas/B" }] }, "B": { "anyOf": [{ "type": "string" }, { "not": { "$ref": "#/components/schemas/A" } }] } }),
    ] {
        let reference = json!({ "$ref": "#/components/schemas/A" });
        let paths = json!({
            "/ok": { "get": { "responses": { "200": { "content": { "application/json": { "schema": reference } } } } } },
            "/bad": { "get": { "parameters": [{ "name": "p", "in": "query", "schema": reference }] } },
            "/body": { "post": { "requestBody": { "content": { "application/json": { "schema": reference } } } } },
        });
        let converted = made(&spec("3.1.0", paths, json!({ "components": { "schemas": schemas } }))).unwrap();
        assert_eq!(converted.tools, 1, "{:?}", converted.report);
        assert!(tool(&converted, "get_ok")["output"].is_null());
        assert!(converted.report.refused().all(|entry| entry.text.contains("itself")), "{:?}", converted.report);
    }
}

#[test]
fn what_a_host_does_not_take_is_loosened() {
    fn check(schema: &Value) -> Result<(), String> {
        if schema.to_string().contains("$ref") { Err("too costly".to_owned()) } else { Ok(()) }
    }
    let schemas = json!({ "A": { "type": "object", "properties": { "a": { "$ref": "#/components/schemas/A" } } } });
    let reference = json!({ "$ref": "#/components/schemas/A" });
    let paths = json!({ "/x": { "get": {
        "operationId": "get",
        "parameters": [{ "name": "p", "in": "query", "description": "deep", "schema": reference }, { "name": "q", "in": "query", "schema": { "type": "integer" } }],
        "responses": { "200": { "content": { "application/json": { "schema": reference } } } },
    } } });
    let files = spec("3.1.0", paths, json!({ "components": { "schemas": schemas } }));
    let options = Options { schema_check: Some(check), ..Options::default() };
    let converted = convert(&files, "api.yaml", &options).unwrap();
    let made = tool(&converted, "get");
    assert_eq!(made["input"]["properties"], json!({ "p": { "description": "deep" }, "q": { "type": "integer" } }));
    assert!(made["output"].is_null());
    assert!(entries(&converted, "/paths/~1x/get").starts_with("changed"));
    assert!(entries(&converted, "/paths/~1x/get/responses").contains("too costly"));
    let never: openapi::SchemaCheck = |_| Err("no".to_owned());
    assert!(convert(&files, "api.yaml", &Options { schema_check: Some(never), ..Options::default() }).is_err());
}

#[test]
fn references_that_branch_do_not_multiply() {
    let mut schemas = json!({ "S40": { "type": "string" } });
    for n in 0..40 {
        let next = json!({ "$ref": format!("#/components/schemas/S{}", n + 1) });
        schemas[format!("S{n}")] = json!({ "properties": { "a": next, "b": next, "c": next } });
    }
    let (input, converted) = input("3.1.0", json!({ "$ref": "#/components/schemas/S0" }), schemas);
    assert_eq!(input["$defs"].as_object().unwrap().len(), 41);
    assert!(converted.module.len() < 40_000);
}

#[test]
fn a_schema_with_too_many_parts_refuses_its_operation() {
    let properties: Value = (0..6_000).map(|n| (format!("p{n}"), json!({}))).collect::<serde_json::Map<_, _>>().into();
    let paths = json!({
        "/big": { "get": { "parameters": [{ "name": "p", "in": "query", "schema": { "properties": properties } }] } },
        "/ok": { "get": {} },
    });
    let converted = made(&spec("3.1.0", paths, json!({}))).unwrap();
    assert_eq!(converted.tools, 1);
    assert!(converted.report.entries[0].text.contains("5000 parts"));
}

#[test]
fn all_fixtures_make_schemas_that_compile() {
    let mut count = 0;
    for name in ["petstore.yaml", "styles.yaml"] {
        let base_url = Some("https://api.example.com".to_owned());
        let converted =
            convert(&crate::one(crate::fixture(name)), "api.yaml", &Options { base_url, ..Options::default() })
                .unwrap();
        for tool in table(&converted)["tools"].as_array().unwrap() {
            compiles(&tool["input"]);
            if !tool["output"].is_null() {
                compiles(&tool["output"]);
            }
            count += 1;
        }
    }
    assert_eq!(count, 29);
}
