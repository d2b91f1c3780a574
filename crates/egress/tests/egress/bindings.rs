//! Secrets are put where bindings say, and nowhere else. On real sockets.

use crate::rig;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use egress::{Binding, Bindings, Bound, Code, Denied, Limits, Pattern, Place, Secrets, Visit};
use futures_util::future::BoxFuture;
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderName;
use rig::*;
use secrecy::SecretString;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;

const KEY: &str = "sk_live/51 Hx+q\"Z";
const LOGIN: &str = "someone:pass words+1";
const AWS: &str = "AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY:AQoDYXdzEPT//session==";

struct Store;

impl Secrets for Store {
    fn get<'a>(&'a self, used: &'a egress::Use<'a>) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        self.known(used.name)
    }

    fn known<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let value = match name {
                "KEY" => KEY,
                "OTHER" => "another-secret-value",
                "LOGIN" => LOGIN,
                "TOKEN_LOGIN" => "ghp_0123456789:x",
                "AWS" => AWS,
                "SHORT" => "eleven byte",
                "SHORT_LOGIN" => "a-long-user-name:eleven byte",
                "BREAK" => "a line\r\nbreak",
                "GONE" => return Err(Denied::secret("the token of `GONE` could not be renewed")),
                _ => return Ok(None),
            };
            Ok(Some(SecretString::from(value)))
        })
    }
}

fn header(name: &'static str) -> Place {
    Place::Header(HeaderName::from_static(name))
}

fn binding(name: &str, port: u16, place: Place) -> Binding {
    Binding::new(name, vec![Pattern::parse(&format!("http://a.example:{port}")).unwrap()], place)
}

fn asked(mut binding: Binding) -> Binding {
    binding.asked = true;
    binding
}

fn formatted(mut binding: Binding, format: &str) -> Binding {
    binding.format = format.to_owned();
    binding
}

fn visit_with(ports: &[u16], bindings: Vec<Binding>) -> Visit {
    let mut pass = pass(ports);
    pass.credentials = Arc::new(Bound::new(Bindings::new(bindings).unwrap(), Arc::new(Store)));
    door(ports, Limits::default()).visit(pass)
}

/// Says back what it was told, as it came.
async fn parrot() -> Server {
    Server::raw(|request| {
        let path = request.split(' ').nth(1).unwrap();
        match path.strip_prefix("/to?") {
            Some(to) => redirect(307, to.split('&').next().unwrap()),
            None => ok(request),
        }
    })
    .await
}

/// What the server saw, and what came back of it.
async fn send(visit: &Visit, server: &Server, path: &str, headers: Value) -> (String, String) {
    fetch(visit, 1, &server.url(path), json!({ "headers": headers })).await.unwrap();
    let back = String::from_utf8(read_all(visit, 1).await.unwrap()).unwrap();
    (server.requests().pop().unwrap(), back)
}

/// What comes back.
async fn post(visit: &Visit, url: &str, kind: &str, body: &str) -> Result<String, Denied> {
    let more = json!({ "method": "POST", "bodyLength": body.len(), "headers": [["content-type", kind]] });
    fetch_body(visit, 1, url, more, Bytes::from(body.to_owned())).await?;
    Ok(String::from_utf8(read_all(visit, 1).await?).unwrap())
}

fn body_of(request: &str) -> &str {
    request.split_once("\r\n\r\n").unwrap().1
}

