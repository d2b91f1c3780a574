//! Completion, and all that MCP lets a server say of itself.

use crate::client::{Client, request, send};
use crate::support::{Server, pool, tool};
use sandbox::{Code, Operation};
use serde_json::{Value, json};

#[tokio::test]
async fn completion_suggests_for_prompts_and_templates() {
    let pool = pool().await;
    let server = Server::new(
        "const cities = { fr: ['Paris', 'Pau'], de: ['Passau'] };
         export default {
           prompts: { trip: { get() {}, arguments: [
             { name: 'city', complete(value, { arguments: { country } }, ctx) {
               ctx.log.debug(this.name);
               return (cities[country] ?? []).filter((city) => city.startsWith(value)); } },
             { name: 'many', complete: () => Array.from({ length: 250 }, (_, i) => `v${i}`) },
             { name: 'exact', complete: async () => ({ values: ['a'], total: 9, hasMore: true }) },
             { name: 'wrong', complete: () => [1] },
             { name: 'none' },
           ] } },
           resources: {
             'cfg://{city}/{year}': { read() {}, complete: { city: (value) => [`${value}!`] } },
             'cfg://fixed': { read() {} },
           },
         }",
    )
    .deploy();
    let ask = async |reference: Value, name: &str, value: &str, context: Value| {
        let mut input = json!({ "ref": reference, "argument": { "name": name, "value": value } });
        if !context.is_null() {
            input["context"] = context;
        }
        let answer = send(&pool, &server, &request(Operation::Complete, "", &input), &Client::new("ada")).await;
        answer.outcome.map(|bytes| serde_json::from_slice::<Value>(&bytes).unwrap()).map_err(|failure| failure.code)
    };
    let prompt = || json!({ "type": "ref/prompt", "name": "trip" });
    let template = || json!({ "type": "ref/resource", "uri": "cfg://{city}/{year}" });
    let france = json!({ "arguments": { "country": "fr" } });
    assert_eq!(ask(prompt(), "city", "Pa", france).await, Ok(json!({ "values": ["Paris", "Pau"] })));
    assert_eq!(ask(prompt(), "city", "Pa", Value::Null).await, Ok(json!({ "values": [] })));
    let many = ask(prompt(), "many", "", Value::Null).await.unwrap();
    assert_eq!(
        (many["values"].as_array().unwrap().len(), &many["total"], &many["hasMore"]),
        (100, &json!(250), &json!(true))
    );
    let exact = json!({ "values": ["a"], "total": 9, "hasMore": true });
    assert_eq!(ask(prompt(), "exact", "", Value::Null).await, Ok(exact));
    assert_eq!(ask(prompt(), "none", "", Value::Null).await, Ok(json!({ "values": [] })));
    assert_eq!(ask(prompt(), "constructor", "", Value::Null).await, Ok(json!({ "values": [] })));
    assert_eq!(ask(prompt(), "wrong", "", Value::Null).await, Err(Code::ToolError));
    assert_eq!(ask(template(), "city", "Bo", Value::Null).await, Ok(json!({ "values": ["Bo!"] })));
    assert_eq!(ask(template(), "year", "", Value::Null).await, Ok(json!({ "values": [] })));
    let fixed = json!({ "type": "ref/resource", "uri": "cfg://fixed" });
    assert_eq!(ask(fixed, "city", "", Value::Null).await, Ok(json!({ "values": [] })));
    for unknown in
        [json!({ "type": "ref/prompt", "name": "x" }), json!({ "type": "ref/resource", "uri": "x" }), json!(1)]
    {
        assert_eq!(ask(unknown, "a", "", Value::Null).await, Err(Code::UnknownTool));
    }
    let seed = pool.seed(&server).await.unwrap();
    let surface: Value = serde_json::from_str(seed.surface().get()).unwrap();
    assert_eq!(surface["completions"], true);
    assert_eq!(surface["prompts"][0]["arguments"][0], json!({ "name": "city" }));
    assert_eq!(surface["resourceTemplates"][0].get("complete"), None);
}

