//! Names of tools, filters, and bounds on how many there are.

use crate::{entries, made, spec, table, tool};
use openapi::{Converted, OpenApiError, Options, convert};
use serde_json::{Value, json};

fn names(converted: &Converted) -> Vec<String> {
    converted.endpoints.iter().map(|endpoint| endpoint.tool.clone()).collect()
}

fn paths() -> Value {
    json!({
        "/pets": { "get": { "operationId": "listPets", "tags": ["pets"] }, "post": { "operationId": "pets/add", "tags": ["pets", "write"] } },
        "/pets/{id}": { "delete": { "operationId": "listPets", "tags": ["write"], "parameters": [{ "name": "id", "in": "path", "schema": {} }] } },
        "/plain/{a}/{b}/": { "get": { "parameters": [{ "name": "a", "in": "path", "schema": {} }, { "name": "b", "in": "path", "schema": {} }] } },
        "/日本": { "get": { "operationId": "日本" } },
        "/x": { "get": { "operationId": "pets_add" } },
    })
}

#[test]
fn names_fit_and_do_not_clash() {
    let converted = made(&spec("3.0.0", paths(), json!({}))).unwrap();
    assert_eq!(names(&converted), ["listPets", "pets_add_2", "listPets_2", "get_plain_a_b", "pets_add", "get"]);
    assert!(entries(&converted, "/paths/~1pets~1{id}/delete/operationId").contains("`listPets_2`"));
    assert!(entries(&converted, "/paths/~1pets/post/operationId").contains("`pets_add_2`"));
    let long = "a".repeat(200);
    let paths = json!({ "/a": { "get": { "operationId": long }, "put": { "operationId": long } } });
    let converted = made(&spec("3.0.0", paths, json!({}))).unwrap();
    assert_eq!(names(&converted), ["a".repeat(64), format!("{}_2", "a".repeat(62))]);
}

#[test]
fn endpoints_say_where_each_tool_leads() {
    let converted = made(&spec("3.0.0", paths(), json!({}))).unwrap();
    let shown = serde_json::to_value(&converted.endpoints[2]).unwrap();
    let expected = json!({ "tool": "listPets_2", "method": "DELETE", "path": "/pets/{id}", "base_url": "https://api.example.com/v1" });
    assert_eq!(shown, expected);
    assert_eq!(converted.egress, ["api.example.com"]);
}

#[test]
fn filters() {
    let select = |include: &[&str], exclude: &[&str], tags: &[&str]| {
        let own = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let options = Options { include: own(include), exclude: own(exclude), tags: own(tags), ..Options::default() };
        convert(&spec("3.0.0", paths(), json!({})), "api.yaml", &options)
    };
    let chosen = |include: &[&str], exclude: &[&str], tags: &[&str]| names(&select(include, exclude, tags).unwrap());
    assert_eq!(chosen(&["GET *"], &[], &[]), ["listPets", "get_plain_a_b", "pets_add", "get"]);
    assert_eq!(chosen(&["listPets"], &["DELETE *"], &[]), ["listPets"]);
    assert_eq!(chosen(&["* /pets/{id}"], &[], &[]), ["listPets_2"]);
    assert_eq!(chosen(&[], &[], &["pets"]), ["listPets", "pets_add_2"]);
}

#[test]
fn filters_that_leave_nothing_or_match_nothing_are_errors() {
    let select = |options: Options| convert(&spec("3.0.0", paths(), json!({})), "api.yaml", &options).unwrap_err();
    let list = |text: &str| vec![text.to_owned()];
    assert!(matches!(select(Options { exclude: list("*"), ..Options::default() }), OpenApiError::NoTools { .. }));
    for options in [
        Options { include: list("nobody"), ..Options::default() },
        Options { exclude: list("GET /pet"), ..Options::default() },
        Options { tags: list("nobody"), ..Options::default() },
    ] {
        let error = select(options);
        assert!(matches!(error, OpenApiError::NoMatch { .. }) && error.to_string().contains("`GET /pets`"), "{error}");
    }
    let options = Options { tags: list("write"), include: list("*pets*"), ..Options::default() };
    assert_eq!(
        names(&convert(&spec("3.0.0", paths(), json!({})), "api.yaml", &options).unwrap()),
        ["pets_add_2", "listPets_2"]
    );
}

