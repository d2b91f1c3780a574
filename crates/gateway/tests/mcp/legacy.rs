//! 2024-11-05 to 2025-11-25.

use crate::host::{self, Client, Tenant, data, got, tenant, test};
use gateway::Settings;
use policy::Boundary;
use serde_json::{Value, json};
use std::time::Duration;

const PRICES: &str = include_str!("../../../../examples/prices.js");

const BUSY: &str = r#"
let calls = 0;
export default {
  tools: {
    count: { run: () => ++calls },
    slow: { run: async (_, ctx) => { ctx.progress(1); await new Promise((r) => setTimeout(r, 300)); ctx.progress(2); return "late"; } },
    ask: { run: async (_, ctx) => (await ctx.elicit({ message: "Who?", requestedSchema: { type: "object" } })).content.name },
    forever: { run: () => new Promise((r) => setTimeout(r, 20000)) },
    chatty: { run: async (_, ctx) => { ctx.progress(1); await new Promise((r) => setTimeout(r, 20000)); } },
    touch: { run: async (_, ctx) => { await ctx.notify.resourceUpdated("note://a"); return 1; } },
  },
  resources: { "note://a": { read: () => "hello" }, "note://{name}/x": { read: ({ variables }) => ({ at: variables.name }) } },
  prompts: { hi: { arguments: [{ name: "who", required: true }], get: ({ who }) => `hi ${who}` } },
};"#;

async fn busy(boundary: Boundary) -> Tenant {
    let tenant = tenant().await;
    tenant.deploy("busy", boundary, BUSY).await;
    tenant
}

#[test]
fn every_revision_is_negotiated_and_unknown_ones_get_the_newest() {
    test(async {
        let tenant = busy(Boundary::Call).await;
        for (asked, given) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("1999-01-01", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
        ] {
            let mut client = tenant.at("busy");
            let result = client.begin(asked, json!({})).await;
            assert_eq!(result["protocolVersion"], given);
            assert_eq!(result["serverInfo"]["name"], "busy");
            assert_eq!(client.legacy("ping", json!({})).await.result(), &json!({}));
            let listed = client.legacy("tools/list", json!({})).await;
            assert_eq!(listed.result()["tools"].as_array().unwrap().len(), 3, "of a page");
            assert!(listed.result().get("resultType").is_none());
        }
    });
}

#[test]
fn lists_come_in_pages() {
    test(async {
        let tenant = busy(Boundary::Call).await;
        let client = tenant.at("busy");
        let first = client.legacy("tools/list", json!({})).await;
        let cursor = first.result()["nextCursor"].as_str().unwrap();
        let second = client.legacy("tools/list", json!({ "cursor": cursor })).await;
        assert_eq!(second.result()["tools"].as_array().unwrap().len(), 3);
        assert!(second.result().get("nextCursor").is_none());
        for bad in ["", "x", "-1", "0", "99"] {
            assert_eq!(client.legacy("tools/list", json!({ "cursor": bad })).await.error().1, -32602, "{bad}");
        }
    });
}

#[test]
fn resources_and_prompts_have_their_forms() {
    test(async {
        let tenant = busy(Boundary::Call).await;
        let client = tenant.at("busy");
        let read = client.legacy("resources/read", json!({ "uri": "note://a" })).await;
        assert_eq!(read.result()["contents"], json!([{ "uri": "note://a", "text": "hello" }]));
        let read = client.legacy("resources/read", json!({ "uri": "note://b%20c/x" })).await;
        assert_eq!(read.result()["contents"][0]["text"], "{\"at\":\"b c\"}");
        let missing = client.legacy("resources/read", json!({ "uri": "note://b/y" })).await;
        assert_eq!(missing.error(), (200, -32002));
        assert_eq!(missing.last()["error"]["data"]["uri"], "note://b/y");
        let prompt = client.legacy("prompts/get", json!({ "name": "hi", "arguments": { "who": "Ada" } })).await;
        assert_eq!(prompt.result()["messages"][0]["content"], json!({ "type": "text", "text": "hi Ada" }));
        assert_eq!(client.legacy("prompts/get", json!({ "name": "hi" })).await.error().1, -32602);
        assert_eq!(client.legacy("completion/complete", json!({})).await.error().1, -32601);
    });
}

