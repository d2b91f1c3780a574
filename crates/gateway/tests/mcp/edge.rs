//! What is no good is refused quickly and in the protocol's own words; what is another's is not there.

use crate::host::{Got, Tenant, got, host_actor, running, tenant, test};
use policy::Boundary;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use registry::{Quota, Scope, TenantPatch};
use serde_json::json;

const PRICES: &str = include_str!("../../../../examples/prices.js");

async fn prices() -> Tenant {
    let tenant = tenant().await;
    tenant.deploy("prices", Boundary::Call, PRICES).await;
    tenant
}

/// What a request says of its client is kept while it runs, and what a listener wants as long as it listens.
#[test]
fn what_is_kept_of_a_request_is_short() {
    test(async {
        let tenant = prices().await;
        let client = tenant.at("prices");
        let call = json!({ "name": "double_price", "arguments": { "price": 1 } });
        let many = vec![0; 40_000];
        let about = json!({ "io.modelcontextprotocol/clientInfo": { "name": many } });
        assert_eq!(client.modern_with("tools/call", call.clone(), about).await.error(), (400, -32602));
        let mut answered = call.clone();
        answered["inputResponses"] = json!({ "a": { "text": "x".repeat(300 << 10) } });
        assert_eq!(client.modern("tools/call", answered).await.error().1, -32602);
        let addresses: Vec<String> = (0..40).map(|number| format!("note://{number}/{}", "x".repeat(2 << 10))).collect();
        let wanted = json!({ "notifications": { "resourceSubscriptions": addresses } });
        assert_eq!(client.modern("subscriptions/listen", wanted).await.error().1, -32602);
        let about = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": many } });
        assert_eq!(client.legacy("initialize", about).await.error().1, -32602);
        assert_eq!(client.modern("tools/call", call).await.status, 200);
    });
}

#[test]
fn bodies_that_are_no_requests_are_refused() {
    test(async {
        let tenant = prices().await;
        let client = tenant.at("prices");
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let nested = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"double_price","arguments":{{"price":{deep}}}}}}}"#
        );
        for (body, expected) in [
            (String::new(), (400, -32700)),
            ("{".to_owned(), (400, -32700)),
            ("nonsense".to_owned(), (400, -32700)),
            ("{}".to_owned(), (400, -32600)),
            ("[]".to_owned(), (400, -32600)),
            ("1".to_owned(), (400, -32600)),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#.to_owned(), (400, -32600)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":7}"#.to_owned(), (400, -32600)),
            (nested, (200, -32602)),
        ] {
            let shown: String = body.chars().take(80).collect();
            assert_eq!(client.send(body).await.error(), expected, "{shown}");
        }
        let sent = client.http.post(&client.url).headers(client.headers.clone()).header("content-type", "text/plain");
        assert_eq!(sent.body("{}").send().await.unwrap().status(), 415);
        // The host answers without reading on, so the client may find the connection closed while it still writes.
        let huge =
            client.http.post(&client.url).headers(client.headers.clone()).header("content-type", "application/json");
        if let Ok(answer) = huge.body(vec![b' '; 18 * 1024 * 1024]).send().await {
            assert_eq!(answer.status(), 413);
        }
        let put = client.http.put(&client.url).headers(client.headers.clone()).send().await.unwrap();
        assert_eq!(put.status(), 405);
        let get = client.http.get(&client.url).headers(client.headers.clone()).header("accept", "text/html");
        assert!(get.send().await.unwrap().status().is_client_error());
    });
}

#[test]
fn what_is_not_yours_is_not_there() {
    test(async {
        let (ours, theirs) = (prices().await, prices().await);
        let mut client = theirs.at("prices");
        client.set("authorization", &format!("Bearer {}", ours.key));
        let another = client.modern("tools/list", json!({})).await;
        client.url = client.url.replace("prices", "nowhere");
        let nowhere = client.modern("tools/list", json!({})).await;
        let same = |a: &Got, b: &Got| (a.status, a.last().clone()) == (b.status, b.last().clone());
        assert_eq!(another.status, 404);
        assert!(same(&another, &nowhere));
        client.unset("authorization");
        let stranger = client.modern("tools/list", json!({})).await;
        assert_eq!(stranger.status, 401);
        assert!(stranger.headers["www-authenticate"].to_str().unwrap().starts_with("Bearer"));
    });
}

