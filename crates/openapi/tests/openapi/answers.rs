//! What comes back: redirects, every kind of content, and sizes.

use crate::run::Run;
use crate::{everything, fixture, one, reply, spec, table};
use insta::assert_snapshot;
use openapi::Options;
use serde_json::{Value, json};

#[test]
fn redirects_stay_below_the_base() {
    let to = |status: &str, location: &str| json!({ "raw": format!("HTTP/1.1 {status}\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n") });
    let calls: Vec<Value> = [
        to("302 Found", "/v1/json?x=1"),
        to("302 Found", "form"),
        to("302 Found", "/v2/admin"),
        to("302 Found", "/v1/../admin"),
        to("302 Found", "http://other.example:PORT/v1/bearer"),
        to("302 Found", "//127.0.0.1:PORT/v1/bearer"),
        to("302 Found", "file:///etc/passwd"),
    ]
    .into_iter()
    .map(|reply| json!({ "tool": "bearer", "input": {}, "replies": [reply] }))
    .chain([
        json!({ "tool": "text", "input": { "body": "again" }, "replies": [to("307 Temporary Redirect", "/v1/bytes")] }),
    ])
    .collect();
    assert_snapshot!(everything(calls.into()).told(), @r#"
    GET /v1/bearer HTTP/1.1
    authorization: Bearer {{secret:BEARER}}
    GET /v1/json?x=1 HTTP/1.1
    authorization: Bearer {{secret:BEARER}}
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    GET /v1/bearer HTTP/1.1
    authorization: Bearer {{secret:BEARER}}
    GET /v1/form HTTP/1.1
    authorization: Bearer {{secret:BEARER}}
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    GET /v1/bearer HTTP/1.1
    authorization: Bearer {{secret:BEARER}}
    => {"content":[{"text":"GET /bearer could not be sent, or its answer not be read: rules allow http://api.example:PORT, but not the path `/v2/admin`","type":"text"}],"isError":true}

    GET /v1/bearer HTTP/1.1
    authorization: Bearer {{secret:BEARER}}
    => {"content":[{"text":"GET /bearer could not be sent, or its answer not be read: rules allow http://api.example:PORT, but not the path `/admin`","type":"text"}],"isError":true}

    GET /v1/bearer HTTP/1.1
    authorization: Bearer {{secret:BEARER}}
    => {"content":[{"text":"GET /bearer could not be sent, or its answer not be read: no rule allows http://other.example:PORT; the server's `egress` has to name it","type":"text"}],"isError":true}

    GET /v1/bearer HTTP/1.1
    authorization: Bearer {{secret:BEARER}}
    => {"content":[{"text":"GET /bearer could not be sent, or its answer not be read: no rule allows http://127.0.0.1:PORT; the server's `egress` has to name it","type":"text"}],"isError":true}

    GET /v1/bearer HTTP/1.1
    authorization: Bearer {{secret:BEARER}}
    => {"content":[{"text":"GET /bearer could not be sent, or its answer not be read: `file:///etc/passwd` is neither http nor https","type":"text"}],"isError":true}

    POST /v1/text HTTP/1.1
    content-type: text/plain
    content-length: 5

    again
    POST /v1/bytes HTTP/1.1
    content-type: text/plain
    content-length: 5

    again
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}
    "#);
}