fn many(count: usize) -> Value {
    (0..count)
        .map(|n| (format!("/p{n}"), json!({ "get": { "operationId": format!("get{n}") } })))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[test]
fn too_many_are_an_error_that_says_so() {
    let error = made(&spec("3.0.0", many(10_000), json!({}))).unwrap_err();
    assert_eq!(error, OpenApiError::TooMany { selected: 10_000, most: 200 });
    assert!(error.to_string().contains("--include") && error.to_string().contains("10000"));
    assert_eq!(made(&spec("3.0.0", many(200), json!({}))).unwrap().tools, 200);
    assert!(made(&spec("3.0.0", many(201), json!({}))).is_err());
    let options = Options { include: vec!["get99?".to_owned()], ..Options::default() };
    assert_eq!(convert(&spec("3.0.0", many(10_000), json!({})), "api.yaml", &options).unwrap().tools, 10);
    let options = Options { most_tools: 500, ..Options::default() };
    assert_eq!(convert(&spec("3.0.0", many(500), json!({})), "api.yaml", &options).unwrap().tools, 500);
}

#[test]
fn equal_names_do_not_take_for_ever() {
    let paths: Value = (0..20_000)
        .map(|n| (format!("/p{n}"), json!({ "get": { "operationId": "same" } })))
        .collect::<serde_json::Map<_, _>>()
        .into();
    assert!(matches!(made(&spec("3.0.0", paths, json!({}))), Err(OpenApiError::TooMany { selected: 20_000, .. })));
}

#[test]
fn a_surface_that_no_host_takes_is_an_error() {
    let wide = json!({ "properties": (0..300).map(|n| (format!("p{n}"), json!({ "description": "x".repeat(50) }))).collect::<serde_json::Map<_, _>>() });
    let paths: Value = (0..100)
        .map(|n| {
            let parameter = json!([{ "name": "p", "in": "query", "schema": { "$ref": "#/components/schemas/Wide" } }]);
            (format!("/p{n}"), json!({ "get": { "operationId": format!("get{n}"), "parameters": parameter } }))
        })
        .collect::<serde_json::Map<_, _>>()
        .into();
    let error = made(&spec("3.0.0", paths, json!({ "components": { "schemas": { "Wide": wide } } }))).unwrap_err();
    assert!(
        matches!(error, OpenApiError::TooLarge { selected: 100, .. }) && error.to_string().contains("filter"),
        "{error}"
    );
}

#[test]
fn annotations_promise_what_the_method_does() {
    let methods = ["get", "head", "options", "put", "post", "patch", "delete"];
    let item: Value = methods
        .iter()
        .map(|method| ((*method).to_owned(), json!({ "operationId": method })))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let converted = made(&spec("3.0.0", json!({ "/x": item }), json!({}))).unwrap();
    for (method, read, destructive, idempotent) in [
        ("get", true, None, None),
        ("head", true, None, None),
        ("options", true, None, None),
        ("put", false, None, Some(true)),
        ("post", false, None, None),
        ("patch", false, None, None),
        ("delete", false, Some(true), Some(true)),
    ] {
        let hints = tool(&converted, method)["annotations"].clone();
        assert_eq!((&hints["readOnlyHint"], &hints["openWorldHint"]), (&json!(read), &json!(true)));
        assert_eq!(
            (hints["destructiveHint"].as_bool(), hints["idempotentHint"].as_bool()),
            (destructive, idempotent),
            "{method}"
        );
    }
}

#[test]
fn descriptions() {
    let paths = json!({ "/x": {
        "get": { "operationId": "a", "summary": "Short", "description": "Long", "deprecated": true },
        "put": { "operationId": "b", "summary": "Same", "description": "Same and more" },
        "post": { "operationId": "c" },
        "patch": { "operationId": "d", "description": "x".repeat(5000) },
    } });
    let converted = made(&spec("3.0.0", paths, json!({}))).unwrap();
    let shown = |name: &str| tool(&converted, name)["description"].as_str().unwrap().to_owned();
    assert_eq!(shown("a"), "Deprecated. Short\n\nLong");
    assert_eq!(shown("b"), "Same and more");
    assert_eq!(shown("c"), "POST /x");
    assert_eq!(shown("d").chars().count(), 2001);
    assert_eq!(tool(&converted, "a")["title"], "Short");
    assert!(entries(&converted, "/paths/~1x/patch/description").starts_with("changed"));
    assert_eq!(table(&converted)["name"], "test");
}