#[test]
fn a_header_is_set_or_its_placeholder_replaced() {
    run(async {
        let server = parrot().await;
        let port = server.port;
        let visit = visit_with(
            &[port],
            vec![
                formatted(binding("KEY", port, header("x-key")), "Key {}!"),
                asked(binding("OTHER", port, header("x-other"))),
            ],
        );
        let (seen, back) = send(&visit, &server, "/", json!([["x-key", "forged"]])).await;
        assert!(seen.contains(&format!("x-key: Key {KEY}!\r\n")) && !seen.contains("forged"), "{seen}");
        assert!(!seen.contains("x-other"), "nobody asked: {seen}");
        assert!(
            !back.contains("sk_live") && back.contains(&format!("x-key: Key {}!\r\n", "*".repeat(KEY.len()))),
            "{back}"
        );
        assert_eq!(visit.credentials(), ["KEY"]);
        let headers = json!([
            ["x-key", "a {{secret:KEY}} b {{secret:OTHER}}"],
            ["x-other", "<{{secret:OTHER}}>"],
            ["x-else", "{{secret:KEY}}"],
        ]);
        let (seen, back) = send(&visit, &server, "/{{secret:KEY}}?{{secret:KEY}}", headers).await;
        assert!(seen.contains(&format!("x-key: a {KEY} b {{{{secret:OTHER}}}}\r\n")), "{seen}");
        assert!(seen.contains("x-other: <another-secret-value>\r\n"), "{seen}");
        assert!(seen.contains("x-else: {{secret:KEY}}\r\n"), "not its place: {seen}");
        assert!(seen.starts_with("GET /%7B%7Bsecret:KEY%7D%7D?{{secret:KEY}} "), "not its place: {seen}");
        assert!(!back.contains("sk_live") && !back.contains("another-secret"), "{back}");
        assert_eq!(visit.credentials(), ["KEY", "OTHER"]);
        let records = visit.records();
        assert_eq!(records[0].credentials, ["KEY"]);
        assert_eq!(records[1].credentials, ["KEY", "OTHER"]);
    });
}

#[test]
fn of_two_for_one_place_the_one_that_is_asked_for_wins() {
    run(async {
        let server = parrot().await;
        let port = server.port;
        let all = vec![
            binding("KEY", port, header("authorization")),
            asked(binding("OTHER", port, header("authorization"))),
            asked(binding("LOGIN", port, Place::Basic)),
        ];
        let visit = visit_with(&[port], all);
        let (seen, _) = send(&visit, &server, "/", json!([])).await;
        assert!(seen.contains(&format!("authorization: {KEY}\r\n")), "{seen}");
        let (seen, _) = send(&visit, &server, "/", json!([["authorization", "Bearer {{secret:OTHER}}"]])).await;
        assert!(seen.contains("authorization: Bearer another-secret-value\r\n"), "{seen}");
        let (seen, back) = send(&visit, &server, "/", json!([["authorization", "{{secret:LOGIN}}"]])).await;
        let encoded = STANDARD.encode(LOGIN);
        assert!(seen.contains(&format!("authorization: Basic {encoded}\r\n")), "{seen}");
        assert!(back.contains(&format!("authorization: Basic {}\r\n", "*".repeat(encoded.len()))), "{back}");
    });
}

#[test]
fn queries_and_cookies() {
    run(async {
        let server = parrot().await;
        let port = server.port;
        let all = vec![
            binding("KEY", port, Place::Query("api key".to_owned())),
            formatted(asked(binding("OTHER", port, Place::Cookie("session".to_owned()))), "v1.{}"),
        ];
        let visit = visit_with(&[port], all);
        let value = "sk%5Flive%2F51%20Hx%2Bq%22Z";
        let (seen, back) = send(&visit, &server, "/q?x=1&api+key=forged", json!([["cookie", "session=mine"]])).await;
        assert!(seen.starts_with(&format!("GET /q?x=1&api%20key={value} ")), "{seen}");
        assert!(seen.contains("cookie: session=mine\r\n"), "{seen}");
        assert!(!back.contains("sk%5Flive"), "{back}");
        let cookies = json!([["cookie", "a=1; session=<{{secret:OTHER}}>; b={{secret:OTHER}}"]]);
        let (seen, back) =
            send(&visit, &server, "/q?api+key=%7B%7Bsecret%3AKEY%7D%7D.&y={{secret:KEY}}", cookies).await;
        assert!(seen.starts_with(&format!("GET /q?api+key={value}.&y={{{{secret:KEY}}}} ")), "{seen}");
        assert!(seen.contains("cookie: a=1; session=<another-secret-value>; b={{secret:OTHER}}\r\n"), "{seen}");
        assert!(!back.contains("another-secret"), "{back}");
    });
}

