//! 2026-07-28.

use crate::host::{MODERN, Tenant, tenant, test};
use policy::Boundary;
use serde_json::json;

const PRICES: &str = include_str!("../../../../examples/prices.js");

const ASKER: &str = r#"
export default { tools: {
  name: { run: async (_, ctx) => {
    const answer = await ctx.elicit({ key: "who", message: "Who?", requestedSchema: { type: "object" } });
    const more = await ctx.elicit({ key: "more", message: "And?", requestedSchema: { type: "object" } });
    return `${answer.content.name} ${more.content.name}`;
  } },
  sample: { run: async (_, ctx) => (await ctx.sample({ messages: [], maxTokens: 1 })).content.text },
} };"#;

async fn prices() -> Tenant {
    let tenant = tenant().await;
    tenant.deploy("prices", Boundary::Call, PRICES).await;
    tenant
}

#[test]
fn a_tool_answers_with_content_structure_and_receipt() {
    test(async {
        let tenant = prices().await;
        let params = json!({ "name": "double_price", "arguments": { "price": 45 } });
        let got = tenant.at("prices").modern("tools/call", params).await;
        assert_eq!(got.status, 200);
        let result = got.result();
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["structuredContent"], json!({ "doublePrice": 90 }));
        assert_eq!(result["content"][0], json!({ "type": "text", "text": "{\"doublePrice\":90}" }));
        let receipt = &result["_meta"]["bulkhead/receipt"];
        assert_eq!(receipt["wall"], "isolate");
        assert!(receipt["cpu_us"].as_u64().unwrap() > 0);
        assert!(receipt["deployment"].is_string() && receipt["call"].is_string());
    });
}

#[test]
fn discovery_says_what_there_is() {
    test(async {
        let tenant = prices().await;
        let got = tenant.at("prices").modern("server/discover", json!({})).await;
        let result = got.result();
        assert_eq!(result["supportedVersions"][0], MODERN);
        assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
        assert!(result["capabilities"].get("prompts").is_none());
        assert!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"].is_string());
        assert!(result["ttlMs"].is_u64());
    });
}

#[test]
fn what_headers_say_must_be_what_the_body_says() {
    test(async {
        let tenant = prices().await;
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {} });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "double_price", "arguments": { "price": 1 }, "_meta": meta } });
        let mut client = tenant.at("prices");
        client.set("mcp-protocol-version", MODERN);
        assert_eq!(client.json(body.clone()).await.error(), (400, -32020));
        client.set("mcp-method", "tools/list");
        assert_eq!(client.json(body.clone()).await.error(), (400, -32020));
        client.set("mcp-method", "tools/call");
        assert_eq!(client.json(body.clone()).await.error(), (400, -32020));
        client.set("mcp-name", "other");
        assert_eq!(client.json(body.clone()).await.error(), (400, -32020));
        // Nor may something odd beside the name keep anybody from comparing.
        let mut odd = body.clone();
        odd["params"]["uri"] = json!(0);
        assert_eq!(client.json(odd).await.error(), (200, -32602));
        client.set("mcp-name", "=?base64?ZG91YmxlX3ByaWNl?=");
        assert_eq!(client.json(body.clone()).await.status, 200);
        client.unset("mcp-protocol-version");
        assert_eq!(client.json(body.clone()).await.error(), (400, -32020));
        client.headers.append("mcp-protocol-version", MODERN.parse().unwrap());
        client.headers.append("mcp-protocol-version", MODERN.parse().unwrap());
        assert_eq!(client.json(body).await.error(), (400, -32020));
    });
}

#[test]
fn what_is_missing_or_unknown_has_its_own_code() {
    test(async {
        let tenant = prices().await;
        let mut client = tenant.at("prices");
        assert_eq!(client.modern("no/such", json!({})).await.error(), (404, -32601));
        for removed in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
            assert_eq!(client.modern(removed, json!({})).await.error(), (404, -32601), "{removed}");
        }
        assert_eq!(client.modern("tools/call", json!({ "name": "nope" })).await.error(), (200, -32602));
        client.set("mcp-protocol-version", MODERN);
        client.set("mcp-method", "tools/list");
        let bare = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list" });
        assert_eq!(client.json(bare).await.error(), (400, -32602));
        client.set("mcp-protocol-version", "2999-01-01");
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2999-01-01", "io.modelcontextprotocol/clientCapabilities": {} });
        let got = client
            .json(json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": { "_meta": meta } }))
            .await;
        assert_eq!(got.error(), (400, -32022));
        assert_eq!(got.last()["error"]["data"]["requested"], "2999-01-01");
        assert_eq!(got.last()["id"], 7);
    });
}

