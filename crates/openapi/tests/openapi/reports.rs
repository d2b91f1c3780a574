//! What the report says, and which files are read at all.

use crate::{entries, fits, fixture, made, one, spec, tool};
use openapi::{Level, OpenApiError, Options, convert};
use serde_json::json;
use std::collections::BTreeMap;

#[test]
fn nothing_is_left_out_without_an_entry() {
    let text = r#"
openapi: 3.1.0
info: { title: T, version: 1.10, license: { name: MIT }, x-logo: a }
servers: [{ url: "https://a.example", x-logo: b }]
webhooks: { new: { post: {} } }
externalDocs: { url: "https://a.example" }
nonsense: 1
paths:
  /a:
    description: of the path
    unknown: 1
    get:
      operationId: a
      operationId: b
      externalDocs: {}
      callbacks: {}
      responses:
        "200": { description: d, links: { l: {} }, headers: {}, content: { application/xml: {} } }
  x-path: {}
"#;
    let converted = made(&one(text)).unwrap();
    let found: Vec<(&str, Level)> =
        converted.report.entries.iter().map(|entry| (entry.pointer.as_str(), entry.level)).collect();
    for pointer in [
        "/paths/~1a/get/operationId",
        "/info/license",
        "/info/x-logo",
        "/webhooks",
        "/externalDocs",
        "/nonsense",
        "/paths/~1a/unknown",
        "/paths/~1a/get/externalDocs",
        "/paths/~1a/get/callbacks",
        "/paths/~1a/get/responses/200/links",
        "/paths/~1a/get/responses/200/headers",
        "/paths/~1a/get/responses/200/content/application~1xml",
        "/paths/x-path",
    ] {
        assert!(found.contains(&(pointer, Level::Ignored)), "{pointer}: {found:#?}");
    }
    assert_eq!(found.len(), 13, "{found:#?}");
    assert_eq!(tool(&converted, "a")["description"], "of the path");
    let shown = serde_json::to_value(&converted.report).unwrap();
    assert!(
        shown["entries"][0]["level"] == "ignored" && shown["entries"][0]["text"].as_str().unwrap().contains("twice")
    );
}

#[test]
fn versions() {
    let with = |version: &str| {
        made(&one(format!(
            "openapi: {version}\ninfo: {{title: T}}\nservers: [{{url: 'https://a.example'}}]\npaths: {{/a: {{get: {{}}}}}}\n"
        )))
    };
    for good in ["3.0.0", "3.0", "3.0.4", "3.1.1", "'3.1'"] {
        assert_eq!(with(good).unwrap().report.entries, [], "{good}");
    }
    assert!(entries(&with("3.2.0").unwrap(), "/openapi").contains("like 3.1"));
    for bad in ["2.0", "4.0.0", "three", "[]", "~"] {
        assert!(matches!(with(bad), Err(OpenApiError::NoSpecification { .. })), "{bad}");
    }
    let swagger = made(&one("swagger: '2.0'\npaths: {}\n")).unwrap_err();
    assert!(swagger.to_string().contains("convert it"), "{swagger}");
    for bad in ["", "[]", "7", "openapi: 3.0.0", "openapi: 3.0.0\npaths: []", "a: [", "{\"openapi\": ", "\u{0}"] {
        assert!(made(&one(bad)).is_err(), "{bad}");
    }
    assert!(matches!(made(&one("openapi: 3.0.0\npaths: {}")), Err(OpenApiError::NoTools { .. })));
    assert!(matches!(convert(&one(""), "other.yaml", &Options::default()), Err(OpenApiError::NoFile(_))));
    assert!(made(&one(vec![0xff, 0xfe])).unwrap_err().to_string().contains("UTF-8"));
}

#[test]
fn methods_of_3_2() {
    let paths = json!({ "/a": { "query": { "operationId": "q", "requestBody": { "content": { "application/json": {} } } }, "additionalOperations": { "COPY": {} } } });
    let converted = made(&spec("3.2.0", paths, json!({}))).unwrap();
    assert_eq!(converted.endpoints[0].method, "QUERY");
    assert_eq!(tool(&converted, "q")["annotations"]["readOnlyHint"], true);
    assert!(entries(&converted, "/paths/~1a/additionalOperations").starts_with("refused"));
}

#[test]
fn files_refer_to_each_other() {
    let names = ["api.yaml", "common/paths.yaml", "common/schemas.json", "common/broken.yaml"];
    let mut files: BTreeMap<String, Vec<u8>> =
        names.iter().map(|name| ((*name).to_owned(), fixture(&format!("split/{name}")))).collect();
    files.insert("picture.png".to_owned(), vec![0xff; 100]);
    let converted = convert(&files, "api.yaml", &Options::default()).unwrap();
    assert_eq!(converted.tools, 2);
    let get = tool(&converted, "getTree");
    assert!(fits(&get["input"], json!({ "id": 1 })) && !fits(&get["input"], json!({ "id": 0 })));
    assert!(fits(&get["output"], json!({ "value": null, "left": { "value": "a" }, "forest": [{ "value": "b" }] })));
    assert!(!fits(&get["output"], json!({ "value": "a", "forest": [{ "left": {} }] })));
    let put = tool(&converted, "putTree");
    assert!(fits(&put["input"], json!({ "id": 1, "value": "a", "left": { "value": "b" } })), "{put:#}");
    for (pointer, why) in [
        ("/paths/~1outside/get/parameters/0/$ref", "leaves the folder"),
        ("/paths/~1remote/get/parameters/0/schema/$ref", "is remote"),
        ("/paths/~1broken/get/parameters/0/schema/$ref", "cannot be read"),
        ("/paths/~1missing/get/parameters/0/schema/$ref", "leads to nothing"),
    ] {
        let said = entries(&converted, pointer);
        assert!(said.starts_with("refused") && said.contains(why), "{pointer}: {said}");
    }
    assert_eq!(converted.report.refused().count(), 4);
    assert_eq!(converted.report.refused().next().unwrap().operation.as_deref(), Some("GET /broken"));
}

#[test]
fn the_same_file_makes_the_same_server() {
    let first = made(&one(fixture("petstore.yaml"))).unwrap();
    assert_eq!(first, made(&one(fixture("petstore.yaml"))).unwrap());
    let value: serde_json::Value = {
        // The same as JSON.
        let mut value = json!({});
        value["openapi"] = "3.0.3".into();
        value["info"] = json!({ "title": "T", "version": "1" });
        value["servers"] = json!([{ "url": "https://a.example" }]);
        value["paths"] = json!({ "/a": { "get": { "operationId": "a" } } });
        value
    };
    let yaml = "openapi: 3.0.3\ninfo: {title: T, version: '1'}\nservers:\n- url: https://a.example\npaths:\n  /a:\n    get: {operationId: a}\n";
    assert_eq!(made(&one(value.to_string())).unwrap().module, made(&one(yaml)).unwrap().module);
    assert_eq!(made(&one(format!("\u{feff}{value:#}"))).unwrap().module, made(&one(yaml)).unwrap().module);
}

#[test]
fn a_report_is_bounded_and_says_so() {
    let mut info = json!({ "title": "T", "version": "1" });
    for n in 0..15_000 {
        info[format!("k{n}")] = 1.into();
    }
    let converted = made(&spec("3.0.0", json!({ "/a": { "get": {} } }), json!({ "info": info }))).unwrap();
    assert_eq!(converted.report.entries.len(), 10_001);
    assert!(converted.report.entries[10_000].text.contains("more to say"));
}
