use super::*;
use serde_json::json;

fn compiled(schema: &Value) -> Schema {
    Schema::compile(schema, 64 << 20).unwrap()
}

/// What the check says, or why there is none.
fn checked(schema: &Value, value: &Value) -> Result<Result<(), Vec<Violation>>, TooMuch> {
    let (schema, text) = (compiled(schema), value.to_string());
    schema.price(text.as_bytes()).map(|price| schema.check(value, price))
}

fn refused(schema: &Value, value: &Value) {
    assert!(matches!(checked(schema, value), Err(TooMuch::Work(_))), "{:.200}", schema.to_string());
}

/// CPU time of this thread.
fn cpu() -> std::time::Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn numbers(count: usize) -> Vec<Value> {
    (0..count).map(|number| json!(number)).collect()
}

#[test]
fn ordinary_values_are_checked_at_once() {
    let schema = json!({
        "type": "object",
        "properties": {
            "price": { "type": "number", "minimum": 0 },
            "currency": { "enum": ["EUR", "USD", "CHF"] },
            "tags": { "type": "array", "uniqueItems": true, "items": { "type": "string", "pattern": "^[a-z-]+$" } },
        },
        "required": ["price"],
    });
    let value = json!({ "price": 3, "currency": "EUR", "tags": ["a", "b-c"] });
    let schema = compiled(&schema);
    let price = schema.price(value.to_string().as_bytes()).unwrap();
    assert!(price.is_quick(), "{price:?}");
    assert_eq!(schema.check(&value, price), Ok(()));
}

#[test]
fn large_values_of_ordinary_schemas_are_checked() {
    let row = json!({ "type": "object", "required": ["id", "name"], "properties": {
        "id": { "type": "integer" }, "name": { "type": "string", "maxLength": 100, "pattern": "^[^\n]*$" },
        "kind": { "enum": ["a", "b", "c", "d"] }, "at": { "anyOf": [{ "type": "string" }, { "type": "null" }] } } });
    let rows: Vec<Value> =
        (0..100_000).map(|id| json!({ "id": id, "name": "some name", "kind": "b", "at": null })).collect();
    let value = json!({ "rows": rows });
    let schema = json!({ "type": "object", "properties": { "rows": { "type": "array", "items": row } } });
    assert_eq!(checked(&schema, &value), Ok(Ok(())));
    let schema = json!({ "properties": { "data": { "type": "string", "pattern": "^[A-Za-z0-9+/]*$" } } });
    assert_eq!(checked(&schema, &json!({ "data": "QUJD".repeat(1 << 20) })), Ok(Ok(())));
    let schema = json!({ "items": { "type": "integer" }, "uniqueItems": true });
    assert_eq!(checked(&schema, &json!(numbers(300_000))), Ok(Ok(())));
}

#[test]
fn every_keyword_that_multiplies_is_counted() {
    let many = json!(numbers(100_000));
    refused(&json!({ "items": { "enum": numbers(50_000) } }), &many);
    let lists: Vec<Value> = (0..5000).map(|number| json!([1, number])).collect();
    refused(&json!({ "items": { "items": { "enum": lists } } }), &json!(vec![vec![json!([1, 0]); 100]; 1000]));
    let names: Vec<String> = (0..5000).map(|number| format!("n{number}")).collect();
    let objects = json!(vec![json!({}); 100_000]);
    refused(&json!({ "items": { "not": { "required": names } } }), &objects);
    refused(&json!({ "items": { "dependentRequired": { "a": names } } }), &objects);
    let properties: serde_json::Map<String, Value> = names.iter().map(|name| (name.clone(), json!({}))).collect();
    refused(&json!({ "items": { "properties": properties } }), &objects);
    let text = json!("a".repeat(1 << 20));
    let dear = "^(?:[a-z]?[b-y]?[c-x]?){200}$";
    refused(&json!({ "pattern": dear }), &text);
    refused(&json!({ "propertyNames": { "pattern": dear } }), &json!({ "a".repeat(1 << 20): 1 }));
    let patterns = serde_json::Map::from_iter([(dear.to_owned(), json!({}))]);
    refused(&json!({ "patternProperties": patterns }), &json!({ "a".repeat(1 << 20): 1 }));
    refused(&json!({ "contains": { "enum": numbers(50_000) } }), &many);
    refused(&json!({ "unevaluatedItems": { "enum": numbers(50_000) } }), &many);
    refused(&json!({ "prefixItems": [{}], "items": { "anyOf": vec![json!({ "const": 1.5 }); 3000] } }), &many);
}