#[test]
fn a_field_of_a_json_body() {
    run(async {
        let server = parrot().await;
        let port = server.port;
        let place = || Place::Body("/auth/key".to_owned());
        let visit = visit_with(&[port], vec![binding("KEY", port, place())]);
        let kinds = ["application/json", "application/JSON; charset=utf-8", "application/problem+json"];
        for kind in kinds {
            let back = post(&visit, &server.url("/"), kind, r#"{"n":1.50,"auth":{"key":"mine"}}"#).await.unwrap();
            let seen = server.requests().pop().unwrap();
            let want = r#"{"n":1.50,"auth":{"key":"sk_live/51 Hx+q\"Z"}}"#;
            assert_eq!(body_of(&seen), want, "{kind}");
            assert!(seen.contains(&format!("content-length: {}\r\n", want.len())), "{seen}");
            assert!(!back.contains("sk_live"), "{back}");
        }
        // Another type is another's business; what claims to be JSON has to be an object.
        post(&visit, &server.url("/"), "text/plain", "{}").await.unwrap();
        assert_eq!(body_of(&server.requests().pop().unwrap()), "{}");
        let before = server.requests().len();
        for body in ["[]", "\"{{secret:KEY}}\"", "", "{", "{\"auth\":7}", r#"{"auth":{"key":1,"key":2}}"#] {
            let denied = post(&visit, &server.url("/"), kinds[0], body).await.unwrap_err();
            assert_eq!(denied.code, Code::Invalid, "{body}: {denied}");
            assert!(!denied.message.contains("sk_live"));
        }
        assert_eq!(server.requests().len(), before);
        // Streamed: it is gathered, up to what a body may have.
        let streams = json!({ "method": "POST", "stream": true, "headers": [["content-type", "application/json"]] });
        let url = server.url("/");
        let (head, ()) = tokio::join!(fetch(&visit, 7, &url, streams), async {
            write(&visit, 7, "{\"auth\":{\"key\":\"a {{sec", false).await.unwrap();
            write(&visit, 7, "ret:KEY}} {{secret:KEY}}\"}}", true).await.unwrap();
        });
        assert_eq!(head.unwrap()["status"], 200);
        let seen = server.requests().pop().unwrap();
        let value = r#"sk_live/51 Hx+q\"Z"#;
        assert_eq!(body_of(&seen), format!("{{\"auth\":{{\"key\":\"a {value} {value}\"}}}}"));
        assert!(!seen.contains("transfer-encoding"), "{seen}");
        // Asked for: what does not ask goes as it is, byte for byte.
        let visit = visit_with(&[port], vec![asked(binding("KEY", port, place()))]);
        for body in ["[ ]", "nonsense", r#"{"auth": {"key": "none"}, "x": "{{secret:KEY}}"}"#] {
            post(&visit, &server.url("/"), kinds[0], body).await.unwrap();
            assert_eq!(body_of(&server.requests().pop().unwrap()), body);
        }
        post(&visit, &server.url("/"), kinds[0], r#"{"auth":{"key":"{{secret:KEY}}"}}"#).await.unwrap();
        assert_eq!(body_of(&server.requests().pop().unwrap()), format!("{{\"auth\":{{\"key\":\"{value}\"}}}}"));
        // A redirect sends what was asked for again, with the value put in again.
        post(&visit, &server.url("/to?/end"), kinds[0], r#"{"auth":{"key":"{{secret:KEY}}"}}"#).await.unwrap();
        assert_eq!(body_of(&server.requests().pop().unwrap()), format!("{{\"auth\":{{\"key\":\"{value}\"}}}}"));
    });
}

#[test]
fn a_gathered_stream_is_bounded() {
    run(async {
        let server = parrot().await;
        let mut pass = pass(&[server.port]);
        let list = vec![binding("KEY", server.port, Place::Body("/k".to_owned()))];
        pass.credentials = Arc::new(Bound::new(Bindings::new(list).unwrap(), Arc::new(Store)));
        let visit = door(&[server.port], Limits { request_bytes: 1000, ..Limits::default() }).visit(pass);
        let streams = json!({ "method": "POST", "stream": true, "headers": [["content-type", "application/json"]] });
        let url = server.url("/");
        let (head, refused) = tokio::join!(fetch(&visit, 7, &url, streams), async {
            write(&visit, 7, "x".repeat(900), false).await.unwrap();
            write(&visit, 7, "x".repeat(900), false).await
        });
        assert!(head.is_err() && refused.unwrap_err().code == Code::Limit);
        assert_eq!(server.connections(), 0);
    });
}

#[test]
fn basic_hides_the_half_that_matters() {
    run(async {
        for (name, value, hidden) in
            [("LOGIN", LOGIN, "pass words+1"), ("TOKEN_LOGIN", "ghp_0123456789:x", "ghp_0123456789")]
        {
            let said = format!("hello {hidden}, {value}");
            let server = Server::says(ok(&said)).await;
            let visit = visit_with(&[server.port], vec![binding(name, server.port, Place::Basic)]);
            let (seen, back) = send(&visit, &server, "/", json!([])).await;
            assert!(seen.contains(&format!("authorization: Basic {}\r\n", STANDARD.encode(value))), "{seen}");
            assert!(!back.contains(hidden) && back.starts_with("hello *"), "{back}");
        }
    });
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// What the service does: signs what came, and compares.
fn verify(request: &str, region: &str, service: &str, path: &str, query: &str) {
    let (head, _) = request.split_once("\r\n\r\n").unwrap();
    let headers: Vec<(&str, &str)> = head.lines().skip(1).map(|line| line.split_once(": ").unwrap()).collect();
    let get = |name: &str| headers.iter().find(|(key, _)| *key == name).unwrap().1;
    let line = get("authorization");
    let names = line.split("SignedHeaders=").nth(1).unwrap().split(',').next().unwrap();
    for needed in ["host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"] {
        assert!(names.split(';').any(|name| name == needed), "{names}");
    }
    let signed: String = names.split(';').map(|name| format!("{name}:{}\n", get(name))).collect();
    let method = head.split(' ').next().unwrap();
    let canonical = format!("{method}\n{path}\n{query}\n{signed}\n{names}\n{}", get("x-amz-content-sha256"));
    let stamp = get("x-amz-date");
    let scope = format!("{}/{region}/{service}/aws4_request", &stamp[..8]);
    let text = format!("AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{}", hex(&Sha256::digest(canonical)));
    let secret = AWS.split(':').nth(1).unwrap();
    let key = [&stamp[..8], region, service, "aws4_request"]
        .iter()
        .fold(format!("AWS4{secret}").into_bytes(), |key, step| mac(&key, step));
    assert!(line.starts_with(&format!("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{scope}, ")), "{line}");
    assert!(line.ends_with(&format!("Signature={}", hex(&mac(&key, &text)))), "{line}");
}

#[test]
fn requests_are_signed_for_aws() {
    run(async {
        let server = parrot().await;
        let aws = |service: &str| {
            let place = Place::Aws { region: "eu-west-1".to_owned(), service: service.to_owned() };
            visit_with(&[server.port], vec![binding("AWS", server.port, place)])
        };
        let visit = aws("s3");
        let headers =
            json!([["x-amz-acl", "private"], ["x-amz-security-token", "forged"], ["authorization", "forged"]]);
        let (seen, back) = send(&visit, &server, "/b/a%20b+c?z=1+2&list-type=2&acl", headers).await;
        assert!(seen.starts_with("GET /b/a%20b+c?acl=&list-type=2&z=1%202 ") && !seen.contains("forged"), "{seen}");
        verify(&seen, "eu-west-1", "s3", "/b/a%20b%2Bc", "acl=&list-type=2&z=1%202");
        assert!(seen.contains("x-amz-security-token: AQoDYXdzEPT//session==\r\n"), "{seen}");
        assert!(!back.contains("AQoDYXdz") && back.contains("AKIDEXAMPLE"), "{back}");
        let visit = aws("execute-api");
        post(&visit, &server.url("/stage/a%20b"), "application/json", "{\"x\":1}").await.unwrap();
        let seen = server.requests().pop().unwrap();
        assert!(seen.contains(&format!("x-amz-content-sha256: {}\r\n", hex(&Sha256::digest("{\"x\":1}")))), "{seen}");
        verify(&seen, "eu-west-1", "execute-api", "/stage/a%2520b", "");
        let url = server.url("/s");
        let (head, ()) = tokio::join!(fetch(&visit, 3, &url, json!({ "method": "PUT", "stream": true })), async {
            write(&visit, 3, "in pieces", true).await.unwrap()
        });
        assert_eq!(head.unwrap()["status"], 200);
        let seen = server.requests().pop().unwrap();
        assert!(seen.contains("x-amz-content-sha256: UNSIGNED-PAYLOAD\r\n"), "{seen}");
        verify(&seen, "eu-west-1", "execute-api", "/s", "");
    });
}

#[test]
fn another_origin_gets_nothing() {
    run(async {
        let (server, other) = (parrot().await, parrot().await);
        let port = server.port;
        let list = vec![
            binding("KEY", port, header("x-key")),
            binding("LOGIN", port, Place::Basic),
            binding("OTHER", port, Place::Query("k".to_owned())),
        ];
        let visit = visit_with(&[port, other.port], list);
        for url in [format!("http://b.example:{port}/"), other.url("/"), server.url(&format!("/to?{}", other.url("/")))]
        {
            fetch(&visit, 1, &url, json!({ "headers": [["x-mine", "{{secret:KEY}}"]] })).await.unwrap();
            read_all(&visit, 1).await.unwrap();
            let seen = if url.contains("b.example") { server.requests() } else { other.requests() }.pop().unwrap();
            assert!(
                !seen.contains("x-key") && !seen.contains("authorization") && !seen.contains("k="),
                "{url}: {seen}"
            );
            assert!(seen.contains("x-mine: {{secret:KEY}}"), "{seen}");
        }
        let credentials: Vec<_> = visit.records().into_iter().map(|record| record.credentials.len()).collect();
        assert_eq!(credentials, [0, 0, 3, 0]);
    });
}

#[test]
fn what_is_not_there_or_cannot_be_carried() {
    run(async {
        let server = parrot().await;
        let port = server.port;
        let body = || Place::Body("/k".to_owned());
        let cases = [
            (binding("UNSET", port, header("x-key")), Code::Secret, "`UNSET` is not set"),
            (binding("GONE", port, header("x-key")), Code::Secret, "renewed"),
            (binding("SHORT", port, header("x-key")), Code::Denied, "`SHORT` has fewer than"),
            (binding("SHORT", port, Place::Query("k".to_owned())), Code::Denied, "`SHORT` has fewer than"),
            (binding("SHORT_LOGIN", port, Place::Basic), Code::Denied, "`SHORT_LOGIN` has fewer than"),
            (binding("BREAK", port, header("x-key")), Code::Denied, "no header can carry"),
            (binding("KEY", port, Place::Cookie("k".to_owned())), Code::Denied, "no cookie can carry"),
            (
                binding("OTHER", port, Place::Aws { region: "r".to_owned(), service: "s".to_owned() }),
                Code::Denied,
                "`OTHER`",
            ),
            (binding("UNSET", port, body()), Code::Secret, "`UNSET` is not set"),
        ];
        for (binding, code, words) in cases {
            let place = binding.place.clone();
            let visit = visit_with(&[port], vec![binding]);
            let denied = post(&visit, &server.url("/"), "application/json", "{}").await.unwrap_err();
            assert_eq!(denied.code, code, "{place:?}: {denied}");
            assert!(denied.message.contains(words), "{place:?}: {denied}");
            for hidden in ["sk_live", "another-secret", "eleven", "break"] {
                assert!(!format!("{denied:?}").contains(hidden), "{denied:?}");
            }
            assert_eq!(visit.records()[0].failed, Some(code.as_str()));
        }
        assert_eq!(server.connections(), 0, "nothing was sent without its secret");
        assert_eq!(Code::Secret.as_str(), "egress_secret");
    });
}

#[test]
fn sets_that_are_refused() {
    let at = |host: &str, place: Place| Binding::new("KEY", vec![Pattern::parse(host).unwrap()], place);
    let body = |pointer: &str| Place::Body(pointer.to_owned());
    let quarrels = [
        (at("a.example", Place::Basic), at("a.example", header("authorization"))),
        (at("a.example", header("x-a")), at("a.example:443", header("x-a"))),
        (at("*.example.com", header("x-a")), at("b.example.com", header("x-a"))),
        (at("*.example.com", header("x-a")), at("*.b.example.com", header("x-a"))),
        (at("a.example", header("cookie")), at("a.example", Place::Cookie("k".to_owned()))),
        (at("a.example", body("/a")), at("a.example", body("/a/b"))),
        (at("a.example", Place::Query("k".to_owned())), at("a.example", Place::Query("k".to_owned()))),
    ];
    for (one, two) in quarrels {
        let denied = Bindings::new(vec![one.clone(), two.clone()]).unwrap_err();
        assert!(denied.message.contains("would both be put into"), "{denied}");
        Bindings::new(vec![two.clone(), one.clone()]).unwrap_err();
        Bindings::new(vec![one, asked(two)]).unwrap();
    }
    Bindings::new(vec![
        at("a.example", header("x-a")),
        at("b.example", header("x-a")),
        at("http://a.example", header("x-a")),
        at("a.example:8443", header("x-a")),
        at("*.a.example", header("x-a")),
        at("a.example", body("/a")),
        at("a.example", body("/ab")),
    ])
    .unwrap();
    let wrong = [
        at("a.example", header("host")),
        at("a.example", header("transfer-encoding")),
        at("a.example", body("a")),
        at("a.example", Place::Cookie("a b".to_owned())),
        at("a.example", Place::Query(String::new())),
        at("a.example", Place::Aws { region: "a/b".to_owned(), service: "s3".to_owned() }),
        formatted(at("a.example", header("x-a")), "none"),
        formatted(at("a.example", header("x-a")), "{}{}"),
        formatted(at("a.example", Place::Basic), "x{}"),
        Binding { name: "a}}b".to_owned(), ..at("a.example", header("x-a")) },
        Binding { hosts: Vec::new(), ..at("a.example", header("x-a")) },
    ];
    for wrong in wrong {
        assert!(Bindings::new(vec![wrong.clone()]).is_err(), "{wrong:?}");
    }
    for pattern in ["*", "https://a.example/v1", "GET https://a.example", "a.example/", "ftp://a.example", "*.com"] {
        assert!(Pattern::parse(pattern).is_err(), "{pattern}");
    }
}

/// A value that went upstream once is masked in every later answer, to whatever request, and in every spelling.
#[test]
fn what_was_stored_upstream_comes_back_masked() {
    run(async {
        let kept = Arc::new(std::sync::Mutex::new(String::new()));
        let store = kept.clone();
        let server = Server::raw(move |request| {
            let path = request.split(' ').nth(1).unwrap();
            let key = |line: &str| line.strip_prefix("x-key: ").map(str::to_owned);
            if let Some(value) = request.lines().find_map(key) {
                *store.lock().unwrap() = value;
                return ok("stored");
            }
            let value = store.lock().unwrap().clone();
            let each = |write: &dyn Fn(char) -> String| value.chars().map(write).collect::<String>();
            let spelled = match path {
                "/json" => each(&|c| format!("\\u{:04X}", c as u32)),
                "/percent" => each(&|c| format!("%{:02x}", c as u32)),
                "/html" => each(&|c| format!("&#x{:X};", c as u32)),
                "/decimal" => each(&|c| if c.is_alphanumeric() { c.to_string() } else { format!("&#{};", c as u32) }),
                "/base64" => STANDARD.encode(format!("kept: {value}\n")),
                "/part" => value[..8].to_owned(),
                _ => value.clone(),
            };
            let ranged = request.to_ascii_lowercase().contains("range: ");
            let body = if ranged { "a range was let through" } else { &spelled };
            format!("HTTP/1.1 200 OK\r\nx-kept: {spelled}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
        })
        .await;
        let port = server.port;
        let visit = visit_with(&[port], vec![asked(binding("KEY", port, header("x-key")))]);
        send(&visit, &server, "/", json!([["x-key", "{{secret:KEY}}"]])).await;
        assert_eq!(*kept.lock().unwrap(), KEY);
        assert_eq!(visit.masked(), 0);
        // Neither asks for the secret, and the second goes to a host that it is not bound to.
        for (number, path) in ["/plain", "/json", "/percent", "/html", "/decimal", "/base64"].iter().enumerate() {
            for host in ["a.example", "b.example"] {
                let url = format!("http://{host}:{port}{path}");
                let ranges = ["range", "request-range", "x-ms-range"].map(|name| [name, "bytes=0-7"]);
                let head = fetch(&visit, 1, &url, json!({ "headers": ranges })).await.unwrap();
                let body = String::from_utf8(read_all(&visit, 1).await.unwrap()).unwrap();
                assert!(body.contains("****") && !body.contains("sk_live"), "{path}: {body}");
                let plain = body.replace('*', "");
                assert!(plain.len() <= 10, "{path}: {body}");
                assert!(!head.to_string().contains(&plain) || plain.is_empty(), "{path}: {head}");
                assert!(head["headers"].to_string().contains("****"), "{path}: {head}");
                let record = visit.records().pop().unwrap();
                assert_eq!((record.masked, record.credentials.len()), (2, 0), "{path}");
            }
            assert_eq!(visit.masked(), (number as u64 + 1) * 4);
        }
    });
}