#[test]
fn a_scoped_key_sees_and_calls_its_tools_alone() {
    test(async {
        let tenant = prices().await;
        tenant.deploy("other", Boundary::Call, PRICES).await;
        let key = tenant.key_with(Scope { servers: None, tools: Some(vec!["prices/double*".to_owned()]) });
        let mut client = tenant.everything();
        client.set("authorization", &format!("Bearer {key}"));
        let listed = client.modern("tools/list", json!({})).await;
        let names: Vec<_> = listed.result()["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["prices__double_price"]);
        let call =
            |name: &str| json!({ "name": name, "arguments": { "price": 3, "amount": 1, "from": "EUR", "to": "EUR" } });
        let good = client.modern("tools/call", call("prices__double_price")).await;
        assert_eq!(good.result()["structuredContent"], json!({ "doublePrice": 6 }));
        for bad in ["prices__convert", "other__double_price", "prices__", "__", "nope", "prices"] {
            assert_eq!(client.modern("tools/call", call(bad)).await.error().1, -32602, "{bad}");
        }
        let mut elsewhere = tenant.at("other");
        elsewhere.set("authorization", &format!("Bearer {key}"));
        assert_eq!(elsewhere.modern("tools/list", json!({})).await.status, 404);
    });
}

#[test]
fn the_tenants_endpoint_has_all_its_tools() {
    test(async {
        let tenant = prices().await;
        tenant.deploy("b", Boundary::Server, "export default { tools: { t: { run: () => 'b' } } }").await;
        let client = tenant.everything();
        let mut names = Vec::new();
        let mut cursor = None;
        loop {
            let params = cursor.map_or_else(|| json!({}), |cursor: serde_json::Value| json!({ "cursor": cursor }));
            let listed = client.modern("tools/list", params).await;
            names.extend(
                listed.result()["tools"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|tool| tool["name"].as_str().unwrap().to_owned()),
            );
            cursor = listed.result().get("nextCursor").cloned();
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(names, ["b__t", "prices__double_price", "prices__convert"]);
        let got = client.modern("tools/call", json!({ "name": "b__t" })).await;
        assert_eq!(got.result()["content"][0]["text"], "b");
    });
}

#[test]
fn a_quota_answers_429_and_says_when() {
    test(async {
        let tenant = prices().await;
        let quota = Quota { requests_per_s: Some(1.0), burst: Some(2), ..Quota::default() };
        let patch = TenantPatch { quota: Some(quota), ..TenantPatch::default() };
        tenant.app.registry().update_tenant(&host_actor(), &tenant.name, patch).unwrap();
        let client = tenant.at("prices");
        let mut statuses = Vec::new();
        for _ in 0..5 {
            let got = client.modern("tools/list", json!({})).await;
            if got.status == 429 {
                assert!(got.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
                assert_eq!(got.last()["error"]["data"]["code"], "quota_exceeded");
            }
            statuses.push(got.status);
        }
        assert!(statuses.contains(&200) && statuses.contains(&429), "{statuses:?}");
    });
}

#[test]
fn notifications_and_answers_count_as_well() {
    test(async {
        let tenant = prices().await;
        let quota = Quota { requests_per_s: Some(0.1), burst: Some(2), ..Quota::default() };
        let patch = TenantPatch { quota: Some(quota), ..TenantPatch::default() };
        tenant.app.registry().update_tenant(&host_actor(), &tenant.name, patch).unwrap();
        let mut client = tenant.at("prices");
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
        let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
        assert_eq!(client.json(cancelled.clone()).await.status, 202);
        assert_eq!(client.json(answer.clone()).await.error(), (400, -32600));
        assert_eq!(client.json(cancelled.clone()).await.error(), (429, -32029));
        assert_eq!(client.json(answer).await.error(), (429, -32029));
        client.set("mcp-method", "notifications/cancelled");
        assert_eq!(client.json(cancelled).await.error(), (429, -32029));
    });
}

#[test]
fn a_key_that_is_revoked_is_gone_at_once() {
    test(async {
        let tenant = prices().await;
        let key = tenant.key_with(Scope::default());
        let mut client = tenant.at("prices");
        client.set("authorization", &format!("Bearer {key}"));
        assert_eq!(client.modern("tools/list", json!({})).await.status, 200);
        tenant.revoke();
        assert_eq!(client.modern("tools/list", json!({})).await.status, 401);
    });
}

/// Also in the midst of a call whose answer is no stream.
#[test]
fn a_key_that_is_revoked_while_it_calls_hears_no_result() {
    test(async {
        let tenant = tenant().await;
        let source = r#"export default { tools: { slow: { run: async () => {
            console.log("here"); await new Promise((go) => setTimeout(go, 2000)); return "late"; } } } }"#;
        tenant.deploy("slow", Boundary::Call, source).await;
        let key = tenant.key_with(Scope::default());
        let mut client = tenant.at("slow");
        client.set("authorization", &format!("Bearer {key}"));
        let call = || client.modern("tools/call", json!({ "name": "slow" }));
        assert_eq!(call().await.result()["content"][0]["text"], "late");
        let (called, ()) = tokio::join!(call(), async {
            // After the first call's line there is this one's.
            while tenant.app.registry().logs().tail(&tenant.name, "slow", 9).unwrap().len() < 2 {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            tenant.revoke();
        });
        assert_eq!(called.status, 401, "{called:?}");
    });
}

#[test]
fn hosts_and_origins_of_others_are_refused() {
    test(async {
        let tenant = prices().await;
        let mut client = tenant.at("prices");
        client.set("origin", "http://evil.example.com");
        assert_eq!(client.modern("tools/list", json!({})).await.status, 403);
        client.unset("origin");
        client.set("host", "evil.example.com");
        assert_eq!(client.modern("tools/list", json!({})).await.status, 403);
    });
}

