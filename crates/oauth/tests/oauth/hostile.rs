//! Token endpoints that nobody would wish for.

use crate::support;

use oauth::{BoxFuture, Error, Http, HttpError, Provider};
use secrecy::SecretString;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{Host, Loopback, NOW, REDIRECT, run, settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use url::Url;

/// Says this to everybody, `times` over, and counts how many came.
async fn endpoint(says: String, times: usize) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, came) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let count = came.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let says = says.clone();
            tokio::spawn(async move {
                let mut request = [0; 16 << 10];
                let _ = stream.read(&mut request).await;
                for _ in 0..times {
                    if stream.write_all(says.as_bytes()).await.is_err() {
                        return;
                    }
                }
                let _ = stream.shutdown().await;
                // Until the other end has read it all.
                while stream.read(&mut request).await.is_ok_and(|length| length > 0) {}
            });
        }
    });
    (format!("http://{address}"), came)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}", body.len())
}

/// A request with a code, as it is after a browser came back.
fn request(provider: &Provider) -> oauth::TokenRequest {
    let (url, pending) = oauth::begin(provider, REDIRECT, NOW).unwrap();
    let url = Url::parse(&url).unwrap();
    let state = url.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    oauth::finish(provider, pending, &format!("code=the-secret-code&state={state}"), REDIRECT, NOW).unwrap()
}

async fn outcome(at: &str) -> Error {
    let host = Host::new(Loopback, "the client secret");
    let provider = settings(at);
    let error = host.keeper.exchange(request(&provider), Some(&host.secret)).await.unwrap_err();
    let mut shown = format!("{error} {error:?}");
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        shown.push_str(&cause.to_string());
        source = cause.source();
    }
    for secret in ["the-secret-code", "the client secret", "the+client+secret", "EVIL"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    assert!(!shown.chars().any(bundle::is_hidden) && shown.len() < 1000, "{shown}");
    assert!(host.store.kept.lock().unwrap().is_empty());
    error
}

#[test]
fn answers_that_are_none() {
    run(async {
        let json = |body: &str| answer("200 OK", "content-type: application/json\r\n", body);
        let token = |more: &str| json(&format!(r#"{{"access_token":"EVIL","token_type":"bearer"{more}}}"#));
        for says in [
            answer("200 OK", "content-type: text/html\r\n", "<html><p>access_token=EVIL</html>"),
            answer("500 Oops", "", r#"{"error":"invalid_grant","error_description":"EVIL"}"#),
            answer("204 No Content", "", ""),
            json(""),
            json(&"[".repeat(60_000)),
            json(&format!("{{\"x\":{}", "[".repeat(60_000))),
            json(r#"{"access_token":"EVIL\r\nset-cookie: a=b","token_type":"bearer"}"#),
            json(r#"{"access_token":"EVIL\u0000","token_type":"bearer"}"#),
            token(r#","expires_in":-1"#),
            token(r#","expires_in":1e300"#),
            token(r#","refresh_token":"EVIL\r\nx: y""#),
            token(r#","access_token":"EVIL2""#),
        ] {
            let (at, _) = endpoint(says.clone(), 1).await;
            assert!(matches!(outcome(&at).await, Error::Answer(_)), "{says}");
        }
    });
}

#[test]
fn answers_without_an_end_are_not_read_to_it() {
    run(async {
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        let endless = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunk}");
        let (at, _) = endpoint(endless, usize::MAX).await;
        assert!(matches!(outcome(&at).await, Error::Http(_)));
        let (at, _) = endpoint("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n{".into(), 1).await;
        assert!(matches!(outcome(&at).await, Error::Http(_)));
        let (at, _) = endpoint("not HTTP at all".into(), 1).await;
        assert!(matches!(outcome(&at).await, Error::Http(_)));
    });
}

#[test]
fn redirects_are_not_followed() {
    run(async {
        let good = answer("200 OK", "", r#"{"access_token":"EVIL","token_type":"bearer"}"#);
        let (elsewhere, came) = endpoint(good, 1).await;
        for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
            let location = format!("location: {elsewhere}/token\r\n");
            let (at, _) =
                endpoint(answer(status, &location, r#"{"access_token":"EVIL","token_type":"bearer"}"#), 1).await;
            assert!(matches!(outcome(&at).await, Error::Answer(_)), "{status}");
        }
        assert_eq!(came.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn complaints_do_not_repeat_what_was_sent() {
    run(async {
        let body = r#"{"error":"invalid_request the-secret-code","error_description":"got the-secret-code and the client secret (the+client+secret)\u001b]0;x\u0007"}"#;
        let (at, _) = endpoint(answer("400 Bad Request", "", body), 1).await;
        assert!(matches!(outcome(&at).await, Error::Refused(_)));
    });
}

/// Never answers.
struct Silence(Arc<AtomicUsize>);

impl Http for Silence {
    fn post_form<'a>(
        &'a self,
        _: &'a str,
        _: Vec<(String, SecretString)>,
        _: Option<(String, SecretString)>,
    ) -> BoxFuture<'a, Result<(u16, Vec<u8>), HttpError>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::pending())
    }
}

/// Time is the runtime's own here, and passes when nothing else happens.
#[tokio::test(start_paused = true)]
async fn silence_is_waited_for_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let host = Host::new(Silence(asked.clone()), "the client secret");
    let (grant, per) = (oauth::Grant::ClientCredentials, oauth::Per::Tenant);
    let provider = Arc::new(Provider { grant, per, ..settings("https://id.example.com") });
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let (host, provider) = (host.clone(), provider.clone());
            tokio::spawn(async move { host.token("t", &provider, "").await })
        })
        .collect();
    for call in calls {
        assert!(matches!(call.await.unwrap(), Err(Error::Http(_))));
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}
