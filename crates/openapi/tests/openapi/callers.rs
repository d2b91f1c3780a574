//! Callers that want to write more than the values of arguments.

use crate::{everything, reply};
use insta::assert_snapshot;
use serde_json::{Value, json};

/// What callers write stays the value of one argument, wherever it goes.
#[test]
fn hostile_callers() {
    let break_out = "x\"\r\ncontent-type: text/html\r\n\r\n--part-\r\n";
    let mut evil: Value = serde_json::from_str(
        r#"{ "__proto__": { "api_key": "stolen" }, "constructor": { "prototype": 1 }, "hasOwnProperty": 1 }"#,
    )
    .unwrap();
    let places = |more: Value| {
        let mut input = json!({ "id": 1, "tail": { "a": 1 }, "more": ["x"], "name": "n" });
        more.as_object().unwrap().iter().for_each(|(name, value)| input[name] = value.clone());
        json!({ "tool": "places", "input": input, "replies": [reply("201 Created", "{}")] })
    };
    let ran = everything(json!([
        places(json!({ "id": "1/../../admin" })),
        places(json!({ "id": ".." })),
        places(json!({ "id": "a/b" })),
        places(json!({ "id": "1?x=1#y", "more": ["..", "%2e%2e"] })),
        places(json!({ "id": "1%0d%0ahost: evil", "tail": { "a=b;c": "d;e=f" } })),
        places(json!({ "where": { "a]=1&admin": "x&y=z", "__proto__": 1 }, "kind": "a&kind=b#c" })),
        places(json!({ "X-Trace": "a\r\nx-evil: 1" })),
        places(json!({ "X-Map": { "a\r\nx-evil": 1 } })),
        places(json!({ "X-Trace": "a\u{0}b" })),
        places(json!({ "theme": "a\r\nset: 1; admin=1, b", "sizes": ["a;b", "c,d"] })),
        { "tool": "parts", "input": { "file": { "text": "t", "filename": break_out, "contentType": "text/x" }, "text": break_out } },
        { "tool": "parts", "input": { "file": { "text": "t", "contentType": "text/html\r\nx: y" } } },
        { "tool": "form", "input": { "text": "a&admin=1", "deep": { "a]&b[": "c" }, "map": evil.clone() } },
        { "tool": "json", "input": { "body": evil.take(), "__proto__": { "x": 1 }, "unknown": 1 } },
    ]));
    assert_snapshot!(ran.told(), @r#"
    => {"content":[{"text":"POST /places/{id}{tail}/{more} was not sent: a segment of the path would be `.` or `..`","type":"text"}],"isError":true}

    => {"content":[{"text":"POST /places/{id}{tail}/{more} was not sent: a segment of the path would be `.` or `..`","type":"text"}],"isError":true}

    => {"content":[{"text":"POST /places/{id}{tail}/{more} could not be sent, or its answer not be read: rules allow http://api.example:PORT, but not the path `/v1/places/a%2Fb;a=1/.x`","type":"text"}],"isError":true}

    POST /v1/places/1%3Fx%3D1%23y;a=1/....%252e%252e HTTP/1.1
    accept: application/json
    content-type: application/json
    content-length: 12

    {"name":"n"}
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    => {"content":[{"text":"POST /places/{id}{tail}/{more} could not be sent, or its answer not be read: rules allow http://api.example:PORT, but not the path `/v1/places/1%250d%250ahost%3A%20evil;a%3Db%3Bc=d%3Be%3Df/.x`","type":"text"}],"isError":true}

    POST /v1/places/1;a=1/.x?kind=a%26kind%3Db%23c&where%5B__proto__%5D=1&where%5Ba%5D%3D1%26admin%5D=x%26y%3Dz HTTP/1.1
    accept: application/json
    content-type: application/json
    content-length: 12

    {"name":"n"}
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    => {"content":[{"text":"POST /places/{id}{tail}/{more} was not sent: the header X-Trace cannot carry this value: it has characters that headers do not have","type":"text"}],"isError":true}

    => {"content":[{"text":"POST /places/{id}{tail}/{more} was not sent: the header X-Map cannot carry this value: it has characters that headers do not have","type":"text"}],"isError":true}

    => {"content":[{"text":"POST /places/{id}{tail}/{more} was not sent: the header X-Trace cannot carry this value: it has characters that headers do not have","type":"text"}],"isError":true}

    POST /v1/places/1;a=1/.x HTTP/1.1
    cookie: theme=a%0D%0Aset%3A%201%3B%20admin%3D1%2C%20b; sizes=a%3Bb,c%2Cd
    accept: application/json
    content-type: application/json
    content-length: 12

    {"name":"n"}
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    POST /v1/parts HTTP/1.1
    content-type: multipart/form-data; boundary=BOUNDARY
    content-length: 369

    --BOUNDARY
    content-disposition: form-data; name="file"; filename="x%22%0D%0Acontent-type: text/html%0D%0A%0D%0A--part-%0D%0A"
    content-type: text/x

    t
    --BOUNDARY
    content-disposition: form-data; name="text"

    x"
    content-type: text/html

    --part-

    --BOUNDARY--
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    => {"content":[{"text":"POST /parts was not sent: `contentType` of file is none","type":"text"}],"isError":true}

    POST /v1/form HTTP/1.1
    content-type: application/x-www-form-urlencoded
    content-length: 180

    deep%5Ba%5D%26b%5B%5D=c&map=%7B%22__proto__%22%3A%7B%22api_key%22%3A%22stolen%22%7D%2C%22constructor%22%3A%7B%22prototype%22%3A1%7D%2C%22hasOwnProperty%22%3A1%7D&text=a%26admin%3D1
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    POST /v1/json HTTP/1.1
    content-type: application/json
    content-length: 83

    {"__proto__":{"api_key":"stolen"},"constructor":{"prototype":1},"hasOwnProperty":1}
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}
    "#);
}

