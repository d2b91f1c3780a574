use super::*;
use serde_json::json;

fn check(schema: &Value) -> Result<(), TooCostly> {
    measure(schema, 16 << 20).map(drop)
}

#[test]
fn ordinary_schemas_pass() {
    for schema in [
        json!(true),
        json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "items": { "type": "number" } } } }),
        json!({ "$defs": { "a": { "type": "number" } }, "properties": { "x": { "$ref": "#/$defs/a" }, "y": { "$ref": "#/$defs/a" } } }),
        json!({ "$defs": { "tree": { "$anchor": "t", "properties": { "kids": { "items": { "$ref": "#t" } } } } }, "$ref": "#/$defs/tree" }),
        json!({ "$id": "https://x.example/s", "$ref": "https://x.example/s#/$defs/a", "$defs": { "a": {} } }),
        json!({ "properties": (0..500).map(|n| (format!("p{n}"), json!({ "properties": (0..20).map(|m| (format!("q{m}"), json!({}))).collect::<serde_json::Map<_, _>>() }))).collect::<serde_json::Map<_, _>>() }),
    ] {
        assert_eq!(check(&schema), Ok(()), "{schema}");
    }
}

#[test]
fn doubling_is_found_without_doubling() {
    let mut defs = serde_json::Map::new();
    for n in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
        defs.insert(format!("d{n}"), json!({ "anyOf": [next, next] }));
    }
    defs.insert("d40".to_owned(), json!({ "type": "number" }));
    assert_eq!(check(&json!({ "$ref": "#/$defs/d0", "$defs": defs })), Err(TooCostly::Branching));
}

#[test]
fn doubling_with_each_level_of_the_value_is_found_too() {
    let again = json!({ "properties": { "x": { "$ref": "#" } } });
    assert_eq!(check(&json!({ "anyOf": [again, again] })), Err(TooCostly::Branching));
    let items = json!({ "items": { "$ref": "#" } });
    assert_eq!(check(&json!({ "allOf": [items, items] })), Err(TooCostly::Branching));
}

#[test]
fn what_cannot_be_judged_is_refused() {
    assert!(matches!(check(&json!({ "$ref": "#" })), Err(TooCostly::Endless(_))));
    assert!(matches!(check(&json!({ "allOf": [{ "$ref": "#" }] })), Err(TooCostly::Endless(_))));
    assert!(matches!(check(&json!({ "$ref": "https://elsewhere.example/s" })), Err(TooCostly::Elsewhere(_))));
    assert!(matches!(check(&json!({ "$ref": "#/nowhere" })), Err(TooCostly::Elsewhere(_))));
    assert_eq!(check(&json!({ "properties": { "a": { "$id": "x" } } })), Err(TooCostly::NestedId));
}

fn map(entries: impl IntoIterator<Item = (String, Value)>) -> Value {
    Value::Object(entries.into_iter().collect())
}

#[test]
fn large_schemas_that_are_ordinary_pass() {
    // Hundreds of kinds that refer to each other, as they are made from the description of an API.
    let kind = |n: usize| {
        let reference = |m: usize| json!({ "$ref": format!("#/$defs/kind_{}", (n * 7 + m) % 400) });
        json!({ "type": "object", "properties": map((0..20).map(|m| (format!("some_property_{m}"), reference(m)))) })
    };
    let kinds = map((0..400).map(|n| (format!("kind_{n}"), kind(n))));
    assert_eq!(check(&json!({ "$ref": "#/$defs/kind_0", "$defs": kinds })), Ok(()));
    let deep = (0..60).fold(json!({ "type": "string" }), |inner, _| json!({ "properties": { "inner": inner } }));
    let wide = map((0..100).map(|n| (format!("p{n}"), deep.clone())));
    assert_eq!(check(&json!({ "properties": wide })), Ok(()));
    let named = map([("k".repeat(LONGEST_KEY), json!({}))]);
    assert_eq!(check(&json!({ "properties": named })), Ok(()));
    let data = map([("k".repeat(100_000), json!([{}, {}, {}]))]);
    assert_eq!(check(&json!({ "properties": { "a": { "default": data } } })), Ok(()));
}