#[test]
fn a_session_has_a_compartment_and_an_end() {
    test(async {
        let tenant = busy(Boundary::Session).await;
        let (mut one, mut two) = (tenant.at("busy"), tenant.at("busy"));
        one.begin("2025-11-25", json!({})).await;
        two.begin("2025-11-25", json!({})).await;
        let count = async |client: &Client| {
            client.legacy("tools/call", json!({ "name": "count" })).await.result()["content"][0]["text"].clone()
        };
        assert_eq!([count(&one).await, count(&one).await, count(&two).await], ["1", "2", "1"]);
        let other = tenant.key_with(Default::default());
        let mut thief = one.clone();
        thief.set("authorization", &format!("Bearer {other}"));
        assert_eq!(thief.legacy("ping", json!({})).await.status, 404, "a session answers to its own key alone");
        let ended = one.http.delete(&one.url).headers(one.headers.clone()).send().await.unwrap();
        assert_eq!(ended.status(), 204);
        assert_eq!(one.legacy("ping", json!({})).await.status, 404);
    });
}

/// Calls a tool that reports progress, and reads up to the first report.
async fn slow(client: &Client, meta: Value) -> (reqwest::Response, String) {
    let call =
        json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": { "name": "slow", "_meta": meta } });
    let sent = client.http.post(&client.url).headers(client.headers.clone()).header("content-type", "application/json");
    let mut response = sent.body(call.to_string()).send().await.unwrap();
    let mut seen = String::new();
    while !seen.contains("\"progress\":1") {
        seen.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    (response, seen)
}

fn last_event(seen: &str) -> &str {
    seen.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().unwrap()
}

#[test]
fn a_call_of_a_key_that_is_revoked_says_nothing_more() {
    test(async {
        let tenant = busy(Boundary::Call).await;
        for way in ["modern", "begun", "resumed"] {
            let mut client = tenant.at("busy");
            client.set("authorization", &format!("Bearer {}", tenant.key_with(Default::default())));
            let mut meta = json!({ "progressToken": 5 });
            if way == "modern" {
                meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
                meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
                client.set("mcp-protocol-version", "2026-07-28");
                client.set("mcp-method", "tools/call");
                client.set("mcp-name", "slow");
            } else {
                client.begin("2025-11-25", json!({})).await;
            }
            let (mut response, seen) = slow(&client, meta).await;
            if way == "resumed" {
                drop(response);
                let again = client.http.get(&client.url).headers(client.headers.clone());
                response = again.header("last-event-id", last_event(&seen)).send().await.unwrap();
                assert_eq!(response.status(), 200);
            }
            tenant.revoke();
            let mut rest = Vec::new();
            while let Some(chunk) = response.chunk().await.unwrap() {
                rest.extend_from_slice(&chunk);
            }
            let rest = String::from_utf8(rest).unwrap();
            assert!(!rest.contains("late"), "{way}: {rest}");
        }
    });
}

#[test]
fn progress_streams_and_a_lost_stream_can_be_resumed() {
    test(async {
        let tenant = busy(Boundary::Call).await;
        let mut client = tenant.at("busy");
        client.begin("2025-11-25", json!({})).await;
        let (response, seen) = slow(&client, json!({ "progressToken": 5 })).await;
        drop(response);
        let last = last_event(&seen);
        let resumed = client.http.get(&client.url).headers(client.headers.clone()).header("last-event-id", last);
        let rest = got(resumed.send().await.unwrap()).await;
        let progress: Vec<_> = rest.messages.iter().filter_map(|m| m["params"]["progress"].as_u64()).collect();
        assert_eq!(progress, [2], "{rest:?}");
        assert_eq!(rest.last()["id"], 9);
        assert_eq!(rest.result()["content"][0]["text"], "late");
    });
}

#[test]
fn a_server_may_ask_its_client_while_it_works() {
    test(async {
        let tenant = busy(Boundary::Call).await;
        let mut client = tenant.at("busy");
        client.begin("2025-11-25", json!({ "elicitation": {} })).await;
        let asking = client.clone();
        let call = tokio::spawn(async move {
            let body = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "ask" } });
            let sent = asking
                .http
                .post(&asking.url)
                .headers(asking.headers.clone())
                .header("content-type", "application/json");
            let mut response = sent.body(body.to_string()).send().await.unwrap();
            let mut text = String::new();
            let mut answered = false;
            while let Some(chunk) = response.chunk().await.unwrap() {
                text.push_str(std::str::from_utf8(&chunk).unwrap());
                let question = text.split("\n\n").filter_map(|event| serde_json::from_str::<Value>(data(event)?).ok());
                let question = question.into_iter().find(|message| message["method"] == "elicitation/create");
                if let (Some(question), false) = (question, answered) {
                    answered = true;
                    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": { "name": "Ada" } } });
                    assert_eq!(asking.json(answer).await.status, 202);
                }
            }
            text
        });
        let text = call.await.unwrap();
        assert!(text.contains("\"text\":\"Ada\""), "{text}");
        let unasked = client.json(json!({ "jsonrpc": "2.0", "id": 77, "result": {} })).await;
        assert_eq!(unasked.status, 400);

        let mut mute = tenant.at("busy");
        mute.begin("2025-11-25", json!({})).await;
        let refused = mute.legacy("tools/call", json!({ "name": "ask" })).await;
        assert_eq!(refused.result()["isError"], true, "{refused:?}");
    });
}

