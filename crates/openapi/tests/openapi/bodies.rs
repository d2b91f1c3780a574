//! Bodies, as bytes on the wire.

use crate::run::{Answer, run};
use crate::{entries, fits, spec, tool};
use serde_json::{Value, json};

fn post(content: Value, required: bool) -> Value {
    json!({ "/x": { "post": { "operationId": "post", "requestBody": { "required": required, "content": content } } } })
}

/// Makes one call for each input.
fn send(paths: Value, inputs: &[Value]) -> (openapi::Converted, Vec<Answer>) {
    let calls: Vec<Value> = inputs.iter().map(|input| json!({ "tool": "post", "input": input })).collect();
    let ran = run(&spec("3.0.3", paths, json!({})), calls.into());
    (ran.converted, ran.calls)
}

#[test]
fn json_is_flat_when_it_can_be() {
    let schema = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string" }, "n": { "type": "integer" }, "__proto__": { "type": "string" }, "id": { "type": "string", "readOnly": true } } });
    let content = json!({ "application/json; charset=utf-8": { "schema": schema }, "application/xml": {} });
    let mut evil: Value = serde_json::from_str(r#"{ "__proto__": "x", "name": "a" }"#).unwrap();
    let (converted, calls) = send(post(content, true), &[json!({ "name": "ü", "n": null }), evil.take(), json!({})]);
    assert_eq!(calls[0].request().body, "{\"n\":null,\"name\":\"\u{c3}\u{bc}\"}");
    assert_eq!(calls[0].request().headers["content-type"], "application/json; charset=utf-8");
    assert_eq!(calls[1].request().body, r#"{"__proto__":"x","name":"a"}"#);
    assert_eq!(calls[2].request().body, "{}");
    let input = &tool(&converted, "post")["input"];
    assert_eq!(input["required"], json!(["name"]));
    assert!(!fits(input, json!({ "name": "a", "more": 1 })) && input["properties"].get("id").is_none());
    let said = entries(&converted, "/paths/~1x/post/requestBody/content/application~1xml");
    assert!(said.starts_with("ignored") && said.contains("application/json"), "{said}");
}

#[test]
fn json_is_one_argument_when_it_cannot() {
    let open = json!({ "type": "object", "properties": { "a": {} }, "additionalProperties": { "type": "string" } });
    let optional = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] });
    for (schema, required, body) in [
        (json!({ "type": "array", "items": {} }), true, json!([1, "a"])),
        (json!({ "type": "string" }), true, json!("text")),
        (open, true, json!({ "a": 1, "b": "c" })),
        (optional, false, json!({ "a": "b" })),
        (json!({ "oneOf": [{ "type": "object" }, { "type": "integer" }] }), true, json!(7)),
    ] {
        let paths = post(json!({ "application/vnd.x+json": { "schema": schema } }), required);
        let (converted, calls) = send(paths, &[json!({ "body": body }), json!({})]);
        assert_eq!(calls[0].request().body, body.to_string());
        assert_eq!(calls[0].request().headers["content-type"], "application/vnd.x+json");
        assert_eq!(calls[1].request().body, "");
        assert!(!calls[1].request().headers.contains_key("content-type"));
        let input = &tool(&converted, "post")["input"];
        assert!(fits(input, json!({ "body": body })), "{input}");
        assert_eq!(fits(input, json!({})), !required);
    }
}

#[test]
fn forms() {
    let schema = json!({ "type": "object", "properties": {
        "text": { "type": "string" }, "list": { "type": "array" }, "object": { "type": "object" },
        "deep": { "type": "object" }, "pipe": { "type": "array" }, "raw": { "type": "string" }, "json": { "type": "array" } } });
    let encoding = json!({
        "deep": { "style": "deepObject", "explode": true }, "pipe": { "style": "pipeDelimited" },
        "raw": { "allowReserved": true }, "json": { "contentType": "application/json" }, "nobody": {} });
    let paths = post(json!({ "application/x-www-form-urlencoded": { "schema": schema, "encoding": encoding } }), false);
    let inputs = [
        json!({ "text": "a b&c=ü+~*" }),
        json!({ "list": ["a b", 1, { "c": 2 }], "text": null }),
        json!({ "object": { "a": "b c" } }),
        json!({ "deep": { "a b": 1 } }),
        json!({ "pipe": ["a", "b c"] }),
        json!({ "raw": "a/b?c d&e" }),
        json!({ "json": [1, "a"] }),
        json!({}),
    ];
    let (converted, calls) = send(paths, &inputs);
    let bodies: Vec<&str> = calls.iter().map(|call| call.request().body.as_str()).collect();
    let expected = [
        "text=a+b%26c%3D%C3%BC%2B~%2A",
        "list=a+b&list=1&list=%7B%22c%22%3A2%7D",
        "object=%7B%22a%22%3A%22b+c%22%7D",
        "deep%5Ba%20b%5D=1",
        "pipe=a%7Cb%20c",
        "raw=a/b?c%20d%26e",
        "json=%5B1%2C%22a%22%5D",
        "",
    ];
    assert_eq!(bodies, expected);
    assert_eq!(calls[0].request().headers["content-type"], "application/x-www-form-urlencoded");
    assert!(
        entries(&converted, "/paths/~1x/post/requestBody/content/application~1x-www-form-urlencoded/encoding/nobody")
            .contains("no property")
    );
}

