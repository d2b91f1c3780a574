//! Every style, as bytes on the wire.

use crate::run::{Run, run};
use crate::{entries, fits, fixture, one, spec, table, tool};
use serde_json::{Value, json};

/// What the specification and RFC 6570 say for a text, a list and an object, after the path of the operation.
#[test]
fn paths_and_queries_are_written_as_the_tables_say() {
    let list = json!(["blue", "black", "brown"]);
    let object = json!({ "G": 200, "R": 100 });
    let odd = json!("a/b c%é?#&=");
    let rows: Vec<(&str, Value, &str)> = vec![
        ("simple", json!("blue"), "/simple/blue"),
        ("simple", list.clone(), "/simple/blue,black,brown"),
        ("simple", object.clone(), "/simple/G,200,R,100"),
        ("simple", odd.clone(), "/simple/a%2Fb%20c%25%C3%A9%3F%23%26%3D"),
        ("simple", json!("!'()*~._-"), "/simple/%21%27%28%29%2A~._-"),
        ("simple", json!(["a,b", true, 1.5, null]), "/simple/a%2Cb,true,1.5"),
        ("simpleExplode", list.clone(), "/simple-explode/blue,black,brown"),
        ("simpleExplode", object.clone(), "/simple-explode/G=200,R=100"),
        ("label", json!("blue"), "/label/.blue"),
        ("label", list.clone(), "/label/.blue,black,brown"),
        ("label", object.clone(), "/label/.G,200,R,100"),
        ("labelExplode", list.clone(), "/label-explode/.blue.black.brown"),
        ("labelExplode", object.clone(), "/label-explode/.G=200.R=100"),
        ("matrix", json!("blue"), "/matrix/;p=blue"),
        ("matrix", list.clone(), "/matrix/;p=blue,black,brown"),
        ("matrix", object.clone(), "/matrix/;p=G,200,R,100"),
        ("matrixExplode", list.clone(), "/matrix-explode/;p=blue;p=black;p=brown"),
        ("matrixExplode", object.clone(), "/matrix-explode/;G=200;R=100"),
        ("pathJson", json!({ "a": [1] }), "/path-json/%7B%22a%22%3A%5B1%5D%7D"),
        ("form", json!("blue"), "/q/form?p=blue"),
        ("form", json!(""), "/q/form?p="),
        ("form", json!(false), "/q/form?p=false"),
        ("form", json!(0), "/q/form?p=0"),
        ("form", json!(null), "/q/form"),
        ("form", json!([]), "/q/form"),
        ("form", odd.clone(), "/q/form?p=a%2Fb%20c%25%C3%A9%3F%23%26%3D"),
        ("form", list.clone(), "/q/form?p=blue,black,brown"),
        ("form", object.clone(), "/q/form?p=G,200,R,100"),
        ("formExplode", list.clone(), "/q/form-explode?p=blue&p=black&p=brown"),
        ("formExplode", object.clone(), "/q/form-explode?G=200&R=100"),
        ("formExplode", json!([["x", 1], { "y": 2 }]), "/q/form-explode?p=%5B%22x%22%2C1%5D&p=%7B%22y%22%3A2%7D"),
        ("space", list.clone(), "/q/space?p=blue%20black%20brown"),
        ("space", object.clone(), "/q/space?p=G%20200%20R%20100"),
        ("spaceExplode", list.clone(), "/q/space-explode?p=blue&p=black&p=brown"),
        ("pipe", list.clone(), "/q/pipe?p=blue%7Cblack%7Cbrown"),
        ("pipe", object.clone(), "/q/pipe?p=G%7C200%7CR%7C100"),
        ("deep", object.clone(), "/q/deep?p%5BG%5D=200&p%5BR%5D=100"),
        ("deep", json!({ "a": { "b": 1 }, "c": [2, 3] }), "/q/deep?p%5Ba%5D%5Bb%5D=1&p%5Bc%5D=2&p%5Bc%5D=3"),
        ("reserved", json!("a:/?@!$()*+,;=[]b c%20%zz#&"), "/q/reserved?p=a:/?@!$()*+,;=[]b%20c%20%25zz%23%26"),
        ("reserved", json!("it's"), "/q/reserved?p=it%27s"),
        ("empty", json!(""), "/q/empty?p="),
        ("queryJson", json!({ "a": "b c" }), "/q/json?p=%7B%22a%22%3A%22b%20c%22%7D"),
    ];
    let calls: Vec<Value> =
        rows.iter().map(|(tool, value, _)| json!({ "tool": tool, "input": { "p": value } })).collect();
    let ran = Run::new(&one(fixture("styles.yaml"))).whole_host().calls(calls.into());
    for ((tool, value, expected), answer) in rows.iter().zip(&ran.calls) {
        assert_eq!(answer.wire(), format!("GET {expected} HTTP/1.1\n"), "{tool} {value}");
    }
    assert!(entries(&ran.converted, "/paths/~1q~1space-explode/get/parameters/0/explode").contains("like `form`"));
    let empty = tool(&ran.converted, "empty");
    assert!(fits(&empty["input"], json!({ "p": "" })) && !fits(&empty["input"], json!({ "p": "x" })));
}

