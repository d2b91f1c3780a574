//! The examples of this tree, unmodified: all three offer the same, each in its own way.

use crate::bundled::example;
use crate::client::{Client, ask, server, surface};
use crate::support::pool;
use sandbox::{Code, Operation};
use serde_json::{Value, json};

const EXAMPLES: [(&str, &str); 3] = [("sdk-v1", "1.0.0"), ("sdk-v2", "2.0.0"), ("fetch-handler", "2.1.0")];

/// What only says which tool made a schema.
fn without_dialect(mut surface: Value) -> Value {
    for tool in surface["tools"].as_array_mut().unwrap() {
        for schema in ["inputSchema", "outputSchema"] {
            if let Some(schema) = tool[schema].as_object_mut() {
                schema.remove("$schema");
                schema.remove("additionalProperties");
            }
        }
        if let Some(tool) = tool.as_object_mut() {
            tool.retain(|_, value| !value.is_null());
            // Version 1 says what is the default anyway.
            tool.remove("execution");
        }
    }
    surface
}

#[tokio::test]
async fn they_show_what_they_offer() {
    let pool = pool().await;
    for (name, version) in EXAMPLES {
        let shown =
            surface(&pool, &server(&example(name)).deploy()).await.unwrap_or_else(|failure| panic!("{failure}"));
        let mut expected: Value = serde_json::from_str(include_str!("surface.json")).unwrap();
        expected["version"] = json!(version);
        let days = &mut shown["tools"][1]["inputSchema"]["properties"]["days"].clone();
        assert_eq!((&days["minimum"], &days["default"]), (&json!(1), &json!(2)), "{name}");
        let mut shown = without_dialect(shown);
        shown["tools"][1]["inputSchema"]["properties"]["days"].as_object_mut().unwrap().remove("maximum");
        // Whether a property with a default must be there the versions see differently.
        shown["tools"][1]["inputSchema"].as_object_mut().unwrap().remove("required");
        assert_eq!(shown, expected, "{name}: {shown:#}");
    }
}

#[tokio::test]
async fn their_tools_answer_log_and_progress() {
    let pool = pool().await;
    for (name, _) in EXAMPLES {
        let server = server(&example(name)).deploy();
        let client = Client::silent();
        let warm = ask(&pool, &server, &client, Operation::Tool, "temperature", json!({ "city": "Oslo" })).await;
        assert_eq!(
            warm.unwrap(),
            json!({ "content": [{ "type": "text", "text": "4 °C" }], "structuredContent": { "city": "Oslo", "celsius": 4 } }),
            "{name}"
        );
        let progress = r#"{"progress":1,"total":2,"message":"looked up"}"#;
        assert_eq!(client.said(), ["notice: weather: asked for Oslo", progress], "{name}");
    }
}

#[tokio::test]
async fn their_errors_reach_the_caller() {
    let pool = pool().await;
    for (name, _) in EXAMPLES {
        let server = server(&example(name)).deploy();
        let client = Client::silent();
        let tool = async |input| ask(&pool, &server, &client, Operation::Tool, "temperature", input).await;
        let thrown = tool(json!({ "city": "Atlantis" })).await.unwrap();
        assert_eq!(
            (&thrown["isError"], &thrown["content"][0]["text"]),
            (&json!(true), &json!("there is no Atlantis here"))
        );
        // Arguments that a host would refuse by the schema the SDK refuses by itself: as a result, or as an error.
        match tool(json!({ "city": 1 })).await {
            Ok(refused) => assert_eq!(refused["isError"], true, "{name}"),
            Err((code, message)) => assert_eq!(code, Code::BadArguments, "{name}: {message}"),
        }
        let (code, _) = ask(&pool, &server, &client, Operation::Tool, "nothing", json!({})).await.unwrap_err();
        assert_eq!(code, Code::UnknownTool, "{name}");
        let (code, message) =
            ask(&pool, &server, &client, Operation::Resource, "weather://no", json!({})).await.unwrap_err();
        assert_eq!(code, Code::UnknownTool, "{name}: {message}");
        let (code, message) = ask(&pool, &server, &client, Operation::Prompt, "pack", json!({})).await.unwrap_err();
        assert_eq!(code, Code::BadArguments, "{name}: {message}");
    }
}

#[tokio::test]
async fn their_resources_prompts_and_suggestions_answer() {
    let pool = pool().await;
    for (name, _) in EXAMPLES {
        let server = server(&example(name)).deploy();
        let client = Client::silent();
        let ask =
            async |operation, name: &str, input| ask(&pool, &server, &client, operation, name, input).await.unwrap();
        let cities = ask(Operation::Resource, "weather://cities", json!({})).await;
        let listed = r#"["Lisbon","Oslo","Paris"]"#;
        let expected = json!({ "uri": "weather://cities", "mimeType": "application/json", "text": listed });
        assert_eq!(cities, json!({ "contents": [expected] }), "{name}");
        let oslo = ask(Operation::Resource, "weather://city/Oslo", json!({})).await;
        assert_eq!(oslo, json!({ "contents": [{ "uri": "weather://city/Oslo", "text": "4" }] }), "{name}");
        let pack = ask(Operation::Prompt, "pack", json!({ "city": "Oslo" })).await;
        let text = json!({ "type": "text", "text": "What do I pack for Oslo?" });
        assert_eq!(pack, json!({ "messages": [{ "role": "user", "content": text }] }), "{name}");
        for reference in [
            json!({ "type": "ref/prompt", "name": "pack" }),
            json!({ "type": "ref/resource", "uri": "weather://city/{name}" }),
        ] {
            let argument = if reference["type"] == "ref/prompt" { "city" } else { "name" };
            let input = json!({ "ref": reference, "argument": { "name": argument, "value": "P" }, "context": null });
            let suggested = ask(Operation::Complete, "", input).await;
            assert_eq!(suggested["values"], json!(["Paris"]), "{name}");
        }
    }
}

#[tokio::test]
async fn their_questions_reach_the_client() {
    let pool = pool().await;
    for (name, _) in EXAMPLES {
        let server = server(&example(name)).deploy();
        let trip =
            async |client| ask(&pool, &server, &client, Operation::Tool, "trip", json!({ "city": "Oslo" })).await;
        let client = Client::new(json!({ "people": 3 }));
        let planned = trip(client.clone()).await.unwrap();
        assert_eq!(planned, json!({ "content": [{ "type": "text", "text": "3 to Oslo for 2 days" }] }), "{name}");
        let heard = client.heard();
        assert_eq!((heard.len(), heard[0].0.as_str()), (1, "ask"), "{name}");
        let asked = &heard[0].1["asks"][0];
        assert_eq!(asked["method"], "elicitation/create", "{name}");
        assert_eq!(asked["params"]["message"], "How many go to Oslo?", "{name}");
        assert_eq!(asked["params"]["requestedSchema"]["properties"]["people"]["minimum"], 1, "{name}");

        // A client that cannot be asked is no end of the world, and neither is one that answers nonsense.
        match trip(Client::silent()).await {
            Ok(refused) => assert_eq!(refused["isError"], true, "{name}"),
            Err((code, message)) => {
                assert!(code == Code::ToolError && message.contains("cannot be asked"), "{message}")
            }
        }
        // Version 2 leaves an answer to a question within a result to the author.
        if name == "sdk-v1" {
            let nonsense = trip(Client::new(json!({ "people": 0 }))).await.unwrap();
            let text = nonsense["content"][0]["text"].as_str().unwrap();
            assert!(nonsense["isError"] == true && text.contains("does not match requested schema"), "{text}");
        }
    }
}