#[test]
fn bad_arguments_are_told_to_the_model_with_their_path() {
    test(async {
        let tenant = prices().await;
        let params = json!({ "name": "double_price", "arguments": { "price": "much" } });
        let got = tenant.at("prices").modern("tools/call", params).await;
        assert_eq!(got.result()["isError"], true);
        let text = got.result()["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("bad_arguments") && text.contains("/price"), "{text}");
        assert!(got.result()["_meta"].get("bulkhead/receipt").is_none(), "nothing ran");
    });
}

#[test]
fn questions_are_asked_in_rounds_and_only_of_clients_that_can_answer() {
    test(async {
        let tenant = tenant().await;
        tenant.deploy("asker", Boundary::Call, ASKER).await;
        let client = tenant.at("asker");
        let can = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
        let first = client.modern_with("tools/call", json!({ "name": "name" }), can.clone()).await;
        assert_eq!(first.result()["resultType"], "input_required", "{first:?}");
        assert_eq!(first.result()["inputRequests"]["who"]["method"], "elicitation/create");
        let state = first.result()["requestState"].as_str().unwrap();
        let answer = json!({ "name": "name", "requestState": state,
            "inputResponses": { "who": { "action": "accept", "content": { "name": "Ada" } } } });
        let second = client.modern_with("tools/call", answer.clone(), can.clone()).await;
        assert_eq!(second.result()["resultType"], "input_required");
        assert!(second.result()["inputRequests"].get("who").is_none());
        let state = second.result()["requestState"].as_str().unwrap();
        let answer = json!({ "name": "name", "requestState": state,
            "inputResponses": { "more": { "action": "accept", "content": { "name": "Lovelace" } } } });
        let third = client.modern_with("tools/call", answer.clone(), can.clone()).await;
        assert_eq!(third.result()["content"][0]["text"], "Ada Lovelace");

        // What was asked by one deployment is not answered to another.
        tenant.deploy("asker", Boundary::Call, &ASKER.replace("And?", "And then?")).await;
        assert_eq!(client.modern_with("tools/call", answer.clone(), can.clone()).await.error(), (200, -32602));
        tenant.deploy("asker", Boundary::Call, ASKER).await;
        let again = client.modern_with("tools/call", answer.clone(), can.clone()).await;
        assert_eq!(again.result()["content"][0]["text"], "Ada Lovelace", "{again:?}");

        let mut changed = answer.clone();
        changed["requestState"] = format!("{state}x").into();
        assert_eq!(client.modern_with("tools/call", changed, can.clone()).await.error(), (200, -32602));
        let mut elsewhere = answer;
        elsewhere["arguments"] = json!({ "other": 1 });
        assert_eq!(client.modern_with("tools/call", elsewhere, can).await.error(), (200, -32602));

        let cannot = client.modern("tools/call", json!({ "name": "sample" })).await;
        assert_eq!(cannot.error(), (400, -32021));
        assert!(cannot.last()["error"]["data"]["requiredCapabilities"]["sampling"].is_object());
    });
}

#[test]
fn progress_and_log_come_as_a_stream_when_they_are_asked_for() {
    test(async {
        let tenant = tenant().await;
        let source = r#"export default { tools: { work: { run: async (_, ctx) => {
            ctx.progress(1, 2, "half"); console.warn("careful"); ctx.log("quiet"); return "done"; } } } }"#;
        tenant.deploy("worker", Boundary::Call, source).await;
        let client = tenant.at("worker");
        let asked = json!({ "progressToken": "p", "io.modelcontextprotocol/logLevel": "warning" });
        let got = client.modern_with("tools/call", json!({ "name": "work" }), asked).await;
        let methods: Vec<_> = got.messages.iter().map(|message| message["method"].as_str().unwrap_or("-")).collect();
        assert_eq!(methods, ["notifications/progress", "notifications/message", "-"], "{got:?}");
        assert_eq!(
            got.messages[0]["params"],
            json!({ "progressToken": "p", "progress": 1, "total": 2, "message": "half" })
        );
        assert_eq!(got.messages[1]["params"]["level"], "warning");
        let plain = client.modern("tools/call", json!({ "name": "work" })).await;
        assert_eq!(plain.messages.len(), 1);
        assert_eq!(plain.headers["content-type"], "application/json");
    });
}

#[test]
fn listeners_hear_of_what_they_asked_for() {
    test(async {
        let tenant = prices().await;
        let client = tenant.at("prices");
        let listening = tokio::spawn(async move {
            let mut response = client.listen().await;
            let mut text = String::new();
            while !text.contains("list_changed") {
                text.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
            }
            text
        });
        while tenant.app.open_streams() == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        tenant.deploy("prices", Boundary::Call, "export default { tools: { other: { run() {} } } }").await;
        let text = listening.await.unwrap();
        let messages: Vec<serde_json::Value> =
            text.split("\n\n").filter_map(|event| serde_json::from_str(crate::host::data(event)?).ok()).collect();
        assert_eq!(messages[0]["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(messages[1]["method"], "notifications/tools/list_changed");
        assert_eq!(messages[1]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s1");
        assert_eq!(messages.len(), 2, "{messages:?}");
    });
}
