//! Whole requests, byte for byte, and what tools make of the answers.

use crate::run::Run;
use crate::{everything, fixture, one, reply, tool};
use insta::assert_snapshot;
use openapi::Options;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[test]
fn nothing_is_sent_but_what_is_seen_here() {
    let ran = everything(json!([{ "tool": "json", "input": { "body": [1, "ü", null] } }]));
    assert_snapshot!(ran.calls[0].request().whole(), @r#"
    POST /v1/json HTTP/1.1
    content-type: application/json
    accept-encoding: gzip, br, zstd, deflate
    accept: */*
    user-agent: bulkhead
    host: api.example:PORT
    content-length: 13

    [1,"\u{c3}\u{bc}",null]
    "#);
}

#[test]
fn what_clients_are_shown() {
    let ran = everything(json!([]));
    let shown = ran.surface["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "places").unwrap();
    let properties = shown["inputSchema"]["properties"].as_object().unwrap();
    let lines: Vec<String> = properties.iter().map(|(name, schema)| format!("{name}: {schema}")).collect();
    assert_snapshot!(lines.join("\n"), @r#"
    X-List: {"items":{"type":"integer"},"type":"array"}
    X-Map: {"type":"object"}
    X-Trace: {"type":"string"}
    __proto__: {"type":"string"}
    constructor: {"type":"string"}
    count: {"type":["integer","null"]}
    id: {"type":"integer"}
    kind: {"default":"small","enum":["small","large"],"type":"string"}
    maybe: {"type":["string","null"]}
    more: {"type":"array"}
    name: {"type":"string"}
    nested: {"type":"object"}
    odd_name_: {"type":"string"}
    sizes: {"type":"array"}
    tail: {"type":"object"}
    theme: {"type":"string"}
    where: {"type":"object"}
    "#);
    assert_eq!(shown["inputSchema"]["required"], json!(["id", "tail", "more", "name"]));
    assert_eq!(shown["inputSchema"], tool(&ran.converted, "places")["input"]);
    assert_eq!(shown["outputSchema"], json!({ "type": "object" }));
}

#[test]
fn every_place_at_once() {
    let input: Value = serde_json::from_str(
        r#"{ "id": 7, "tail": { "a": 1, "b c": "d&e" }, "more": ["x", "y;z"], "odd_name_": "a&b=c", "kind": "large", "maybe": null,
             "where": { "from": 1, "to": { "deep": [2, 3] } }, "X-Trace": "t r", "X-List": [1, 2], "X-Map": { "k": "v", "l": 2 },
             "theme": "dark; admin=1", "sizes": ["s", "m"], "__proto__": "p", "constructor": "c", "name": "é", "count": null, "nested": { "__proto__": { "x": 1 } } }"#,
    )
    .unwrap();
    let least = json!({ "id": 0, "tail": { "a": "" }, "more": ["x"], "name": "" });
    let ran = everything(json!([
        { "tool": "places", "input": input, "replies": [reply("201 Created", r#"{"made":{"__proto__":[1]}}"#)] },
        { "tool": "places", "input": least, "replies": [reply("201 Created", r#"{"isError":true,"content":[]}"#)] },
    ]));
    assert_snapshot!(ran.told(), @r#"
    POST /v1/places/7;a=1;b%20c=d%26e/.x.y%3Bz?odd%20%5Bname%5D%26%3D=a%26b%3Dc&kind=large&where%5Bfrom%5D=1&where%5Bto%5D%5Bdeep%5D=2&where%5Bto%5D%5Bdeep%5D=3&__proto__=p HTTP/1.1
    x-trace: t r
    x-list: 1,2
    x-map: k=v,l=2
    cookie: theme=dark%3B%20admin%3D1; sizes=s,m; constructor=c
    accept: application/json
    content-type: application/json
    content-length: 57

    {"count":null,"name":"\u{c3}\u{a9}","nested":{"__proto__":{"x":1}}}
    => {"content":[{"text":"{\"made\":{\"__proto__\":[1]}}","type":"text"}],"structuredContent":{"made":{"__proto__":[1]}}}

    POST /v1/places/0;a=/.x HTTP/1.1
    accept: application/json
    content-type: application/json
    content-length: 11

    {"name":""}
    => {"content":[{"text":"{\"isError\":true,\"content\":[]}","type":"text"}],"structuredContent":{"content":[],"isError":true}}
    "#);
}

#[test]
fn forms() {
    let ran = everything(json!([
        { "tool": "form", "input": { "text": "a b&c=ü+~*", "list": ["a b", 1, { "c": 2 }], "map": { "a": "b c" } } },
        { "tool": "form", "input": { "deep": { "a b": 1, "c": { "d": 2 } }, "pipes": ["a", "b|c"], "spaces": ["a", "b c"], "commas": ["a", "b,c"] } },
        { "tool": "form", "input": { "raw": "a/b?c d&e=%2F", "json": [1, "a"], "text": "" } },
        { "tool": "form", "input": {} },
    ]));
    assert_snapshot!(ran.told(), @r#"
    POST /v1/form HTTP/1.1
    content-type: application/x-www-form-urlencoded
    content-length: 97

    list=a+b&list=1&list=%7B%22c%22%3A2%7D&map=%7B%22a%22%3A%22b+c%22%7D&text=a+b%26c%3D%C3%BC%2B~%2A
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    POST /v1/form HTTP/1.1
    content-type: application/x-www-form-urlencoded
    content-length: 86

    commas=a,b%2Cc&deep%5Ba%20b%5D=1&deep%5Bc%5D%5Bd%5D=2&pipes=a%7Cb%7Cc&spaces=a%20b%20c
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    POST /v1/form HTTP/1.1
    content-type: application/x-www-form-urlencoded
    content-length: 50

    json=%5B1%2C%22a%22%5D&raw=a/b?c%20d%26e=%2F&text=
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    POST /v1/form HTTP/1.1
    content-type: application/x-www-form-urlencoded
    content-length: 0
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}
    "#);
}

#[test]
fn parts() {
    let ran = everything(json!([
        { "tool": "parts", "input": {
            "file": { "base64": "AP8NCg==", "filename": "a.bin" }, "files": [{ "text": "é", "contentType": "text/x" }, { "base64": "" }],
            "papers": [{ "text": "{}" }, { "text": "[]" }], "text": "ü", "list": [1, 2], "map": { "a": 1 }, "table": "1,2\r\n3,4", "odd_name": "q" } },
        { "tool": "parts", "input": { "file": { "base64": "%%%" } } },
    ]));
    assert_snapshot!(ran.told(), @r#"
    POST /v1/parts HTTP/1.1
    content-type: multipart/form-data; boundary=BOUNDARY
    content-length: 1422

    --BOUNDARY
    content-disposition: form-data; name="file"; filename="a.bin"
    content-type: application/octet-stream

    \u{0}\u{ff}

    --BOUNDARY
    content-disposition: form-data; name="files"; filename="files"
    content-type: text/x

    \u{c3}\u{a9}
    --BOUNDARY
    content-disposition: form-data; name="files"; filename="files"
    content-type: image/png


    --BOUNDARY
    content-disposition: form-data; name="list"

    1
    --BOUNDARY
    content-disposition: form-data; name="list"

    2
    --BOUNDARY
    content-disposition: form-data; name="map"
    content-type: application/json

    {"a":1}
    --BOUNDARY
    content-disposition: form-data; name="odd%22name"

    q
    --BOUNDARY
    content-disposition: form-data; name="papers"; filename="papers"
    content-type: application/json

    {}
    --BOUNDARY
    content-disposition: form-data; name="papers"; filename="papers"
    content-type: application/json

    []
    --BOUNDARY
    content-disposition: form-data; name="table"
    content-type: text/csv

    1,2
    3,4
    --BOUNDARY
    content-disposition: form-data; name="text"

    \u{c3}\u{bc}
    --BOUNDARY--
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    => {"content":[{"text":"POST /parts was not sent: `base64` of file is not base64","type":"text"}],"isError":true}
    "#);
}

#[test]
fn text_and_bytes() {
    let ran = everything(json!([
        { "tool": "text", "input": { "body": "line\r\nü \u{0}" } },
        { "tool": "bytes", "input": { "body": "AAECf4D/" } },
        { "tool": "json", "input": { "body": "text" } },
        { "tool": "json", "input": { "body": null } },
        { "tool": "json", "input": {} },
    ]));
    assert_snapshot!(ran.told(), @r#"
    POST /v1/text HTTP/1.1
    content-type: text/plain
    content-length: 10

    line
    \u{c3}\u{bc} \u{0}
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    POST /v1/bytes HTTP/1.1
    content-type: application/octet-stream
    content-length: 6

    \u{0}\u{1}\u{2}\u{7f}\u{80}\u{ff}
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    POST /v1/json HTTP/1.1
    content-type: application/json
    content-length: 6

    "text"
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    POST /v1/json HTTP/1.1
    content-type: application/json
    content-length: 4

    null
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    POST /v1/json HTTP/1.1
    content-length: 0
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}
    "#);
}

#[test]
fn credentials_are_marks() {
    let names = ["bearer", "basic", "header", "query", "cookie", "both", "none"];
    let mut calls: Vec<Value> = names.iter().map(|name| json!({ "tool": name, "input": {} })).collect();
    // A cookie is no header, whatever its name.
    calls[2]["input"]["X-Key"] = "mine".into();
    let ran = everything(calls.into());
    assert_snapshot!(ran.told(), @r#"
    GET /v1/bearer HTTP/1.1
    authorization: Bearer {{secret:BEARER}}
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    GET /v1/basic HTTP/1.1
    authorization: Basic {{secret:BASIC}}
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    GET /v1/header HTTP/1.1
    x-key: {{secret:IN_HEADER}}
    cookie: X-Key=mine
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    GET /v1/query?api_key={{secret:IN_QUERY}} HTTP/1.1
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    GET /v1/cookie HTTP/1.1
    cookie: sid={{secret:IN_COOKIE}}
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    GET /v1/both HTTP/1.1
    authorization: Bearer {{secret:BEARER}}
    x-key: {{secret:IN_HEADER}}
    cookie: sid={{secret:IN_COOKIE}}
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    GET /v1/none HTTP/1.1
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}
    "#);
}

#[test]
fn a_shelter() {
    let rex = r#"{"id":"1","name":"Rex","mother":{"id":"0","name":"Ada"}}"#;
    let ran = Run::new(&one(fixture("petstore.yaml"))).calls(json!([
        { "tool": "listPets", "input": { "kind": ["cat", "dog"], "limit": 2, "age": { "from": 1, "to": 9 }, "X-Trace-Id": "0a0b0c0d" },
          "replies": [reply("200 OK", &format!("[{rex}]"))] },
        { "tool": "addPet", "input": { "name": "Rex", "chip": null, "mother": { "name": "Ada" } }, "replies": [reply("201 Created", rex)] },
        { "tool": "getPet", "input": { "petId": "1" }, "replies": [reply("404 Not Found", r#"{"detail":"no such pet"}"#)] },
        { "tool": "changePet", "input": { "petId": "1", "body": { "name": "Rex", "kind": "dog" } }, "replies": [{ "raw": "HTTP/1.1 204 No Content\r\n\r\n" }] },
        { "tool": "removePet", "input": { "petId": "1" }, "replies": [{ "raw": "HTTP/1.1 204 No Content\r\n\r\n" }] },
        { "tool": "uploadPhoto", "input": { "petId": "1", "photo": { "base64": "iVBORw==", "contentType": "image/jpeg" }, "caption": "Rex", "tags": ["a", "b"], "camera": { "make": "x" } } },
        { "tool": "post_papers", "input": { "title": "a b", "pages": [1, 2], "meta": { "k": "v" } },
          "replies": [{ "raw": "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nfiled" }] },
    ]));
    assert_snapshot!(ran.told(), @r#"
    GET /v1/pets?kind=cat,dog&limit=2&age%5Bfrom%5D=1&age%5Bto%5D=9 HTTP/1.1
    x-trace-id: 0a0b0c0d
    x-keeper-key: {{secret:KEEPER}}
    accept: application/json
    => {"content":[{"text":"[{\"id\":\"1\",\"name\":\"Rex\",\"mother\":{\"id\":\"0\",\"name\":\"Ada\"}}]","type":"text"}],"structuredContent":{"result":[{"id":"1","mother":{"id":"0","name":"Ada"},"name":"Rex"}]}}

    POST /v1/pets HTTP/1.1
    x-keeper-key: {{secret:KEEPER}}
    accept: application/json
    content-type: application/json
    content-length: 50

    {"chip":null,"mother":{"name":"Ada"},"name":"Rex"}
    => {"content":[{"text":"{\"id\":\"1\",\"name\":\"Rex\",\"mother\":{\"id\":\"0\",\"name\":\"Ada\"}}","type":"text"}],"structuredContent":{"id":"1","mother":{"id":"0","name":"Ada"},"name":"Rex"}}

    GET /v1/pets/1 HTTP/1.1
    accept: application/json
    => {"content":[{"text":"GET /pets/{petId} was answered with 404 Not Found\n{\"detail\":\"no such pet\"}","type":"text"}],"isError":true}

    PUT /v1/pets/1 HTTP/1.1
    x-keeper-key: {{secret:KEEPER}}
    content-type: application/json
    content-length: 27

    {"kind":"dog","name":"Rex"}
    => {"content":[{"text":"The API took the request and answered with nothing.","type":"text"}]}

    DELETE /v1/pets/1 HTTP/1.1
    authorization: Bearer {{secret:DIRECTOR}}
    => {"content":[{"text":"The API took the request and answered with nothing.","type":"text"}]}

    POST /v1/pets/1/photo HTTP/1.1
    x-keeper-key: {{secret:KEEPER}}
    accept: application/json
    content-type: multipart/form-data; boundary=BOUNDARY
    content-length: 620

    --BOUNDARY
    content-disposition: form-data; name="camera"
    content-type: application/json

    {"make":"x"}
    --BOUNDARY
    content-disposition: form-data; name="caption"

    Rex
    --BOUNDARY
    content-disposition: form-data; name="photo"; filename="photo"
    content-type: image/jpeg

    \u{89}PNG
    --BOUNDARY
    content-disposition: form-data; name="tags"

    a
    --BOUNDARY
    content-disposition: form-data; name="tags"

    b
    --BOUNDARY--
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    POST /v1/papers HTTP/1.1
    x-keeper-key: {{secret:KEEPER}}
    accept: text/plain
    content-type: application/x-www-form-urlencoded
    content-length: 54

    meta=%7B%22k%22%3A%22v%22%7D&pages=1&pages=2&title=a+b
    => {"content":[{"text":"filed","type":"text"}]}
    "#);
}

/// The specification is YAML, and what it refers to is YAML and JSON in another folder.
#[test]
fn a_specification_of_several_files() {
    let names = ["api.yaml", "common/paths.yaml", "common/schemas.json", "common/broken.yaml"];
    let files: BTreeMap<String, Vec<u8>> =
        names.iter().map(|name| ((*name).to_owned(), fixture(&format!("split/{name}")))).collect();
    let tree = r#"{"value":null,"left":{"value":"l"}}"#;
    let ran = Run::new(&files).calls(json!([
        { "tool": "getTree", "input": { "id": 3 }, "replies": [reply("200 OK", tree)] },
        { "tool": "putTree", "input": { "id": 3, "value": "v", "forest": [{ "value": null }] }, "replies": [{ "raw": "HTTP/1.1 204 No Content\r\n\r\n" }] },
    ]));
    assert_snapshot!(ran.told(), @r#"
    GET /v1/tree/3 HTTP/1.1
    accept: application/json
    => {"content":[{"text":"{\"value\":null,\"left\":{\"value\":\"l\"}}","type":"text"}],"structuredContent":{"left":{"value":"l"},"value":null}}

    PUT /v1/tree/3 HTTP/1.1
    content-type: application/json
    content-length: 39

    {"forest":[{"value":null}],"value":"v"}
    => {"content":[{"text":"The API took the request and answered with nothing.","type":"text"}]}
    "#);
    let refused: Vec<String> = ran.converted.report.refused().map(|entry| entry.to_string()).collect();
    assert_snapshot!(refused.join("\n"), @r"
    refused: /paths/~1broken/get/parameters/0/schema/$ref: the reference `common/broken.yaml#/Q` leads to a file that cannot be read: line 2, column 1: while parsing a flow sequence, expected \',\' or \']\' (GET /broken)
    refused: /paths/~1missing/get/parameters/0/schema/$ref: the reference `#/components/schemas/Nobody` leads to nothing (GET /missing)
    refused: /paths/~1outside/get/parameters/0/$ref: the reference `../secret.yaml#/p` leaves the folder of the specification (GET /outside)
    refused: /paths/~1remote/get/parameters/0/schema/$ref: the reference `https://elsewhere.example/s.json#/Q` is remote; nothing is fetched: put the file beside the specification and refer to it there (GET /remote)
    ");
}

#[test]
fn the_base_is_what_was_said() {
    let files = one(fixture("everything.yaml"));
    let port = |base: &str| base.rsplit(':').next().and_then(|rest| rest.split('/').next()).unwrap().to_owned();
    let call = || json!([{ "tool": "none", "input": {} }]);
    let variables = Run::new(&files).options(|base| {
        let given = [("region", "api".to_owned()), ("port", port(&base)), ("version", "v2/beta".to_owned())];
        let server_variables = given.map(|(name, value)| (name.to_owned(), value)).into();
        Options { server_variables, ..Options::default() }
    });
    assert_snapshot!(variables.calls(call()).told(), @r#"
    GET /v2/beta/none HTTP/1.1
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}
    "#);
    let host = |base: String| Options { base_url: Some(base.replace("/v1", "")), ..Options::default() };
    assert_snapshot!(Run::new(&files).options(host).calls(call()).told(), @r#"
    GET /none HTTP/1.1
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}
    "#);
    let slash = |base: String| Options { base_url: Some(base + "/a-b/"), ..Options::default() };
    assert_snapshot!(Run::new(&files).options(slash).calls(call()).told(), @r#"
    GET /v1/a-b/none HTTP/1.1
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}
    "#);
}
