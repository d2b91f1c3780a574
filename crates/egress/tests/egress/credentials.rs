//! Secrets go out and do not come back.

use crate::rig;

use egress::{Applied, Code, Credentials, Denied, Limits, Origin, Prepared};
use futures_util::future::BoxFuture;
use rig::*;
use serde_json::json;
use std::io::Write;
use std::sync::Arc;

const KEY: &str = "sk_live_51/Hx+q=Z";

/// A header and a query parameter for one host.
struct Binding {
    host: &'static str,
    secret: &'static str,
}

impl Credentials for Binding {
    fn covers(&self, origin: &Origin) -> bool {
        origin.host.to_string() == self.host
    }

    fn apply<'a>(&'a self, request: &'a mut Prepared) -> BoxFuture<'a, Result<Applied, Denied>> {
        Box::pin(async {
            request.set_header(http::header::AUTHORIZATION, &format!("Bearer {}", self.secret))?;
            if request.target().path == "/query" {
                request.set_query("key", self.secret);
            }
            let mut applied = Applied::default();
            applied.secret(self.secret)?;
            Ok(applied)
        })
    }
}

fn visit_with(ports: &[u16], secret: &'static str, limits: Limits) -> egress::Visit {
    let mut pass = pass(ports);
    pass.credentials = Arc::new(Binding { host: "a.example", secret });
    door(ports, limits).visit(pass)
}

/// Says back what it was told: in a header, in the body, or as its path says.
async fn parrot() -> Server {
    Server::raw(|request| {
        let path = request.split(' ').nth(1).unwrap();
        if let Some(to) = path.strip_prefix("/to?") {
            return redirect(302, &to.replace("KEY", KEY));
        }
        let mut body = request.as_bytes().to_vec();
        let mut coding = "";
        match path {
            "/gzip" => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(&body).unwrap();
                body = encoder.finish().unwrap();
                coding = "content-encoding: gzip\r\n";
            }
            "/odd" => coding = "content-encoding: rot13\r\n",
            _ => {}
        }
        let twice = format!("content-encoding: gzip, {KEY}\r\n");
        let coding = if path == "/twice" { &twice } else { coding };
        let head = format!(
            "HTTP/1.1 200 {KEY}\r\nx-echo: <{KEY}>\r\nx-{}: name\r\n{coding}content-length: {}\r\n\r\n",
            "k".repeat(3),
            body.len()
        );
        [head.into_bytes(), body].concat()
    })
    .await
}

#[test]
fn a_secret_goes_out_and_not_back() {
    run(async {
        let server = parrot().await;
        for (path, chunk) in
            [("/", 128 << 10), ("/", 3), ("/gzip", 7), ("/query?key=mine&k%65y=too&x=1", 50), ("/query", 1)]
        {
            let visit = visit_with(&[server.port], KEY, Limits { chunk_bytes: chunk, ..Limits::default() });
            let more = json!({ "headers": [["authorization", "Bearer forged"], ["accept-encoding", "rot13"]] });
            let head = fetch(&visit, 1, &server.url(path), more).await.unwrap();
            let body = String::from_utf8(read_all(&visit, 1).await.unwrap()).unwrap();
            let seen = server.requests().pop().unwrap();
            assert!(seen.contains(&format!("authorization: Bearer {KEY}\r\n")) && !seen.contains("forged"), "{seen}");
            assert!(!seen.contains("rot13"), "{seen}");
            assert_eq!(body.len(), seen.len(), "masking keeps lengths");
            assert!(body.contains(&format!("Bearer {}", "*".repeat(KEY.len()))), "{body}");
            assert_eq!(head["statusText"], "*".repeat(KEY.len()));
            assert_eq!(head["headers"][0], json!(["x-echo", format!("<{}>", "*".repeat(KEY.len()))]));
            if path.starts_with("/query") {
                assert!(seen.contains("key=sk%5Flive%5F51%2FHx%2Bq%3DZ "), "{seen}");
                assert!(!seen.contains("mine") && !seen.contains("too"), "{seen}");
            }
            for hidden in [KEY, "sk_live", "sk%5Flive", "sk%5flive"] {
                assert!(!body.contains(hidden) && !head.to_string().contains(hidden), "{body} {head}");
            }
        }
    });
}

