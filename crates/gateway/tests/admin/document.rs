//! The document of the API.

use crate::stage::{Stage, in_time};
use serde_json::Value;
use std::collections::BTreeSet;

async fn served() -> (String, Value) {
    let seen = in_time(async { Stage::new().await.get("", "/admin/v1/openapi.json").await }).await;
    assert_eq!(seen.headers["content-type"], "application/json");
    (seen.text(), seen.json())
}

/// With `WRITE_DOCS=1` it is written anew.
#[tokio::test]
async fn the_document_in_docs_is_the_one_that_is_served() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let (text, _) = served().await;
    if std::env::var_os("WRITE_DOCS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == text,
        "docs/openapi.json is out of date; write it anew: WRITE_DOCS=1 cargo test -p gateway --test admin"
    );
}

#[tokio::test]
async fn it_is_whole() {
    let (text, document) = served().await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    for reference in text.split("\"$ref\": \"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        let target = document.pointer(reference.strip_prefix('#').unwrap());
        assert!(target.is_some(), "{reference} leads nowhere");
    }
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let what = format!("{method} {path}");
            assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{what}: its id is not its own");
            assert!(operation["summary"].is_string() && operation["description"].is_string(), "{what}");
            let named: BTreeSet<_> = path.split(['{', '}']).skip(1).step_by(2).collect();
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let described = parameters.iter().filter(|parameter| parameter["in"] == "path");
            assert_eq!(
                described.map(|parameter| parameter["name"].as_str().unwrap()).collect::<BTreeSet<_>>(),
                named,
                "{what}"
            );
            for (status, answer) in operation["responses"].as_object().unwrap() {
                assert!(answer["description"].as_str().is_some_and(|text| !text.is_empty()), "{what}: {status}");
            }
            let open = path == "/admin/v1/openapi.json";
            assert_eq!(operation["responses"]["default"].is_object(), !open, "{what}");
            assert_eq!(operation["security"][0]["key"].is_array(), !open, "{what}");
        }
    }
}