/// Lists hash by what is in them and not by how: all trees of empty lists have the same hash.
#[test]
fn lists_that_hash_alike_are_not_compared_with_each_other() {
    fn trees(nodes: usize) -> Vec<Value> {
        // A tree is its first child and the tree of the rest.
        let mut all: Vec<Vec<Vec<Value>>> = vec![vec![vec![]]];
        for nodes in 1..=nodes {
            let mut made = Vec::new();
            for first in 0..nodes {
                for child in &all[first] {
                    for rest in &all[nodes - 1 - first] {
                        let mut tree = vec![Value::Array(child.clone())];
                        tree.extend(rest.iter().cloned());
                        made.push(tree);
                    }
                }
            }
            all.push(made);
        }
        all.pop().unwrap_or_default().into_iter().map(Value::Array).collect()
    }
    let all = trees(11);
    assert_eq!(all.len(), 58_786);
    refused(&json!({ "uniqueItems": true }), &json!(all));
    assert_eq!(checked(&json!({ "uniqueItems": true }), &json!(trees(5))), Ok(Ok(())));
}

/// What is let through costs about what was computed: no keyword costs many times as much a step as plain ones do.
#[test]
fn no_step_costs_much_more_than_another() {
    let many = json!(numbers(1000));
    let enumerated: Vec<Value> = (0..20_000).map(|number| json!(f64::from(number) + 2000.5)).collect();
    let cost = |schema: Value, value: &Value| {
        let (schema, text) = (compiled(&schema), value.to_string());
        let price = schema.price(text.as_bytes()).unwrap();
        let before = cpu();
        for _ in 0..5 {
            let _ = schema.validator.is_valid(value);
        }
        (cpu() - before).as_secs_f64() / price.work
    };
    let plain = cost(json!({ "items": { "allOf": vec![json!({ "type": "number", "minimum": 0 }); 200] } }), &many);
    let text = json!("ab".repeat(2000));
    let objects = json!(vec![json!({ "a": 1 }); 1000]);
    let names: Vec<String> = (0..2000).map(|number| format!("n{number}")).collect();
    let lists: Vec<Value> = (0..2000).map(|number| json!([[[1, 2, 3, number]]])).collect();
    for (name, schema, value) in [
        ("enum", json!({ "items": { "enum": enumerated } }), &many),
        ("lists", json!({ "items": { "enum": lists } }), &json!(vec![json!([[[1, 2, 3, -1]]]); 1000])),
        ("pattern", json!({ "pattern": "^(?:[a-z]?[b-y]?[c-x]?){200}$" }), &text),
        ("alternatives", json!({ "pattern": "(a|b|ab)*(?:[ab]{50}c|[ab]{60}d)" }), &text),
        (
            "properties",
            json!({ "items": { "properties": names.iter().map(|n| (n.clone(), json!({}))).collect::<serde_json::Map<_, _>>() } }),
            &objects,
        ),
        ("dependent", json!({ "items": { "dependentRequired": { "a": names } } }), &objects),
        ("unique", json!({ "uniqueItems": true }), &json!((0..1000).map(|n| vec![json!([]); n]).collect::<Vec<_>>())),
    ] {
        let ratio = cost(schema, value) / plain;
        assert!(ratio < 8.0, "a step of {name} costs {ratio:.1} plain ones");
    }
}

/// The library makes an error of every wrong item before it gives the first one.
#[test]
fn a_few_violations_are_found_without_finding_all() {
    let wrong = json!(vec![json!("wrong"); 500_000]);
    for schema in [
        json!({ "items": { "type": "number" } }),
        json!({ "items": { "anyOf": [{ "type": "number" }, { "type": "null" }] } }),
    ] {
        let (schema, text) = (compiled(&schema), wrong.to_string());
        let price = schema.price(text.as_bytes()).unwrap();
        let mut right = numbers(500_000);
        let last = right.len() - 1;
        right[last] = json!("wrong");
        // What finds one that is wrong at the end has looked at all; finding the first must not cost more.
        let all = {
            let before = cpu();
            assert!(!schema.validator.is_valid(&json!(right)));
            cpu() - before
        };
        let before = cpu();
        let violations = schema.check(&wrong, price).unwrap_err();
        let found = cpu() - before;
        assert_eq!(violations.len(), 1);
        assert!(found < all * 4, "{found:?} for the first, {all:?} to look at all");
    }
}

#[test]
fn small_values_are_told_of_every_violation_up_to_five() {
    let schema = json!({ "properties": { "a": { "type": "number" }, "b": { "enum": [1, 2] } }, "required": ["c"] });
    let violations = checked(&schema, &json!({ "a": "x", "b": 3 })).unwrap().unwrap_err();
    let paths: Vec<&str> = violations.iter().map(|violation| violation.path.as_str()).collect();
    assert!(paths.contains(&"/a") && paths.contains(&"/b") && paths.contains(&""), "{violations:?}");
    let schema = json!({ "items": { "type": "number" } });
    assert_eq!(checked(&schema, &json!(vec!["x"; 100])).unwrap().unwrap_err().len(), MOST_VIOLATIONS);
}