#[test]
fn a_hostile_result_stays_a_result() {
    test(async {
        let tenant = tenant().await;
        let source = r#"export default { tools: {
            meta: { run: () => ({ content: [], _meta: { "bulkhead/receipt": { cpu_us: 0 }, mine: 1 } }) },
            proto: { run: () => JSON.parse('{"__proto__": {"a": 1}, "content": "x"}') },
            deep: { run: () => { let v = 1; for (let i = 0; i < 5000; i++) v = [v]; return v; } },
            surrogate: { run: () => "\ud800" },
            promised: { output: { type: "object", required: ["a"] }, run: () => ({ b: 1 }) },
            throws: { run: () => { throw new Error("no\u202e\u0007") } },
        } }"#;
        tenant.deploy("odd", Boundary::Server, source).await;
        let client = tenant.at("odd");
        let call = async |name: &str| client.modern("tools/call", json!({ "name": name })).await;
        let meta = call("meta").await;
        assert!(
            meta.result()["_meta"]["bulkhead/receipt"]["cpu_us"].as_u64().unwrap() > 0,
            "only the host writes receipts"
        );
        assert_eq!(meta.result()["_meta"]["mine"], 1);
        assert_eq!(call("proto").await.status, 200);
        assert_eq!(call("deep").await.status, 200);
        assert_eq!(call("surrogate").await.status, 200);
        let promised = call("promised").await;
        assert_eq!(promised.result()["isError"], true);
        assert!(promised.result()["content"][0]["text"].as_str().unwrap().contains("output schema"));
        // The log does not call it good, and knows it by the receipt's name for it.
        let filter = registry::CallFilter { tenant: Some(tenant.name.clone()), limit: 1, ..Default::default() };
        let newest = tenant.app.registry().audit().recent(&filter).unwrap().calls.remove(0);
        assert_eq!((newest.tenant.as_str(), newest.outcome.as_str()), (tenant.name.as_str(), "tool_error"));
        let line: serde_json::Value = serde_json::from_str(newest.json.get()).unwrap();
        assert_eq!(line["call"], promised.result()["_meta"]["bulkhead/receipt"]["call"]);
        assert_eq!(call("throws").await.result()["_meta"]["bulkhead/error"]["code"], "tool_error");
    });
}

#[test]
fn a_schema_that_could_stall_the_host_is_not_deployed() {
    test(async {
        let tenant = tenant().await;
        let source = r##"const again = { properties: { x: { $ref: "#" } } };
            export default { tools: { t: { input: { type: "object", anyOf: [again, again] }, run() {} } } }"##;
        let draft = tenant.draft("s", Boundary::Call, Default::default(), source).await;
        let source = bytes::Bytes::from_static(source.as_bytes());
        let bundle = registry::Bundle { lock: draft.lock, source, layer: None };
        let rejected = tenant.app.try_deployment(&tenant.name, "id", bundle).await.unwrap_err();
        assert_eq!(rejected.code, "init_failed");
        assert!(rejected.message.contains("schema is refused"), "{}", rejected.message);
    });
}

/// Anything at all may be sent; the host answers, with an error of the protocol's, and lives.
#[test]
fn nonsense_is_answered() {
    test(async {
        let tenant = prices().await;
        let client = tenant.at("prices");
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let token = prop_oneof![
            Just("{".to_owned()),
            Just("}".to_owned()),
            Just("[".to_owned()),
            Just("]".to_owned()),
            Just(",".to_owned()),
            Just(":".to_owned()),
            Just("\"jsonrpc\":\"2.0\",".to_owned()),
            Just("\"id\":1,".to_owned()),
            Just("\"method\":\"tools/call\",".to_owned()),
            Just("\"params\":".to_owned()),
            Just("\"name\":\"double_price\"".to_owned()),
            Just("\"arguments\":".to_owned()),
            Just("\"_meta\":".to_owned()),
            Just("null".to_owned()),
            Just("1e999".to_owned()),
            Just("\"\\ud800\"".to_owned()),
            "\\PC{0,8}",
            Just("\u{0}".to_owned()),
        ];
        let strategy = proptest::collection::vec(token, 0..24);
        for _ in 0..300 {
            let body = strategy.new_tree(&mut runner).unwrap().current().concat();
            let got = client.send(body.clone()).await;
            assert!(matches!(got.status, 200 | 202 | 400 | 404), "{} for {body}", got.status);
        }
        for _ in 0..100 {
            let bytes = proptest::collection::vec(any::<u8>(), 0..200).new_tree(&mut runner).unwrap().current();
            assert_eq!(client.send(bytes).await.status / 100, 4);
        }
        let alive = client.http.get(format!("http://{}/healthz", running().await.addr)).send().await.unwrap();
        assert_eq!(got(alive).await.status, 200);
    });
}