#[test]
fn a_cancelled_call_ends() {
    test(async {
        let tenant = busy(Boundary::Call).await;
        let mut client = tenant.at("busy");
        client.begin("2025-11-25", json!({})).await;
        let caller = client.clone();
        let call = tokio::spawn(async move {
            caller
                .json(json!({ "jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": { "name": "forever" } }))
                .await
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "c" } });
        assert_eq!(client.json(cancel).await.status, 202);
        assert_eq!(call.await.unwrap().status, 202, "a cancelled request has no answer");
    });
}

/// The stream of a call that is cancelled ends: it would hold a connection, and a place in its session, for ever.
#[test]
fn a_cancelled_call_ends_its_stream() {
    test(async {
        let tenant = busy(Boundary::Call).await;
        let mut client = tenant.at("busy");
        client.begin("2025-11-25", json!({})).await;
        let params = json!({ "name": "chatty", "_meta": { "progressToken": 1 } });
        let body = json!({ "jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params });
        let sent = client.http.post(&client.url).headers(client.headers.clone());
        let mut stream = sent.header("content-type", "application/json").body(body.to_string()).send().await.unwrap();
        let mut text = String::new();
        while !text.contains("notifications/progress") {
            text.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap());
        }
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "c" } });
        assert_eq!(client.json(cancel).await.status, 202);
        while stream.chunk().await.unwrap().is_some() {}
    });
}

/// What stands for a call is repeated with whatever is said of it, so it is short.
#[test]
fn a_progress_token_that_is_none_is_not_repeated() {
    test(async {
        let tenant = busy(Boundary::Call).await;
        let mut client = tenant.at("busy");
        client.begin("2025-11-25", json!({})).await;
        for token in [json!("x".repeat(300)), json!([1]), json!({ "a": 1 }), json!(1.5)] {
            let got = client.legacy("tools/call", json!({ "name": "slow", "_meta": { "progressToken": token } })).await;
            assert_eq!(got.headers["content-type"], "application/json", "nothing is said before the answer");
        }
    });
}

#[test]
fn subscribers_hear_of_their_resource() {
    test(async {
        let tenant = busy(Boundary::Call).await;
        let mut client = tenant.at("busy");
        client.begin("2025-11-25", json!({})).await;
        assert_eq!(client.legacy("resources/subscribe", json!({ "uri": "note://a" })).await.result(), &json!({}));
        assert_eq!(client.legacy("resources/subscribe", json!({ "uri": "no://such" })).await.error().1, -32002);
        let mut stream = client.http.get(&client.url).headers(client.headers.clone()).send().await.unwrap();
        client.legacy("tools/call", json!({ "name": "touch" })).await.result();
        let mut text = String::new();
        while !text.contains("resources/updated") {
            text.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap());
        }
        assert!(text.contains("note://a"));
    });
}