#[test]
fn a_refusal_does_not_repeat_what_a_server_says() {
    run(async {
        let server = parrot().await;
        let visit = visit_with(&[server.port], KEY, Limits::default());
        let denied = fetch(&visit, 1, &server.url("/twice"), json!({})).await.unwrap_err();
        assert!(denied.message.contains("more than once"), "{denied}");
        assert!(!denied.message.to_ascii_lowercase().contains("sk_live"), "{denied}");
    });
}

#[test]
fn a_secret_is_for_its_origin() {
    run(async {
        let (server, other) = (parrot().await, parrot().await);
        let visit = visit_with(&[server.port, other.port], KEY, Limits::default());
        fetch(&visit, 1, &format!("http://b.example:{}/", server.port), json!({})).await.unwrap();
        assert!(!server.requests().pop().unwrap().contains("authorization"));
        // A redirect to another host goes without it, but what that one says is still masked.
        let away = format!("http://b.example:{}/", other.port);
        let head = fetch(&visit, 2, &server.url(&format!("/to?{away}")), json!({})).await.unwrap();
        assert!(!other.requests().pop().unwrap().contains("sk_live"));
        assert!(!head.to_string().contains("sk_live"), "{head}");
        // And none carries it there in its address.
        let before = other.requests().len();
        for to in [format!("{away}?k=KEY"), format!("{away}KEY")] {
            let denied = fetch(&visit, 3, &server.url(&format!("/to?{to}")), json!({})).await.unwrap_err();
            assert_eq!(denied.code, Code::Denied, "{denied}");
        }
        assert_eq!(other.requests().len(), before);
        // Within the origin it may, and is masked.
        let head = fetch(&visit, 4, &server.url("/to?/x?k=KEY"), json!({})).await.unwrap();
        assert_eq!(head["url"], server.url(&format!("/x?k={}", "*".repeat(KEY.len()))));
        // Nor do refusals tell, in whole or in half.
        let long = format!("/{}KEY", "x".repeat(60));
        for to in [
            format!("ftp://a.example/{long}"),
            format!("http://a.example:1{long}"),
            format!("http://[{long}"),
            "http://KEY/".to_owned(),
        ] {
            let denied = fetch(&visit, 6, &server.url(&format!("/to?{to}")), json!({})).await.unwrap_err();
            assert!(!denied.message.to_lowercase().contains("sk_"), "{denied}");
        }
        // Where the code inside follows by itself, it does not see it either.
        let head = fetch(&visit, 5, &server.url("/to?/x?k=KEY"), json!({ "redirect": "manual" })).await.unwrap();
        assert!(!head.to_string().contains("sk_live"), "{head}");
    });
}

#[test]
fn what_cannot_be_masked_is_not_sent_or_not_shown() {
    run(async {
        let server = parrot().await;
        let visit = visit_with(&[server.port], KEY, Limits::default());
        let denied = fetch(&visit, 1, &server.url("/odd"), json!({})).await.unwrap_err();
        assert_eq!(denied.code, Code::Network, "packed in a way nobody knows");
        for secret in ["short", "", "eleven byte", "line\r\nbreak", "null\0null-null"] {
            let before = server.requests().len();
            let visit = visit_with(&[server.port], secret, Limits::default());
            let denied = fetch(&visit, 1, &server.url("/"), json!({})).await.unwrap_err();
            assert_eq!(denied.code, Code::Denied, "{secret:?}");
            assert!(secret.is_empty() || !denied.message.contains(secret));
            assert_eq!(server.requests().len(), before);
        }
    });
}

#[test]
fn no_secret_goes_into_headers_of_the_connection() {
    struct Bad(&'static str);
    impl Credentials for Bad {
        fn covers(&self, _: &Origin) -> bool {
            true
        }
        fn apply<'a>(&'a self, request: &'a mut Prepared) -> BoxFuture<'a, Result<Applied, Denied>> {
            let set = request.set_header(http::HeaderName::from_static(self.0), "a long value");
            Box::pin(async { set.map(|()| Applied::default()) })
        }
    }
    run(async {
        let server = parrot().await;
        for name in ["host", "content-length", "transfer-encoding", "connection", "proxy-authorization", "upgrade"] {
            let mut pass = pass(&[server.port]);
            pass.credentials = Arc::new(Bad(name));
            let visit = door(&[server.port], Limits::default()).visit(pass);
            assert_eq!(fetch(&visit, 1, &server.url("/"), json!({})).await.unwrap_err().code, Code::Denied, "{name}");
        }
        assert_eq!(server.connections(), 0);
    });
}