#[test]
fn a_long_key_is_not_repeated_for_everything_below_it() {
    let below = map((0..19_990).map(|n| (n.to_string(), json!({}))));
    let long = map([("k".repeat(800_000), json!({ "properties": below }))]);
    assert_eq!(check(&json!({ "properties": long })), Err(TooCostly::LongKey));
    let branch = json!({ "$ref": "#/x", "x": { "anyOf": [{ "dependentSchemas": long }] } });
    assert_eq!(check(&branch), Err(TooCostly::LongKey));
    let anchors = map((0..10_000).map(|n| (n.to_string(), json!({ "$anchor": n.to_string() }))));
    let hidden = map([("k".repeat(800_000), anchors)]);
    assert_eq!(check(&json!({ "$defs": hidden })), Err(TooCostly::LongKey));
    // Referred to, though it is at no place for a schema.
    let reference = format!("#/{}", "k".repeat(LONGEST_KEY + 1));
    let elsewhere = map([("$ref".to_owned(), json!(reference)), (reference[2..].to_owned(), json!({}))]);
    assert_eq!(check(&elsewhere), Err(TooCostly::LongKey));
}

#[test]
fn many_keys_on_one_way_do_not_add_up_to_a_long_one() {
    let nested =
        |inner: Value| (0..50).fold(inner, |inner, _| json!({ "properties": map([("k".repeat(LONGEST_KEY), inner)]) }));
    assert_eq!(check(&nested(json!({}))), Ok(()));
    let below = map((0..10_000).map(|n| (n.to_string(), json!({}))));
    assert_eq!(check(&nested(json!({ "properties": below }))), Err(TooCostly::LongPointers));
    // The same for one part that many refer to by a short name.
    let references = map((0..10_000).map(|n| (n.to_string(), json!({ "$ref": "#x" }))));
    let schema = json!({ "properties": references, "$defs": { "far": nested(json!({ "$anchor": "x" })) } });
    assert_eq!(check(&schema), Err(TooCostly::LongPointers));
}

#[test]
fn what_many_refer_to_is_not_large() {
    let references = map((0..9_990).map(|n| (n.to_string(), json!({ "$ref": "#x" }))));
    let schema = |x: Value| json!({ "$defs": { "x": x }, "properties": references });
    let parts = vec![json!({}); 9_900];
    assert_eq!(check(&schema(json!({ "$anchor": "x", "allOf": parts }))), Err(TooCostly::Branching));
    // It looks at one place once, but has as much to go through one level deeper.
    let properties = map((0..9_900).map(|n| (n.to_string(), json!({}))));
    assert_eq!(check(&schema(json!({ "$anchor": "x", "properties": properties }))), Err(TooCostly::Branching));
    assert_eq!(check(&schema(json!({ "$anchor": "x", "allOf": vec![json!({}); 50] }))), Ok(()));
}

#[test]
fn a_long_chain_of_references_needs_no_long_stack() {
    let next = |n: usize| json!({ "properties": { "a": { "$ref": format!("#/$defs/{}", n + 1) } } });
    let chain = map((0..9_000).map(|n| (n.to_string(), next(n))).chain([("9000".to_owned(), json!({}))]));
    assert_eq!(check(&json!({ "$ref": "#/$defs/0", "$defs": chain })), Ok(()));
    let next = |n: usize| json!({ "$ref": format!("#/$defs/{}", n + 1) });
    let chain = map((0..19_000).map(|n| (n.to_string(), next(n))).chain([("19000".to_owned(), json!({}))]));
    assert!(matches!(check(&json!({ "$ref": "#/$defs/0", "$defs": chain })), Err(TooCostly::Endless(_))));
}
