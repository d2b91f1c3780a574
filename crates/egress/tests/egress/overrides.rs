//! Requests that some servers take for another one: another method, path or host in a header, in the query or in the body.

use crate::rig;

use bytes::Bytes;
use egress::{Code, Limits};
use rig::proxy::{Proxy, ask};
use rig::*;
use serde_json::json;

const FORM: &str = "application/x-www-form-urlencoded";
const PARTS: &str = "multipart/form-data; boundary=b";
const JSON: &str = "application/json";

fn fine(_: &str) -> Vec<u8> {
    ok("fine")
}

fn part(name: &str, value: &str) -> String {
    format!("--b\r\ncontent-disposition: form-data; {name}\r\n\r\n{value}\r\n--b--\r\n")
}

fn narrow(rule: &str, port: u16) -> egress::Visit {
    let mut pass = pass(&[port]);
    pass.rules = rules(&[rule]);
    door(&[port], Limits::default()).visit(pass)
}

#[test]
fn headers_that_reroute_do_not_reach_the_server() {
    run(async {
        let server = Server::raw(fine).await;
        let port = server.port;
        let names = [
            "x-http-method-override",
            "X-HTTP-Method",
            "x-method-override",
            "x_http_method_override",
            "http-method-override",
            "_method",
            "x-original-url",
            "x-rewrite-url",
            "x-forwarded-uri",
            "x-forwarded-host",
            "x-forwarded-server",
            "forwarded",
            "x-host",
            "x-http-host-override",
            "x-envoy-original-dst-host",
            "x-invoke-path",
            "x-invoke-query",
            "x-matched-path",
            "x-now-route-matches",
            "x-middleware-rewrite",
            "x-middleware-subrequest",
            "x-replaced-path",
            "x-accel-redirect",
            "x-sendfile",
            "script_name",
            "path-info",
            "request-uri",
            "destination",
            "x-amz-copy-source",
        ];
        let mut headers: Vec<_> = names.iter().map(|name| (*name, "DELETE /admin")).collect();
        let kept = ["x-kept", "x-forwarded-for", "x-amz-target", "access-control-request-method", "max-forwards"];
        headers.extend(kept.map(|name| (name, "kept")));
        for (rule, narrowed) in [
            (format!("GET,POST http://a.example:{port}"), true),
            (format!("http://a.example:{port}/v1/"), true),
            (format!("http://a.example:{port}"), false),
        ] {
            let visit = narrow(&rule, port);
            fetch(&visit, 1, &server.url("/v1/x"), json!({ "headers": headers })).await.unwrap();
            read_all(&visit, 1).await.unwrap();
            let seen = server.requests().pop().unwrap();
            assert_eq!(seen.matches(": kept\r\n").count(), kept.len(), "{seen}");
            let through = names.iter().filter(|name| seen.contains(&format!("\r\n{}: DELETE", name.to_lowercase())));
            let through: Vec<_> = through.collect();
            assert_eq!(through.len(), if narrowed { 0 } else { names.len() }, "{rule}: {through:?}");
        }
    });
}

