//! Servers that would show people one thing and programs another, and answers that not every client survives.

use crate::egress::{call, text};
use crate::host::{tenant, test};
use policy::Boundary;
use registry::Scope;
use serde_json::{Value, json};

const SOURCE: &str = r#"
const deep = (depth) => { let value = 1; for (let level = 0; level < depth; level++) value = [value]; return value; };
export default {
  tools: {
    half: { run: () => ({ content: [{ type: "text", text: "a\ud83d" }, { type: "text", text: "\ude00\ud83d\ude00" }] }) },
    key: { run: () => ({ "\udc00": ["\ud800"] }) },
    deep: { run: ({ depth }) => ({ content: [{ type: "text", text: "x", annotations: deep(depth) }] }) },
    receipt: { run: () => ({ content: [], _meta: { "Bulkhead/receipt": 1, "BULKHEAD/error": 2, " bulk\u200bhead/receipt": 3, "mine/x": 4 } }) },
  },
  resources: { "note://a": { read: () => "b\ud83d" }, "note://deep": { read: () => ({ contents: deep(1000) }) } },
  prompts: { hi: { arguments: [{ name: "who", complete: () => ["x"] }], get: () => "c\ude00" } },
};"#;

#[test]
fn halves_of_characters_and_endless_depth_reach_nobody() {
    test(async {
        let tenant = tenant().await;
        tenant.deploy("odd", Boundary::Call, SOURCE).await;
        let client = tenant.at("odd");
        let got = call(&client, "half", json!({})).await;
        let texts: Vec<&Value> = got.result()["content"].as_array().unwrap().iter().map(|part| &part["text"]).collect();
        assert_eq!(texts, ["a\u{fffd}", "\u{fffd}😀"]);
        let got = call(&client, "key", json!({})).await;
        assert_eq!(got.result()["structuredContent"], json!({ "\u{fffd}": ["\u{fffd}"] }));
        let got = client.modern("resources/read", json!({ "uri": "note://a" })).await;
        assert_eq!(got.result()["contents"][0]["text"], "b\u{fffd}");
        let got = client.modern("prompts/get", json!({ "name": "hi" })).await;
        assert_eq!(got.result()["messages"][0]["content"]["text"], "c\u{fffd}");

        assert!(call(&client, "deep", json!({ "depth": 90 })).await.result().get("isError").is_none());
        for depth in [120, 1000] {
            let got = call(&client, "deep", json!({ "depth": depth })).await;
            assert_eq!(got.result()["isError"], true, "{got:?}");
            assert!(text(&got).starts_with("result_limit: "), "{got:?}");
        }
        let got = client.modern("resources/read", json!({ "uri": "note://deep" })).await;
        assert!(got.last()["error"]["message"].as_str().unwrap().starts_with("result_limit: "), "{got:?}");
    });
}

#[test]
fn no_key_of_a_tools_meta_looks_like_the_hosts() {
    test(async {
        let tenant = tenant().await;
        tenant.deploy("odd", Boundary::Call, SOURCE).await;
        let got = call(&tenant.at("odd"), "receipt", json!({})).await;
        let keys: Vec<&String> = got.result()["_meta"].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["bulkhead/receipt", "io.modelcontextprotocol/serverInfo", "mine/x"]);
        assert!(got.result()["_meta"]["bulkhead/receipt"]["call"].is_string(), "{got:?}");
    });
}

#[test]
fn a_key_for_tools_opens_no_resources_prompts_or_completions() {
    test(async {
        let tenant = tenant().await;
        tenant.deploy("odd", Boundary::Call, SOURCE).await;
        let (mut all, mut scoped) = (tenant.at("odd"), tenant.at("odd"));
        let tools = Some(vec!["odd/half".to_owned(), "odd/key".to_owned()]);
        scoped.set("authorization", &format!("Bearer {}", tenant.key_with(Scope { tools, ..Scope::default() })));
        assert_eq!(text(&call(&scoped, "half", json!({})).await), "a\u{fffd}");
        for (method, params) in [
            ("resources/read", json!({ "uri": "note://a" })),
            ("prompts/get", json!({ "name": "hi" })),
            (
                "completion/complete",
                json!({ "ref": { "type": "ref/prompt", "name": "hi" }, "argument": { "name": "who", "value": "" } }),
            ),
        ] {
            assert!(all.modern(method, params.clone()).await.last().get("result").is_some(), "{method}");
            assert!(scoped.modern(method, params).await.last().get("error").is_some(), "{method}");
        }
        for (method, list) in [
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
            ("prompts/list", "prompts"),
        ] {
            assert_eq!(scoped.modern(method, json!({})).await.result()[list], json!([]), "{method}");
        }
        let able =
            |discovered: &Value| discovered["capabilities"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(able(scoped.modern("server/discover", json!({})).await.result()), ["tools"]);
        assert!(able(all.modern("server/discover", json!({})).await.result()).contains(&"resources".to_owned()));
        // Nor is such a key told when one of them changes.
        all.begin("2025-11-25", json!({})).await;
        scoped.begin("2025-11-25", json!({})).await;
        let subscribe = json!({ "uri": "note://a" });
        assert!(all.legacy("resources/subscribe", subscribe.clone()).await.last().get("result").is_some());
        assert!(scoped.legacy("resources/subscribe", subscribe).await.last().get("error").is_some());
        // The admin API shows it no more.
        let path = format!("{}/admin/v1/tenants/{}/servers/odd", tenant.base, tenant.name);
        let key = scoped.headers["authorization"].clone();
        let shown = scoped.http.get(path).header("authorization", key).send().await.unwrap();
        let shown: Value = shown.json().await.unwrap();
        let surface = shown["surface"].as_object().unwrap_or_else(|| panic!("{shown}"));
        assert_eq!(surface["tools"].as_array().unwrap().len(), 2);
        assert!(!surface.contains_key("resources") && !surface.contains_key("prompts"), "{shown}");
    });
}

#[test]
fn a_surface_that_hides_something_is_not_deployed() {
    test(async {
        let tenant = tenant().await;
        for (tool, place) in [
            (r#"t: { description: "Pay\u200b", run() {} }"#, "tool `t` at `/tools/0/description` (U+200B)"),
            (r#"t: { title: "T\u{e0041}", run() {} }"#, "tool `t` at `/tools/0/title` (U+E0041)"),
            (
                r#"t: { input: { type: "object", properties: { a: { description: "\u202eb" } } }, run() {} }"#,
                "/properties/a/description` (U+202E)",
            ),
        ] {
            let source = format!("export default {{ tools: {{ {tool} }} }}");
            let draft = tenant.draft("s", Boundary::Call, Default::default(), &source).await;
            let bundle = registry::Bundle { lock: draft.lock, source: bytes::Bytes::from(source), layer: None };
            let rejected = tenant.app.try_deployment(&tenant.name, "id", bundle).await.unwrap_err();
            assert_eq!(rejected.code, "init_failed");
            assert!(rejected.message.contains(place), "{}", rejected.message);
        }
    });
}