#[test]
fn batches_are_for_revisions_that_have_them() {
    test(async {
        let tenant = busy(Boundary::Call).await;
        let client = tenant.at("busy");
        let batch = json!([
            { "jsonrpc": "2.0", "id": 1, "method": "ping" },
            { "jsonrpc": "2.0", "method": "notifications/initialized" },
            { "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "count" } },
            { "jsonrpc": "2.0", "id": 3, "method": "no/such" },
        ]);
        let answers = client.json(batch.clone()).await;
        let answers = answers.last().as_array().unwrap();
        assert_eq!(answers.iter().map(|a| a["id"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(answers[1]["result"]["content"][0]["text"], "1");
        let mut newer = tenant.at("busy");
        newer.begin("2025-06-18", json!({})).await;
        assert_eq!(newer.json(batch).await.error(), (400, -32600));
    });
}

#[test]
fn old_revisions_get_what_they_know() {
    test(async {
        let tenant = tenant().await;
        tenant.deploy("prices", Boundary::Call, PRICES).await;
        let good = json!({ "name": "double_price", "arguments": { "price": 2 } });
        let bad = json!({ "name": "double_price", "arguments": { "price": [] } });
        let mut old = tenant.at("prices");
        old.begin("2025-03-26", json!({})).await;
        assert!(old.legacy("tools/call", good.clone()).await.result().get("structuredContent").is_none());
        let refused = old.legacy("tools/call", bad.clone()).await;
        assert_eq!(refused.error().1, -32602);
        assert_eq!(refused.last()["error"]["data"]["violations"][0]["path"], "/price");
        let mut new = tenant.at("prices");
        new.begin("2025-11-25", json!({})).await;
        assert_eq!(new.legacy("tools/call", good).await.result()["structuredContent"], json!({ "doublePrice": 4 }));
        assert_eq!(new.legacy("tools/call", bad).await.result()["isError"], true);
    });
}

#[test]
fn sessions_outlive_the_host_unless_their_compartment_held_them() {
    test(async {
        let dir = tempfile::tempdir().unwrap();
        let pools = host::pools().await;
        let first = host::start(dir.path(), Settings::default(), pools.clone()).await;
        let tenant = host::tenant_at(&first, "acme");
        tenant.deploy("plain", Boundary::Call, BUSY).await;
        tenant.deploy("held", Boundary::Session, BUSY).await;
        let (mut plain, mut held) = (tenant.at("plain"), tenant.at("held"));
        plain.begin("2025-11-25", json!({})).await;
        held.begin("2025-06-18", json!({})).await;
        let Tenant { app, .. } = tenant;
        let old = first.addr;
        first.shutdown().await;
        app.registry().close().unwrap();
        drop(app);

        let second = host::start(dir.path(), Settings::default(), pools).await;
        for client in [&mut plain, &mut held] {
            client.url = client.url.replace(&old.to_string(), &second.addr.to_string());
        }
        assert_eq!(plain.legacy("ping", json!({})).await.status, 200);
        assert_eq!(held.legacy("ping", json!({})).await.status, 404);
        second.shutdown().await;
    });
}

/// The attack: sessions of two tenants that nobody uses hold all the memory of the wall, and a third comes.
#[test]
fn idle_sessions_of_two_tenants_give_way_to_a_third() {
    test(async {
        let dir = tempfile::tempdir().unwrap();
        // 480 MiB for compartments: three of 136, and what the servers keep.
        let pools = host::pools_with(isolate::Together { memory_mb: 640, ..Default::default() }).await;
        let host = host::start(dir.path(), Settings::default(), pools).await;
        let mut clients = Vec::new();
        for (name, sessions) in [("one", 2), ("two", 1), ("three", 1)] {
            let tenant = host::tenant_at(&host, name);
            tenant.deploy("busy", Boundary::Session, BUSY).await;
            for _ in 0..sessions {
                let mut client = tenant.at("busy");
                client.begin("2025-11-25", json!({})).await;
                clients.push(client);
            }
        }
        let count = async |client: &Client| {
            client.legacy("tools/call", json!({ "name": "count" })).await.result()["content"][0]["text"].clone()
        };
        for client in &clients {
            assert_eq!(count(client).await, "1", "the third tenant's is the last of them");
        }
        assert_eq!(count(&clients[3]).await, "2", "and stays");
        assert_eq!(count(&clients[2]).await, "2", "who holds less gives nothing");
        assert_eq!(count(&clients[1]).await, "2", "what was used last stays");
        assert_eq!(count(&clients[0]).await, "1", "the session that gave way goes on in a new compartment");
        host.shutdown().await;
    });
}