#[test]
fn fields_that_stand_for_another_method_are_refused() {
    run(async {
        let server = Server::raw(fine).await;
        let visit = narrow(&format!("GET,POST http://a.example:{}", server.port), server.port);
        let queries = [
            "_method=DELETE",
            "a=1&%5Fmethod=DELETE",
            "%255fmethod=DELETE",
            ".method=DELETE",
            "+method=DELETE",
            "[method=DELETE",
            "[_method]=DELETE",
            "_method[]=DELETE",
            "_method[0][a]=DELETE",
            "data[_method]=DELETE",
            "_method%00x=DELETE",
            "_method%00=DELETE",
            "_METHOD",
            "X-HTTP-Method-Override=DELETE",
            "%u0058-HTTP-Method-Override=DELETE",
            "x.http.method.override=DELETE",
            "method=delete",
            "httpMethod=PATCH",
            "$method=Delete",
        ];
        let queries = queries.map(|query| (format!("/x?{query}"), "text/plain", String::from("b")));
        let bodies = [
            (FORM, "a=1&_method=DELETE".to_owned()),
            (FORM, ".method=DELETE".to_owned()),
            (FORM, "_method[]=DELETE".to_owned()),
            ("text/plain, application/x-www-form-urlencoded", "_method=DELETE".to_owned()),
            ("application/x-www-form-urlencoded; charset=ibm037", "m=1".to_owned()),
            (PARTS, part("name=\"_method\"", "DELETE")),
            (PARTS, part("name=.method", "DELETE")),
            (PARTS, part("a=b name=\"_method\"", "DELETE")),
            (PARTS, part("name=\r\n _method", "DELETE")),
            (PARTS, part("name =\r\n\t\"_method\"", "DELETE")),
            (PARTS, part("name=\"=?utf-8?B?X21ldGhvZA==?=\"", "DELETE")),
            (PARTS, part("", "").replace("form-data; ", "name=_method")),
            (PARTS, part("name=\"_m\\ethod\"", "DELETE")),
            (PARTS, part("name*0=\"_met\"; name*1=\"hod\"", "DELETE")),
            (PARTS, part("name=\"method\"", "DELETE")),
            (JSON, r#"{"a": 1, "_method": "DELETE"}"#.to_owned()),
            (JSON, r#"{"_\u006dethod": "DELETE"}"#.to_owned()),
            (JSON, r#"{"a": 1} {"_method": "DELETE"}"#.to_owned()),
            (JSON, "{'_method': 'DELETE'}".to_owned()),
            (JSON, "\u{feff}{\"_method\": \"DELETE\"}".to_owned()),
            ("application/vnd.api+json", r#"{"_method": "DELETE"}"#.to_owned()),
            ("application/json", r#"{"method": "DELETE"}"#.to_owned()),
            // Without a type servers guess.
            ("", "_method=DELETE".to_owned()),
            ("", r#"{"_method": "DELETE"}"#.to_owned()),
        ];
        let bodies = bodies.map(|(kind, body)| ("/x".to_owned(), kind, body));
        for (path, kind, body) in queries.into_iter().chain(bodies) {
            let headers = if kind.is_empty() { json!([]) } else { json!([["content-type", kind]]) };
            let more = json!({ "method": "POST", "bodyLength": body.len(), "headers": headers });
            let outcome = fetch_body(&visit, 1, &server.url(&path), more, Bytes::from(body.clone())).await;
            let denied = outcome.err().unwrap_or_else(|| panic!("{path} {kind} {body} went out"));
            assert_eq!(denied.code, Code::Denied, "{path} {kind} {body}: {denied}");
        }
        // Packed, it cannot be read.
        let headers = json!([["content-type", FORM], ["content-encoding", "gzip"]]);
        let more = json!({ "method": "POST", "bodyLength": 3, "headers": headers });
        let denied = fetch_body(&visit, 1, &server.url("/x"), more, Bytes::from("a=1")).await.unwrap_err();
        assert_eq!(denied.code, Code::Denied, "{denied}");
        for (number, kind, pieces) in
            [(2, FORM, ["a=1&_met", "hod=DELETE"]), (3, JSON, ["{\"_met", "hod\":\"DELETE\"}"])]
        {
            let more = json!({ "method": "POST", "stream": true, "headers": [["content-type", kind]] });
            let url = server.url("/x");
            let (streamed, ()) = tokio::join!(fetch(&visit, number, &url, more), async {
                let _ = write(&visit, number, pieces[0], false).await;
                let _ = write(&visit, number, pieces[1], true).await;
            });
            assert_eq!(streamed.unwrap_err().code, Code::Denied, "{kind}");
        }
        assert_eq!(server.requests().len(), 0, "nothing was sent");
    });
}

#[test]
fn a_query_that_stands_for_another_path_is_refused() {
    run(async {
        let server = Server::raw(fine).await;
        let visit = narrow(&format!("http://a.example:{}/v1/", server.port), server.port);
        for query in ["rest_route=/wp/v2/users", "rest.route=/x", "rest%5Froute[]=/x"] {
            let denied = fetch(&visit, 1, &server.url(&format!("/v1/x?{query}")), json!({})).await.unwrap_err();
            assert_eq!(denied.code, Code::Denied, "{denied}");
        }
        let more = json!({ "method": "POST", "bodyLength": 12, "headers": [["content-type", FORM]] });
        let denied = fetch_body(&visit, 1, &server.url("/v1/x"), more, Bytes::from("rest_route=x")).await.unwrap_err();
        assert_eq!(denied.code, Code::Denied, "{denied}");
        assert_eq!(server.requests().len(), 0, "nothing was sent");
    });
}

#[test]
fn ordinary_requests_pass_beside_a_rule_with_methods() {
    run(async {
        let server = Server::raw(fine).await;
        let visit = narrow(&format!("GET,POST http://a.example:{}", server.port), server.port);
        let numbers = (1..).zip([
            ("/x?payment_method=card&method=POST&x=_method", FORM, "payment_method=card&a=_method".to_owned()),
            ("/x?method=flickr.photos.search", "text/plain", "_method=DELETE".to_owned()),
            ("/x", PARTS, part("name=\"a\"; filename=\"b.txt\"", "_method")),
            ("/x", JSON, r#"{"hook": {"method": "DELETE"}, "text": "_method"}"#.to_owned()),
            ("/x", "application/json; charset=\"UTF-8\"", "[1, 2]".to_owned()),
            ("/x", JSON, String::new()),
            ("/x", "application/x-ndjson", "{\"index\":{}}\n{\"a\":1}\n".to_owned()),
            ("/x", "", "any bytes".to_owned()),
        ]);
        for (number, (path, kind, body)) in numbers {
            let headers = if kind.is_empty() { json!([]) } else { json!([["content-type", kind]]) };
            let more = json!({ "method": "POST", "bodyLength": body.len(), "headers": headers });
            let outcome = fetch_body(&visit, number, &server.url(path), more, Bytes::from(body.clone())).await;
            outcome.unwrap_or_else(|denied| panic!("{path} {kind} {body}: {denied}"));
            read_all(&visit, number).await.unwrap();
            assert!(server.requests().pop().unwrap().ends_with(&body));
        }
    });
}

#[test]
fn the_proxy_refuses_them_too() {
    run(async {
        let server = Server::raw(fine).await;
        let proxy = Proxy::new(narrow(&format!("GET,POST http://a.example:{}", server.port), server.port), None).await;
        let says = |query: &str, more: &str| format!("POST {} HTTP/1.1\r\nhost: x\r\n{more}", server.url(query));
        for request in [
            says("/x?.method=DELETE", "content-length: 0\r\n\r\n"),
            says("/x", &format!("content-type: {FORM}\r\ncontent-length: 14\r\n\r\n.method=DELETE")),
            says("/x", &format!("content-type: {JSON}\r\ncontent-length: 20\r\n\r\n{{\"_method\":\"DELETE\"}}")),
            says(
                "/x",
                &format!(
                    "content-type: {JSON}\r\ntransfer-encoding: chunked\r\n\r\n14\r\n{{\"_method\":\"DELETE\"}}\r\n0\r\n\r\n"
                ),
            ),
        ] {
            let answer = ask(&mut proxy.dial().await, &request).await;
            assert!(answer.starts_with("HTTP/1.1 403 "), "{request}: {answer}");
        }
        assert_eq!(server.requests().len(), 0, "nothing was sent");
        let headers = "x-invoke-path: /admin\r\nhttp-method-override: DELETE\r\nx-forwarded-host: b.example\r\ncontent-length: 0\r\n\r\n";
        let answer = ask(&mut proxy.dial().await, &says("/x", headers)).await;
        let seen = server.requests().pop().unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(!["invoke", "override", "forwarded"].iter().any(|name| seen.contains(name)), "{seen}");
    });
}