#[tokio::test]
async fn a_resource_may_be_bytes() {
    let pool = pool().await;
    let server = Server::new(
        "const bytes = new Uint8Array([0, 255, 16]);
         const read = (give) => ({ read: give });
         export default { resources: {
           'b://view': read(() => bytes), 'b://part': read(async () => bytes.subarray(1)),
           'b://buffer': read(() => bytes.buffer), 'b://named': read(() => ({ blob: bytes, mimeType: 'image/png' })),
           'b://{id}/of': read(async () => bytes.buffer), 'b://text': read(() => 'text'), 'b://none': read(() => {}),
           'b://given': read(() => ({ blob: 'AP8Q' })),
         } }",
    )
    .deploy();
    let cases = [
        ("b://view", r#"{"blob":"AP8Q"}"#),
        ("b://part", r#"{"blob":"/xA="}"#),
        ("b://buffer", r#"{"blob":"AP8Q"}"#),
        ("b://named", r#"{"blob":"AP8Q","mimeType":"image/png"}"#),
        ("b://1/of", r#"{"blob":"AP8Q"}"#),
        ("b://text", r#""text""#),
        ("b://none", "null"),
        ("b://given", r#"{"blob":"AP8Q"}"#),
    ];
    for (uri, expected) in cases {
        let asked = request(Operation::Resource, uri, &json!({}));
        let answer = send(&pool, &server, &asked, &Client::new("ada")).await;
        assert_eq!(answer.outcome.unwrap(), expected, "{uri}");
    }
}

#[tokio::test]
async fn the_surface_has_what_the_protocol_knows() {
    let pool = pool().await;
    let icons = json!([{ "src": "https://x.example/i.png" }]);
    let own = json!({ "example.org/own": 1 });
    let hints = json!({ "audience": ["user"] });
    let header =
        json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
    let source = format!(
        "const icons = {icons}; const _meta = {own}; const annotations = {hints}; const more = 1;
         export default {{ title: 'T', websiteUrl: 'https://x.example', icons, more,
           tools: {{ a: {{ icons, _meta, execution: {{ taskSupport: 'optional' }}, input: {header}, more, run() {{}} }} }},
           resources: {{ 'c://f': {{ icons, _meta, annotations, size: 12, more, read() {{}} }},
             'c://{{x}}': {{ icons, _meta, annotations, size: 12, read() {{}} }} }},
           prompts: {{ p: {{ icons, _meta, more, get() {{}} }} }} }}"
    );
    let seed = pool.seed(&Server::new(&source).deploy()).await.unwrap();
    let surface: Value = serde_json::from_str(seed.surface().get()).unwrap();
    assert_eq!(
        surface,
        json!({
            "title": "T", "websiteUrl": "https://x.example", "icons": icons,
            "tools": [{ "name": "a", "icons": icons, "_meta": own, "execution": { "taskSupport": "optional" },
                "inputSchema": header }],
            "resources": [{ "uri": "c://f", "name": "c://f", "icons": icons, "_meta": own, "annotations": hints,
                "size": 12 }],
            "resourceTemplates": [{ "uriTemplate": "c://{x}", "name": "c://{x}", "icons": icons, "_meta": own,
                "annotations": hints }],
            "prompts": [{ "name": "p", "icons": icons, "_meta": own }],
        })
    );
}

#[tokio::test]
async fn a_part_of_the_wrong_type_is_named() {
    let pool = pool().await;
    let cases = [
        ("title: 1, tools: { a: { run() {} } }", "`title` must be a string"),
        ("icons: {}, tools: { a: { run() {} } }", "`icons` must be an array"),
        ("tools: { a: { icons: 1, run() {} } }", "tool `a`: `icons` must be an array"),
        ("tools: { a: { execution: 'x', run() {} } }", "tool `a`: `execution` must be an object"),
        ("resources: { 'c://x': { size: -1, read() {} } }", "resource `c://x`: `size` must be a number of bytes"),
        ("resources: { 'c://x': { _meta: [], read() {} } }", "resource `c://x`: `_meta` must be an object"),
        ("resources: { 'c://{x}': { complete: { x: 1 }, read() {} } }", "variable `x`: `complete` must be a function"),
        ("prompts: { p: { arguments: ['who'], get() {} } }", "prompt `p`: `arguments[0]` must be an object"),
        ("prompts: { p: { arguments: [{}], get() {} } }", "prompt `p`: `arguments[0]` has no `name`"),
        ("prompts: { p: { arguments: [{ name: 'a', complete: [] }], get() {} } }", "`complete` must be a function"),
    ];
    for (parts, message) in cases {
        let server = Server::new(&format!("export default {{ {parts} }}")).deploy();
        let failure = pool.seed(&server).await.map(|_| ()).unwrap_err();
        assert_eq!(failure.code, Code::InitFailed, "{parts}");
        assert!(failure.message.contains(message), "`{failure}` does not say `{message}`");
    }
}

/// The server that the official suite calls: the keys it must ask by, and what it offers, behind the real wall.
#[tokio::test]
async fn the_conformance_fixture_works_behind_the_wall() {
    let pool = pool().await;
    let server = Server::new(include_str!("../../../../conformance/fixture.js")).deploy();
    let seed = pool.seed(&server).await.unwrap();
    let surface: Value = serde_json::from_str(seed.surface().get()).unwrap();
    let count = |part: &str| surface[part].as_array().unwrap().len();
    assert_eq!(
        ["tools", "resources", "resourceTemplates", "prompts"].map(count),
        [35, 3, 1, 5],
        "what the suite calls by name"
    );
    assert_eq!((&surface["completions"], &surface["tools"][0]["name"]), (&json!(true), &json!("test_simple_text")));
    let asks: [(&str, &[&[&str]]); 6] = [
        ("test_input_required_result_elicitation", &[&["user_name"]]),
        ("test_input_required_result_sampling", &[&["capital_question"]]),
        ("test_input_required_result_multiple_inputs", &[&["user_name", "greeting", "client_roots"]]),
        ("test_input_required_result_multi_round", &[&["step1"], &["step2"]]),
        ("test_input_required_result_capabilities", &[&["client_roots"]]),
        ("test_missing_capability", &[&["input-1"]]),
    ];
    for (name, keys) in asks {
        let client = Client::new("ada");
        let answer = send(&pool, &server, &tool(name, "{}"), &client).await;
        let result: Value = serde_json::from_slice(&answer.outcome.unwrap()).unwrap();
        assert_eq!(result["content"][0]["type"], "text", "{name}");
        assert_eq!(client.keys(), keys, "{name}");
    }
    let client = Client::new("ada");
    let read = request(Operation::Resource, "test://static-binary", &json!({}));
    let read = send(&pool, &server, &read, &client).await.outcome.unwrap();
    assert!(read.starts_with(br#"{"blob":"iVBORw0KGgo"#), "{read:?}");
    let prompt = json!({ "type": "ref/prompt", "name": "test_prompt_with_arguments" });
    let asked = json!({ "ref": prompt, "argument": { "name": "arg1", "value": "par" } });
    let completed = send(&pool, &server, &request(Operation::Complete, "", &asked), &client).await;
    assert_eq!(completed.outcome.unwrap(), r#"{"values":["paris","park","party"]}"#);
}
