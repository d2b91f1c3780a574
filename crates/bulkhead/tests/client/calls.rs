//! Calls.

use crate::support::fake::{Asked, FakeHost, json as answer, text};
use crate::tenants::made;
use crate::{always, output, prepared, run};
use insta::assert_snapshot;
use serde_json::{Value, json};

fn receipt() -> Value {
    json!({ "wall": "isolate", "boundary": "call", "jit": false, "limits": { "cpu_ms": 50, "memory_mb": 128 }, "cpu_us": 1500, "time_us": 2500, "peak_memory_kb": 64, "host_calls": 0 })
}

fn result(value: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "result": value })
}

fn good() -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": "{\"doublePrice\":90}" }], "structuredContent": { "doublePrice": 90 }, "_meta": { "bulkhead/receipt": receipt() } })
}

#[test]
fn a_call_is_a_modern_request() {
    let host = always(|| answer(200, result(good())));
    let plain = run(&host, ["call", "acme/prices", "double_price", r#"{"price": 45}"#]);
    assert_eq!((plain.code, plain.stdout.as_str()), (0, "{\"doublePrice\":90}\n"));
    assert_snapshot!(plain.stderr, @"receipt: wall isolate, boundary call, jitless; 1.5 ms CPU of 50, 2.5 ms, 64 KiB memory of 128 MiB, 0 host calls");
    let asked = host.asked().remove(0);
    assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/acme/prices/mcp"));
    for (name, value) in [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "double_price"),
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(asked.header(name), Some(value), "{name}");
    }
    let params = &asked.json()["params"];
    assert_eq!((&params["name"], &params["arguments"]), (&json!("double_price"), &json!({ "price": 45 })));
    assert_eq!(params["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(params["_meta"]["io.modelcontextprotocol/clientCapabilities"], json!({}));
    assert_eq!(params["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "bulkhead");

    let json = prepared(&host, ["call", "acme/prices", "double_price", "-", "--json"]).with_stdin(r#"{"price": 2}"#);
    assert_eq!((json.code, json.stderr.as_str()), (0, ""));
    assert_eq!(output(&json)["receipt"], receipt());
    assert_eq!(output(&json)["result"]["structuredContent"], json!({ "doublePrice": 90 }));
    assert!(output(&json)["result"].get("_meta").is_none());
    assert_eq!(host.asked()[0].json()["params"]["arguments"], json!({ "price": 2 }));
}

#[test]
fn a_call_hears_the_log_on_a_stream() {
    let host = always(|| {
        let log = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": "doubling\n45\x1b" } });
        let events = format!(":\n\nid: 1\ndata: \n\ndata: {log}\n\ndata: {}\n\n", result(good()));
        text("text/event-stream", &events)
    });
    let run_ = run(&host, ["call", "acme/prices", "double_price"]);
    assert_eq!((run_.code, run_.stdout.as_str()), (0, "{\"doublePrice\":90}\n"));
    assert!(run_.stderr.starts_with("info: doubling\n  45\\u{1b}\nreceipt: "), "{run_:?}");
    let cut = always(|| text("text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n"));
    let cut = run(&cut, ["call", "acme/prices", "double_price", "--json"]);
    assert_eq!((cut.code, output(&cut)["error"]["code"].as_str()), (2, Some("bad_answer")));
}

#[test]
fn a_call_that_failed_is_1_with_a_code() {
    let failed = |meta: Value| {
        result(json!({ "content": [{ "type": "text", "text": "it broke" }], "isError": true, "_meta": meta }))
    };
    let error = json!({ "code": "cpu_limit", "message": "the call used more than 50 ms of CPU time (`cpu_ms`)" });
    let limit = failed(json!({ "bulkhead/error": error, "bulkhead/receipt": receipt() }));
    let own = failed(json!({}));
    let rpc = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32602, "message": "there is no tool `x`" } });
    let quota = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32029, "message": "used up", "data": { "code": "quota_exceeded" } } });
    let asks = result(json!({ "resultType": "input_required", "inputRequests": {} }));
    for (status, body, code, message) in [
        (200, limit.clone(), "cpu_limit", "the call used more than 50 ms of CPU time (`cpu_ms`)"),
        (200, own, "tool_error", "it broke"),
        (200, rpc, "bad_arguments", "there is no tool `x`"),
        (429, quota, "quota_exceeded", "used up"),
        (200, asks, "input_required", "the tool asks its caller, which a command line cannot answer"),
    ] {
        let host = FakeHost::start(move |_| answer(status, body.clone()));
        let run = run(&host, ["call", "acme/prices", "x", "--json"]);
        assert_eq!((run.code, run.stderr.as_str()), (1, ""), "{run:?}");
        let object = output(&run);
        assert_eq!(object.as_object().unwrap().keys().collect::<Vec<_>>(), ["error"]);
        assert_eq!(object["error"].as_object().unwrap().keys().collect::<Vec<_>>(), ["code", "hint", "message"]);
        assert_eq!(
            (object["error"]["code"].as_str(), object["error"]["message"].as_str()),
            (Some(code), Some(message))
        );
    }
    let host = FakeHost::start(move |_| answer(200, limit.clone()));
    let text = run(&host, ["call", "acme/prices", "x"]);
    assert_snapshot!(text.stderr, @r"
    receipt: wall isolate, boundary call, jitless; 1.5 ms CPU of 50, 2.5 ms, 64 KiB memory of 128 MiB, 0 host calls
    error: cpu_limit: the call used more than 50 ms of CPU time (`cpu_ms`)
    ");
}

#[test]
fn arguments_that_are_not_json_are_64() {
    let host = always(made);
    let run_ = run(&host, ["call", "acme/prices", "double_price", "{price: 45}"]);
    assert_eq!((run_.code, run_.stdout.as_str()), (64, ""));
    assert_snapshot!(run_.stderr, @r#"
    error: the arguments are not JSON: key must be a string at line 1 column 2
    hint: quote them for the shell: '{"price": 45}'
    "#);
    assert!(host.asked().is_empty());
}

#[test]
fn arguments_that_a_tool_wants_in_headers_go_there() {
    let host = FakeHost::start(|asked: &Asked| {
        match (asked.json()["method"].as_str(), asked.header("mcp-param-region")) {
            (Some("tools/list"), _) => {
                let schema = json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
                answer(200, result(json!({ "tools": [{ "name": "t", "inputSchema": schema }] })))
            }
            (_, Some("eu")) => answer(200, result(good())),
            _ => answer(
                400,
                json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32020, "message": "header `mcp-param-region` is missing" } }),
            ),
        }
    });
    let run = run(&host, ["call", "acme/prices", "t", r#"{"region": "eu"}"#]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(host.asked().len(), 3);
}

#[test]
fn other_content_is_named() {
    let content = json!([
        { "type": "image", "mimeType": "image/png", "data": "AAAAAAAA" },
        { "type": "resource_link", "uri": "file:///x" },
        { "type": "resource", "resource": { "uri": "test://a", "text": "inside\r\x1b[0m" } },
        { "type": "hologram" },
    ]);
    let host = FakeHost::start(move |_| answer(200, result(json!({ "content": content }))));
    assert_eq!(
        run(&host, ["call", "acme/x", "t"]).stdout,
        "[image, image/png, about 6 bytes]\n[resource file:///x]\ninside\\u{d}\\u{1b}[0m\n[hologram]\n"
    );
}

#[test]
fn tools_are_listed_page_by_page() {
    let host = FakeHost::start(|asked: &Asked| match asked.json()["params"]["cursor"].as_str() {
        None => answer(
            200,
            result(
                json!({ "tools": [{ "name": "a", "description": "First.\nMore.", "inputSchema": { "properties": { "x": {}, "y": {} }, "required": ["x"] } }], "nextCursor": "2" }),
            ),
        ),
        Some(_) => answer(200, result(json!({ "tools": [{ "name": "b", "inputSchema": {} }] }))),
    });
    assert_snapshot!(run(&host, ["tools", "acme/prices"]).stdout, @r"
    tool  arguments  description
    a     x, y?      First. More.
    b     -          -
    ");
    let json = run(&host, ["tools", "acme/prices", "--json"]);
    assert_eq!(output(&json)["tools"].as_array().unwrap().len(), 2);
}
