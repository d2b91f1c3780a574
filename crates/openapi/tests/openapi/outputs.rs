//! What tools give back.

use crate::run::run;
use crate::{compiles, entries, fits, made, spec, tool};
use serde_json::{Value, json};

fn reply(status: &str, media: &str, body: &str) -> Value {
    json!({ "raw": format!("HTTP/1.1 {status}\r\ncontent-type: {media}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()) })
}

fn get(schema: Value) -> Value {
    json!({ "/x": { "get": { "operationId": "get", "responses": { "200": { "description": "", "content": { "application/json": { "schema": schema } } } } } } })
}

fn answers(paths: Value, replies: &[Value]) -> Vec<(Value, usize)> {
    let calls: Vec<Value> = replies
        .iter()
        .map(|reply| {
            let replies = if reply.is_array() { reply.clone() } else { json!([reply]) };
            json!({ "tool": "get", "input": {}, "replies": replies })
        })
        .collect();
    let ran = run(&spec("3.0.3", paths, json!({})), calls.into());
    ran.calls.into_iter().map(|call| (call.result, call.requests.len())).collect()
}

#[test]
fn objects_are_structured() {
    let paths = get(json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } }));
    let schema = tool(&made(&spec("3.0.3", paths.clone(), json!({}))).unwrap(), "get")["output"].clone();
    let found = answers(
        paths,
        &[
            reply("200 OK", "application/json", r#"{"a":1,"__proto__":{"polluted":1}}"#),
            reply("200 OK", "application/vnd.x+json; charset=utf-8", r#"{"a":1}"#),
            reply("200 OK", "application/json", r#"{"content":[{"type":"text","text":"x"}],"isError":true,"a":2}"#),
            reply("200 OK", "application/json", "[1]"),
            reply("200 OK", "application/json", "{"),
            reply("200 OK", "text/html", "<p>"),
            json!({ "raw": "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n" }),
        ],
    );
    assert_eq!(found[0].0["content"][0]["text"], r#"{"a":1,"__proto__":{"polluted":1}}"#);
    assert_eq!(found[1].0["structuredContent"], json!({ "a": 1 }));
    assert!(fits(&schema, found[1].0["structuredContent"].clone()));
    // What an API says is data, and never the tool's own result.
    assert!(found[2].0.get("isError").is_none() && found[2].0["structuredContent"]["isError"] == true);
    for (bad, word) in [(3, "no object"), (4, "cannot be read"), (5, "text/html"), (6, "nothing")] {
        assert_eq!(found[bad].0["isError"], true);
        assert!(found[bad].0["content"][0]["text"].as_str().unwrap().contains(word), "{:?}", found[bad]);
    }
}

#[test]
fn others_stand_in_an_object() {
    for (schema, body) in [
        (json!({ "type": "array", "items": { "type": "integer" } }), "[1]"),
        (json!({ "type": "string" }), "\"a\""),
        (json!({ "type": "object", "nullable": true }), "null"),
        (json!({}), "7"),
    ] {
        let paths = get(schema);
        let output = tool(&made(&spec("3.0.3", paths.clone(), json!({}))).unwrap(), "get")["output"].clone();
        let found = answers(paths, &[reply("200 OK", "application/json", body)]);
        let expected = json!({ "result": serde_json::from_str::<Value>(body).unwrap() });
        assert_eq!(found[0].0["structuredContent"], expected);
        assert!(fits(&output, expected), "{output}");
    }
}

#[test]
fn composed_objects_are_objects() {
    for schema in [
        json!({ "allOf": [{ "type": "object" }, { "required": ["a"] }] }),
        json!({ "oneOf": [{ "type": "object", "required": ["a"] }, { "properties": { "b": {} }, "required": ["b"] }] }),
        json!({ "$ref": "#/components/schemas/A" }),
    ] {
        let more = json!({ "components": { "schemas": { "A": { "allOf": [{ "$ref": "#/components/schemas/B" }] }, "B": { "type": "object" } } } });
        let output = tool(&made(&spec("3.1.0", get(schema), more)).unwrap(), "get")["output"].clone();
        assert_eq!(output["type"], "object");
        assert!(fits(&output, json!({ "a": 1 })) && output["properties"].get("result").is_none());
    }
}

#[test]
fn errors_say_what_happened_and_not_too_much() {
    let paths = get(json!({ "type": "object" }));
    let found = answers(
        paths,
        &[
            reply("404 Not Found", "application/json", r#"{"why":"gone"}"#),
            json!({ "raw": "HTTP/1.1 500 Oh\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n", "fill": 1_000_000 }),
            reply("304 Not Modified", "text/plain", ""),
            json!({ "raw": "nonsense\r\n\r\n" }),
            json!({ "raw": "HTTP/1.1 200 OK\r\ncontent-length: 100\r\nconnection: close\r\n\r\nhalf" }),
        ],
    );
    assert_eq!(
        found[0].0,
        json!({ "isError": true, "content": [{ "type": "text", "text": "GET /x was answered with 404 Not Found\n{\"why\":\"gone\"}" }] })
    );
    let long = found[1].0["content"][0]["text"].as_str().unwrap();
    assert!(long.starts_with("GET /x was answered with 500 Oh\naaa") && long.len() < 2200, "{}", long.len());
    assert_eq!(found[2].0["isError"], true);
    for broken in &found[3..] {
        assert!(broken.0["content"][0]["text"].as_str().unwrap().contains("could not be sent"), "{broken:?}");
    }
}

#[test]
fn without_a_schema_it_is_what_it_is() {
    let paths =
        json!({ "/x": { "get": { "operationId": "get", "responses": { "200": { "content": { "text/csv": {} } } } } } });
    let found = answers(
        paths,
        &[
            reply("200 OK", "text/csv", "a,ü"),
            reply("200 OK", "application/json", r#"{"a":1}"#),
            reply("200 OK", "application/json", "[1]"),
            reply("200 OK", "image/png", "abc"),
            json!({ "raw": "HTTP/1.1 200 OK\r\ncontent-type: application/pdf\r\nconnection: close\r\n\r\n", "fill": 3 }),
            json!([{ "raw": "HTTP/1.1 302 Found\r\nlocation: /v1/y\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" }, reply("200 OK", "text/plain", "there")]),
            json!({ "raw": "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n" }),
        ],
    );
    assert_eq!(found[0].0, json!({ "content": [{ "type": "text", "text": "a,ü" }] }));
    assert_eq!(found[1].0["structuredContent"], json!({ "a": 1 }));
    assert_eq!(found[2].0, json!({ "content": [{ "type": "text", "text": "[1]" }] }));
    assert_eq!(found[3].0["content"][0], json!({ "type": "image", "data": "YWJj", "mimeType": "image/png" }));
    assert_eq!(found[4].0["content"][0]["text"], "aaa");
    assert_eq!((found[5].0["content"][0]["text"].as_str(), found[5].1), (Some("there"), 2));
    assert!(found[6].0.get("isError").is_none());
}

#[test]
fn head_shows_the_head() {
    let paths = json!({ "/x": { "head": { "operationId": "get", "responses": { "200": { "content": { "application/json": { "schema": { "type": "object" } } } } } } } });
    let found = answers(paths, &[json!({ "raw": "HTTP/1.1 200 OK\r\nx-count: 7\r\nconnection: close\r\n\r\n" })]);
    assert_eq!(found[0].0["structuredContent"]["headers"]["x-count"], "7");
}

#[test]
fn successes_that_differ_have_no_schema() {
    let content = |kind: &str| json!({ "content": { "application/json": { "schema": { "type": kind } } } });
    for (responses, has) in [
        (json!({ "200": content("object"), "404": content("string"), "default": content("array") }), true),
        (json!({ "200": content("object"), "201": content("object") }), true),
        (json!({ "2XX": content("object") }), true),
        (json!({ "200": content("object"), "202": content("string") }), false),
        (json!({ "200": content("object"), "204": {} }), false),
        (json!({ "default": content("object") }), false),
        (json!({ "200": { "$ref": "https://elsewhere.example" } }), false),
    ] {
        let paths = json!({ "/x": { "get": { "operationId": "get", "responses": responses } } });
        let converted = made(&spec("3.0.3", paths, json!({}))).unwrap();
        assert_eq!(!tool(&converted, "get")["output"].is_null(), has, "{responses}");
        assert_eq!(converted.report.entries.is_empty(), has || responses.get("default").is_some(), "{responses}");
    }
}

#[test]
fn recursion_stays_recursion() {
    let more = json!({ "components": { "schemas": {
        "Node": { "type": "object", "properties": { "next": { "$ref": "#/components/schemas/Node" }, "v": { "type": "integer" } }, "required": ["v"] } } } });
    let converted = made(&spec("3.0.3", get(json!({ "$ref": "#/components/schemas/Node" })), more)).unwrap();
    let output = tool(&converted, "get")["output"].clone();
    compiles(&output);
    assert!(fits(&output, json!({ "v": 1, "next": { "v": 2, "next": { "v": 3 } } })));
    assert!(!fits(&output, json!({ "v": 1, "next": { "v": 2, "next": {} } })));
    assert_eq!(entries(&converted, "/paths/~1x/get"), "");
}