/// Only the module says where secrets go. What a caller writes is refused where the host would look for it, and else is text.
#[test]
fn callers_cannot_mark_a_place() {
    let mark = |name: &str| format!("{{{{secret:{name}}}}}");
    let key = mark("IN_QUERY");
    let ran = everything(json!([
        { "tool": "none", "input": { "api_key": key } },
        { "tool": "none", "input": { "filter": { "api_key": key } } },
        { "tool": "none", "input": { "raw": "%7B%7Bsecret:IN_QUERY%7D%7D" } },
        { "tool": "none", "input": { "X-Key": mark("IN_HEADER") } },
        { "tool": "none", "input": { "sid": mark("IN_COOKIE") } },
        { "tool": "query", "input": { "filter": { "api_key": "mine", "x": "{{secret}}" }, "api_key": "mine" } },
        { "tool": "cookie", "input": { "prefs": { "sid": "mine" }, "sid": "mine" } },
        { "tool": "json", "input": { "body": { "a": [{ "b": format!("Bearer {key}") }] } } },
        { "tool": "form", "input": { "text": key } },
        { "tool": "text", "input": { "body": key } },
    ]));
    assert_snapshot!(ran.told(), @r#"
    => {"content":[{"text":"GET /none was not sent: the input has `{{secret:` in it, which marks the place of a secret","type":"text"}],"isError":true}

    => {"content":[{"text":"GET /none was not sent: the input has `{{secret:` in it, which marks the place of a secret","type":"text"}],"isError":true}

    => {"content":[{"text":"GET /none was not sent: the input has `{{secret:` in it, which marks the place of a secret","type":"text"}],"isError":true}

    => {"content":[{"text":"GET /none was not sent: the input has `{{secret:` in it, which marks the place of a secret","type":"text"}],"isError":true}

    => {"content":[{"text":"GET /none was not sent: the input has `{{secret:` in it, which marks the place of a secret","type":"text"}],"isError":true}

    => {"content":[{"text":"GET /query was not sent: `api_key` is the place of a credential","type":"text"}],"isError":true}

    => {"content":[{"text":"GET /cookie was not sent: `sid` is the place of a credential","type":"text"}],"isError":true}

    => {"content":[{"text":"POST /json was not sent: the input has `{{secret:` in it, which marks the place of a secret","type":"text"}],"isError":true}

    POST /v1/form HTTP/1.1
    content-type: application/x-www-form-urlencoded
    content-length: 34

    text=%7B%7Bsecret%3AIN_QUERY%7D%7D
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}

    POST /v1/text HTTP/1.1
    content-type: text/plain
    content-length: 19

    {{secret:IN_QUERY}}
    => {"content":[{"text":"{}","type":"text"}],"structuredContent":{}}
    "#);
}