#[test]
fn multipart() {
    let schema = json!({ "type": "object", "required": ["file"], "properties": {
        "file": { "type": "string", "format": "binary", "description": "A file" },
        "files": { "type": "array", "items": { "type": "string", "format": "binary" } },
        "text": { "type": "string" }, "list": { "type": "array", "items": { "type": "integer" } },
        "object": { "type": "object" }, "csv": { "type": "string" }, "a\"b": { "type": "string" } } });
    let encoding = json!({
        "file": { "contentType": "image/png, image/jpeg", "headers": { "X-A": {} } },
        "csv": { "contentType": "text/csv" }, "text": { "style": "form" } });
    let paths = post(json!({ "multipart/form-data": { "schema": schema, "encoding": encoding } }), true);
    let inputs = [
        json!({ "file": { "base64": "AP8N", "filename": "a\"\r\nb.png" }, "text": "ü", "list": [1, 2], "object": { "a": 1 }, "csv": "1,2" }),
        json!({ "file": { "text": "t", "contentType": "text/html" }, "files": [{ "base64": "YQ==" }, { "text": "b", "filename": "b.txt" }], "a_b": "q" }),
        json!({ "file": { "text": "t", "contentType": "text/html\r\nx: y" } }),
        json!({ "file": { "base64": "%%%" } }),
        json!({ "file": { "base64": "YQ==", "text": "a" } }),
        json!({ "file": "plain" }),
    ];
    let (converted, calls) = send(paths, &inputs);
    let split = |answer: &Answer| {
        let request = answer.request();
        let (media, boundary) = request.headers["content-type"].split_once("; boundary=").unwrap();
        assert_eq!(media, "multipart/form-data");
        request.body.replace(boundary, "B")
    };
    let part = |name: &str, rest: &str| format!("--B\r\ncontent-disposition: form-data; name=\"{name}\"{rest}\r\n");
    let first = part("file", "; filename=\"a%22%0D%0Ab.png\"\r\ncontent-type: image/png\r\n\r\n\u{0}\u{ff}\r")
        + &part("text", "\r\n\r\n\u{c3}\u{bc}")
        + &part("list", "\r\n\r\n1")
        + &part("list", "\r\n\r\n2")
        + &part("object", "\r\ncontent-type: application/json\r\n\r\n{\"a\":1}")
        + &part("csv", "\r\ncontent-type: text/csv\r\n\r\n1,2")
        + "--B--\r\n";
    // Fields go out in the order of the specification's properties.
    let sorted = |text: &str| {
        let mut parts: Vec<String> = text.split("--B").map(str::to_owned).collect();
        parts.sort();
        parts
    };
    assert_eq!(sorted(&split(&calls[0])), sorted(&first));
    let second = split(&calls[1]);
    assert!(second.contains(&part("file", "; filename=\"file\"\r\ncontent-type: text/html\r\n\r\nt")), "{second}");
    assert!(
        second.contains(&part("files", "; filename=\"files\"\r\ncontent-type: application/octet-stream\r\n\r\na")),
        "{second}"
    );
    assert!(second.contains(&part("files", "; filename=\"b.txt\"\r\ncontent-type: text/plain\r\n\r\nb")), "{second}");
    assert!(second.contains(&part("a%22b", "\r\n\r\nq")), "{second}");
    for bad in &calls[2..] {
        assert!(bad.requests.is_empty() && bad.result["isError"] == true, "{:?}", bad.result);
    }
    let input = &tool(&converted, "post")["input"];
    let taken: Vec<bool> = inputs.iter().map(|value| fits(input, value.clone())).collect();
    assert_eq!(taken, [true, true, false, true, false, false]);
    assert_eq!(input["properties"]["file"]["description"], "A file");
    let at = "/paths/~1x/post/requestBody/content/multipart~1form-data/encoding";
    assert!(entries(&converted, &format!("{at}/file/contentType")).contains("`image/png`"));
    assert!(entries(&converted, &format!("{at}/file/headers")).starts_with("ignored"));
    assert!(entries(&converted, &format!("{at}/text")).starts_with("ignored"));
}

#[test]
fn text_and_bytes() {
    for (media, input, body) in [
        ("text/plain", json!("a\u{fc}"), "a\u{c3}\u{bc}"),
        ("application/xml", json!("<a/>"), "<a/>"),
        ("application/octet-stream", json!("AP8="), "\u{0}\u{ff}"),
        ("image/png", json!("AP8="), "\u{0}\u{ff}"),
    ] {
        let (converted, calls) = send(post(json!({ media: {} }), true), &[json!({ "body": input })]);
        assert_eq!(calls[0].request().body, body, "{media}");
        assert_eq!(calls[0].request().headers["content-type"], media);
        assert!(fits(&tool(&converted, "post")["input"], json!({ "body": input })));
    }
    let (_, calls) = send(post(json!({ "application/octet-stream": {} }), true), &[json!({ "body": "no base64!" })]);
    assert!(calls[0].requests.is_empty() && calls[0].text().contains("not base64"));
}

#[test]
fn the_choice_of_content_does_not_depend_on_luck() {
    let content = json!({ "text/plain": {}, "multipart/form-data": {}, "application/a+json": {}, "application/json": {}, "*/*": {} });
    let (converted, calls) = send(post(content, true), &[json!({ "body": 1 })]);
    assert_eq!(calls[0].request().headers["content-type"], "application/json");
    let others = converted.report.entries.iter().filter(|entry| entry.pointer.contains("/content/"));
    assert_eq!(others.count(), 4);
    let (_, calls) = send(post(json!({ "*/*": {} }), true), &[json!({ "body": 1 })]);
    assert_eq!(calls[0].request().headers["content-type"], "application/json");
    let hostile = post(json!({ "text/plain\r\nx: y": {} }), true);
    assert!(crate::made(&spec("3.0.0", hostile, json!({}))).is_err());
}