#[test]
fn headers_and_cookies_are_written_as_the_tables_say() {
    let list = json!(["blue", "black"]);
    let object = json!({ "G": 200, "R": 100 });
    let rows: Vec<(&str, &str, Value, &str, &str)> = vec![
        ("header", "X-P", json!("a b%"), "x-p", "a b%"),
        ("header", "X-P", list.clone(), "x-p", "blue,black"),
        ("header", "X-P", object.clone(), "x-p", "G,200,R,100"),
        ("headerExplode", "X-P", object.clone(), "x-p", "G=200,R=100"),
        ("headerJson", "X-P", json!({ "a": [1, "b"] }), "x-p", r#"{"a":[1,"b"]}"#),
        ("cookie", "p", json!("a;b c"), "cookie", "p=a%3Bb%20c"),
        ("cookie", "p", list.clone(), "cookie", "p=blue,black"),
        ("cookieExplode", "p", list.clone(), "cookie", "p=blue; p=black"),
        ("cookieExplode", "p", object.clone(), "cookie", "G=200; R=100"),
        ("cookieBare", "p", json!("a/b=c"), "cookie", "p=a/b=c"),
    ];
    let call = |(tool, argument, value, ..): &(&str, &str, Value, &str, &str)| json!({ "tool": tool, "input": { (*argument): value } });
    let calls: Vec<Value> = rows.iter().map(call).collect();
    let ran = run(&one(fixture("styles.yaml")), calls.into());
    for ((tool, _, value, header, expected), answer) in rows.iter().zip(&ran.calls) {
        let wire = answer.wire();
        let (_, rest) = wire.split_once('\n').unwrap();
        assert_eq!(rest, format!("{header}: {expected}\n"), "{tool} {value}");
    }
}

#[test]
fn what_would_lead_elsewhere_is_not_sent() {
    let rows = [
        ("simple", json!({ "p": ".." })),
        ("simple", json!({ "p": "." })),
        ("simple", json!({ "p": "../../admin" })),
        ("simple", json!({ "p": "a/.." })),
        ("simple", json!({ "p": "..\\x" })),
        ("simple", json!({ "p": "..;x" })),
        ("simple", json!({ "p": "" })),
        ("simple", json!({ "p": [] })),
        ("simple", json!({ "p": null })),
        ("simple", json!({})),
        ("label", json!({ "p": "" })),
        ("label", json!({ "p": "." })),
        ("labelExplode", json!({ "p": ["", ""] })),
        ("header", json!({ "X-P": "a\r\nhost: evil" })),
        ("header", json!({ "X-P": "a\nb" })),
        ("header", json!({ "X-P": "日本" })),
        ("header", json!({ "X-P": "{{secret:KEY}}" })),
        ("header", json!({ "X-P": { "{{secret:KEY}}": 1 } })),
        ("headerExplode", json!({ "X-P": { "a": "\0" } })),
        ("cookieBare", json!({ "p": "a; admin=1" })),
        ("cookieBare", json!({ "p": "{{secret:KEY}}" })),
        ("cookie", json!({ "p": "{{secret:KEY}}" })),
        ("cookieExplode", json!({ "p": { "{{secret:KEY}}": 1 } })),
        ("simple", json!({ "p": "{{secret:KEY}}" })),
        ("form", json!({ "p": "x{{secret:KEY}}" })),
        ("formExplode", json!({ "p": { "{{secret:KEY}}": 1 } })),
        ("formExplode", json!({ "p": { "api_key": "{{secret:KEY}}" } })),
        ("deep", json!({ "p": { "a": { "b": ["{{secret:KEY}}"] } } })),
        ("reserved", json!({ "p": "{{secret:KEY}}" })),
        // The host reads escapes, and this style keeps those of the caller.
        ("reserved", json!({ "p": "%7B%7bsecret%3AKEY%7D%7D" })),
        ("reserved", json!({ "p": "{%7B%73ecret:KEY}}" })),
        ("queryJson", json!({ "p": ["{{secret:KEY}}"] })),
    ];
    let calls: Vec<Value> = rows.iter().map(|(tool, input)| json!({ "tool": tool, "input": input })).collect();
    let ran = run(&one(fixture("styles.yaml")), calls.into());
    for ((tool, input), answer) in rows.iter().zip(&ran.calls) {
        assert!(answer.requests.is_empty(), "{tool} {input}: {:?}", answer.requests);
        assert_eq!(answer.result["isError"], true, "{tool} {input}: {}", answer.result);
        assert!(answer.text().contains("was not sent"), "{}", answer.text());
    }
}

#[test]
fn values_cannot_become_more_than_values() {
    let rows = [
        ("simple", json!({ "p": "%2e%2e" }), "/simple/%252e%252e"),
        ("simple", json!({ "p": "a/b" }), "/simple/a%2Fb"),
        ("simple", json!({ "p": "...\\x" }), "/simple/...%5Cx"),
        ("simple", json!({ "p": "x?admin=1#y" }), "/simple/x%3Fadmin%3D1%23y"),
        ("form", json!({ "p": "x&admin=1" }), "/q/form?p=x%26admin%3D1"),
        ("form", json!({ "p": "{{secret}} secret:KEY" }), "/q/form?p=%7B%7Bsecret%7D%7D%20secret%3AKEY"),
        ("reserved", json!({ "p": "x&admin=1#y" }), "/q/reserved?p=x%26admin=1%23y"),
        ("reserved", json!({ "p": "%257B%7bsecret:KEY" }), "/q/reserved?p=%257B%7bsecret:KEY"),
        ("formExplode", json!({ "p": { "a&b": 1, "__proto__": 2 } }), "/q/form-explode?__proto__=2&a%26b=1"),
        ("form", json!({ "p": 1, "constructor": 2, "__proto__": 3 }), "/q/form?p=1"),
    ];
    let calls: Vec<Value> = rows.iter().map(|(tool, input, _)| json!({ "tool": tool, "input": input })).collect();
    let ran = Run::new(&one(fixture("styles.yaml"))).whole_host().calls(calls.clone().into());
    for ((tool, input, expected), answer) in rows.iter().zip(&ran.calls) {
        assert_eq!(answer.wire(), format!("GET {expected} HTTP/1.1\n"), "{tool} {input}");
    }
    // Below a path the host refuses what some server could take for a way out of it.
    let ran = run(&one(fixture("styles.yaml")), calls.into());
    let sent: Vec<bool> = ran.calls.iter().map(|answer| !answer.requests.is_empty()).collect();
    assert_eq!(sent, [false, false, false, true, true, true, true, true, true, true]);
}

#[test]
fn one_name_in_many_places() {
    let parameter = |place: &str, required: bool| json!({ "name": "id", "in": place, "required": required, "schema": { "type": "string" } });
    let paths = json!({ "/x/{id}": { "post": {
        "operationId": "clash",
        "parameters": [parameter("cookie", false), parameter("header", false), parameter("query", true), parameter("path", true)],
        "requestBody": { "required": true, "content": { "application/json": { "schema": {
            "type": "object", "properties": { "id": { "type": "string" } }, "additionalProperties": false } } } },
    } } });
    let input = json!({ "id": "p", "query_id": "q", "header_id": "h", "cookie_id": "c", "body": { "id": "b" } });
    let ran = run(&spec("3.0.0", paths, json!({})), json!([{ "tool": "clash", "input": input }]));
    let request = ran.calls[0].request();
    assert_eq!(request.line, "POST /v1/x/p?id=q HTTP/1.1");
    assert_eq!((request.headers["id"].as_str(), request.headers["cookie"].as_str()), ("h", "id=c"));
    assert_eq!(request.body, r#"{"id":"b"}"#);
    let tool = tool(&ran.converted, "clash");
    assert_eq!(tool["input"]["required"], json!(["id", "query_id", "body"]));
    assert!(fits(&tool["input"], input));
    let said = entries(&ran.converted, "/paths/~1x~1{id}/post/parameters/2");
    assert!(said.contains("`query_id`") && said.contains("POST /x/{id}"), "{said}");
    assert!(entries(&ran.converted, "/paths/~1x~1{id}/post/requestBody/content/application~1json").contains("`id`"));
}

#[test]
fn parameters_of_a_path_and_of_its_operation() {
    let paths = json!({ "/x": {
        "parameters": [
            { "name": "a", "in": "query", "schema": { "type": "string" } },
            { "name": "b", "in": "query", "description": "of the path", "schema": { "type": "string" } },
        ],
        "get": { "operationId": "get", "parameters": [
            { "name": "b", "in": "query", "description": "of the operation", "schema": { "type": "integer" }, "deprecated": true },
            { "name": "filter[x]", "in": "query", "schema": { "type": "string" } },
            { "name": "Authorization", "in": "header", "required": true, "schema": { "type": "string" } },
            { "name": "Host", "in": "header", "schema": { "type": "string" } },
            { "name": "bad name", "in": "header", "schema": { "type": "string" } },
            { "name": "s", "in": "query", "style": "matrix", "schema": { "type": "string" } },
            { "name": "f", "in": "formData", "schema": { "type": "string" } },
            { "name": "m", "in": "query", "content": { "application/xml": {} } },
            { "name": "a", "in": "query", "schema": { "type": "string" } },
            { "name": "a", "in": "query", "schema": { "type": "string" } },
        ] },
    } });
    let converted = crate::made(&spec("3.0.0", paths, json!({}))).unwrap();
    let tool = tool(&converted, "get");
    let names: Vec<&String> = tool["input"]["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["a", "b", "filter_x_"]);
    assert_eq!(
        tool["input"]["properties"]["b"],
        json!({ "type": "integer", "description": "Deprecated. of the operation" })
    );
    for (index, why) in [
        (2, "not the caller's"),
        (3, "not the caller's"),
        (4, "no name"),
        (5, "`matrix`"),
        (6, "`formData`"),
        (7, "xml"),
        (9, "twice"),
    ] {
        let said = entries(&converted, &format!("/paths/~1x/get/parameters/{index}"));
        assert!(said.starts_with("ignored") && said.contains(why), "{index}: {said}");
    }
}

#[test]
fn what_is_needed_and_cannot_be_sent_refuses_the_operation() {
    let paths = json!({
        "/ok": { "get": { "operationId": "ok" } },
        "/a": { "get": { "parameters": [{ "name": "p", "in": "query", "required": true, "style": "label", "schema": {} }] } },
        "/b/{x}": { "get": {} },
        "/c/{x": { "get": {} },
        "/d/x}": { "get": {} },
        "/e/../f": { "get": {} },
        "/e/%2E%2e/f": { "get": {} },
        "/g": { "trace": {} },
        "/h": { "get": { "requestBody": { "required": true, "content": { "application/json": {} } } } },
        "/i": { "get": 7 },
        "/j?k": { "get": {} },
        "l": { "get": {} },
        "/m": { "get": { "parameters": [7] } },
    });
    let converted = crate::made(&spec("3.1.0", paths, json!({}))).unwrap();
    assert_eq!(converted.tools, 1);
    let refused: Vec<String> = converted.report.refused().map(|entry| entry.pointer.clone()).collect();
    assert_eq!(refused.len(), 12, "{refused:#?}");
    assert_eq!(table(&converted)["tools"].as_array().unwrap().len(), 1);
}

#[test]
fn literal_parts_of_paths_are_escaped() {
    let paths = json!({ "/a b/ü/{x}:go/`${1}`\\": { "get": { "operationId": "odd", "parameters": [
        { "name": "x", "in": "path", "required": true, "schema": {} }, { "name": "1", "in": "path", "required": true, "schema": {} }] } } });
    let files = spec("3.1.0", paths, json!({}));
    let calls = json!([{ "tool": "odd", "input": { "x": "y", "1": "z" } }]);
    let ran = Run::new(&files).whole_host().calls(calls);
    assert_eq!(ran.calls[0].wire(), "GET /a%20b/%C3%BC/y:go/%60$z%60%5C HTTP/1.1\n");
}