#[test]
fn answers_of_every_kind() {
    let answer =
        |head: &str, hex: &str| json!({ "raw": format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n"), "hex": hex });
    let calls: Vec<Value> = [
        answer("200 OK\r\ncontent-type: image/png", "89504e47"),
        answer("200 OK\r\ncontent-type: audio/wav; x=y", "0001"),
        answer("200 OK\r\ncontent-type: application/pdf", "ff00"),
        answer("200 OK\r\ncontent-type: application/pdf", "c3a9"),
        answer("200 OK\r\ncontent-type: text/html; charset=utf-8", "3c703e"),
        answer("200 OK\r\ncontent-type: image/svg+xml", "3c7376672f3e"),
        answer("200 OK", "7b7d"),
        answer("200 OK", ""),
        answer("200 OK\r\ncontent-type: application/json", ""),
        answer("200 OK\r\ncontent-type: application/problem+json", "5b315d"),
        answer("200 OK\r\ncontent-type: application/json", "7b"),
        answer("204 No Content", ""),
        answer("400 Bad Request\r\ncontent-type: image/png", "89504e47"),
        answer("429 Slow Down\r\nretry-after: 7", ""),
        answer("500", "6f6f7073"),
        answer("304 Not Modified", ""),
        json!({ "raw": "nonsense\r\n\r\n" }),
        json!({ "raw": "HTTP/1.1 200 OK\r\ncontent-length: 100\r\nconnection: close\r\n\r\nhalf" }),
    ]
    .into_iter()
    .map(|reply| json!({ "tool": "none", "input": {}, "replies": [reply] }))
    .collect();
    let ran = everything(calls.into());
    assert_snapshot!(ran.told().replace("GET /v1/none HTTP/1.1\n", ""), @r#"
    => {"content":[{"data":"iVBORw==","mimeType":"image/png","type":"image"}]}

    => {"content":[{"data":"AAE=","mimeType":"audio/wav","type":"audio"}]}

    => {"content":[{"resource":{"blob":"/wA=","mimeType":"application/pdf","uri":"openapi:none"},"type":"resource"}]}

    => {"content":[{"text":"é","type":"text"}]}

    => {"content":[{"text":"<p>","type":"text"}]}

    => {"content":[{"text":"<svg/>","type":"text"}]}

    => {"content":[{"text":"{}","type":"text"}]}

    => {"content":[{"text":"The API took the request and answered with nothing.","type":"text"}]}

    => {"content":[{"text":"The API took the request and answered with nothing.","type":"text"}]}

    => {"content":[{"text":"[1]","type":"text"}]}

    => {"content":[{"text":"the API answered with JSON that cannot be read: {","type":"text"}],"isError":true}

    => {"content":[{"text":"The API took the request and answered with nothing.","type":"text"}]}

    => {"content":[{"text":"GET /none was answered with 400 Bad Request\n�PNG","type":"text"}],"isError":true}

    => {"content":[{"text":"GET /none was answered with 429 Slow Down","type":"text"}],"isError":true}

    => {"content":[{"text":"GET /none was answered with 500\noops","type":"text"}],"isError":true}

    => {"content":[{"text":"GET /none was answered with 304 Not Modified","type":"text"}],"isError":true}

    => {"content":[{"text":"GET /none could not be sent, or its answer not be read: http://api.example:PORT failed: invalid HTTP version parsed","type":"text"}],"isError":true}

    => {"content":[{"text":"GET /none could not be sent, or its answer not be read: the response broke off: error reading a body from connection","type":"text"}],"isError":true}
    "#);
}

/// What an API sends is bounded by the module, and what a tool gives back by the host.
#[test]
fn large_answers() {
    let files = one(fixture("everything.yaml"));
    let text = |fill: u64| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n";
        json!({ "tool": "none", "input": {}, "replies": [{ "raw": head, "fill": fill }] })
    };
    let mut endless = text(0);
    endless["replies"][0]["endless"] = true.into();
    let ran =
        Run::new(&files).limit("cpu_ms", 5_000).calls(json!([text(1_000_000), text(1 << 20), text(5 << 20), endless]));
    assert_eq!(ran.calls[0].text().len(), 1_000_000);
    assert_eq!(ran.calls[1].result["failed"], "result_limit", "{}", ran.calls[1].result);
    for more in &ran.calls[2..] {
        assert!(more.text().contains("more than 4194304 bytes"), "{:?}", more.result);
    }
    let wide = Run::new(&files).limit("result_kb", 8192).limit("cpu_ms", 5_000).calls(json!([text(4 << 20)]));
    assert_eq!(wide.calls[0].text().len(), 4 << 20);
}

#[test]
fn without_output_schemas_everything_is_taken() {
    let schema = json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } });
    let paths = json!({ "/x": { "get": { "operationId": "get", "responses": { "200": { "content": { "application/json": { "schema": schema } } } } } } });
    let files = spec("3.0.3", paths, json!({}));
    let call = |body: &str| json!({ "tool": "get", "input": {}, "replies": [reply("200 OK", body)] });
    let without = |base| Options { base_url: Some(base), output_schemas: false, ..Options::default() };
    let ran = Run::new(&files).options(without).calls(json!([call(r#"{"b":1}"#), call("[1]")]));
    assert!(table(&ran.converted)["tools"][0]["output"].is_null());
    assert_snapshot!(ran.told(), @r#"
    GET /v1/x HTTP/1.1
    accept: application/json
    => {"content":[{"text":"{\"b\":1}","type":"text"}],"structuredContent":{"b":1}}

    GET /v1/x HTTP/1.1
    accept: application/json
    => {"content":[{"text":"[1]","type":"text"}]}
    "#);
}
