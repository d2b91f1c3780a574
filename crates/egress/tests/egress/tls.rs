//! Who the other side is, and HTTP/2.

use crate::rig;

use egress::{Code, Limits, Pass};
use rcgen::{CertificateParams, KeyPair};
use rig::tls::{Authority, Listening, acceptor, door, listen, polite};
use rig::*;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[test]
fn names_are_proven() {
    run(async {
        let ours = Authority::new();
        let nothing = |_: &mut CertificateParams| {};
        let server = polite(ours.acceptor(&["a.example", "*.wild.example"], nothing, &["http/1.1"])).await;
        let visit = door(server.port, ours.root(), Limits::default()).visit(pass(&[server.port]));
        let url = |host: &str| format!("https://{host}:{}/x", server.port);
        let (status, text) = get(&visit, 1, &url("a.example")).await.unwrap();
        assert_eq!(status, 200);
        assert_eq!(text, format!("HTTP/1.1 /x Some(\"a.example:{}\") ", server.port));
        get(&visit, 2, &url("sub.wild.example")).await.unwrap();
        for host in ["b.example", "wild.example", "a.sub.wild.example", "a.example.com", "127.0.0.1", "localhost"] {
            let denied = fetch(&visit, 3, &url(host), json!({})).await.expect_err(host);
            assert_eq!(denied.code, Code::Tls, "{host}: {denied}");
        }
        assert_eq!(server.names.lock().unwrap()[0].as_deref(), Some("a.example"), "the name is sent along");
        // Plain HTTP to a server of TLS, and the other way round.
        assert_eq!(
            fetch(&visit, 4, &format!("http://a.example:{}/", server.port), json!({})).await.unwrap_err().code,
            Code::Network
        );
    });
}

#[test]
fn certificates_that_prove_nothing() {
    run(async {
        let ours = Authority::new();
        let theirs = Authority::new();
        let year = |year| {
            move |params: &mut CertificateParams| {
                params.not_before = rcgen::date_time_ymd(year, 1, 1);
                params.not_after = rcgen::date_time_ymd(year, 2, 1);
            }
        };
        let key = KeyPair::generate().unwrap();
        let alone = CertificateParams::new(vec!["a.example".to_owned()]).unwrap().self_signed(&key).unwrap();
        let bad = [
            ("of another authority", theirs.acceptor(&["a.example"], |_| {}, &[])),
            ("too old", ours.acceptor(&["a.example"], year(2001), &[])),
            ("too young", ours.acceptor(&["a.example"], year(2999), &[])),
            (
                "for clients",
                ours.acceptor(
                    &["a.example"],
                    |params| {
                        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
                    },
                    &[],
                ),
            ),
            ("self-signed", acceptor(alone.der().clone(), &key, &[])),
        ];
        for (what, acceptor) in bad {
            let server = polite(acceptor).await;
            let visit = door(server.port, ours.root(), Limits::default()).visit(pass(&[server.port]));
            let url = format!("https://a.example:{}/", server.port);
            let denied = fetch(&visit, 1, &url, json!({ "headers": [["authorization", "x"]] })).await.expect_err(what);
            assert_eq!(denied.code, Code::Tls, "{what}: {denied}");
            assert!(server.names.lock().unwrap().is_empty(), "{what}: nothing was said to it");
        }
    });
}

#[test]
fn http2_with_bodies_both_ways_over_one_connection_for_each_deployment() {
    run(async {
        let ours = Authority::new();
        let server = polite(ours.acceptor(&["a.example"], |_| {}, &["h2", "http/1.1"])).await;
        let door = door(server.port, ours.root(), Limits::default());
        let visit = door.visit(pass(&[server.port]));
        let url = format!("https://a.example:{}/x?y", server.port);
        let told = format!("HTTP/2.0 {url} None ");
        assert_eq!(get(&visit, 1, &url).await.unwrap().1, told);
        let headers = json!([["host", format!("a.example:{}", server.port)]]);
        let more = json!({ "method": "POST", "bodyLength": 3, "headers": headers });
        fetch_body(&visit, 2, &url, more, "abc".into()).await.unwrap();
        assert_eq!(read_all(&visit, 2).await.unwrap(), format!("{told}abc").into_bytes());
        let (head, ()) = tokio::join!(fetch(&visit, 3, &url, json!({ "method": "POST", "stream": true })), async {
            for _ in 0..100 {
                write(&visit, 3, "x".repeat(10_000), false).await.unwrap();
            }
            write(&visit, 3, "", true).await.unwrap();
        });
        assert_eq!(head.unwrap()["statusText"], "");
        assert_eq!(read_all(&visit, 3).await.unwrap().len(), told.len() + 1_000_000);
        let many = (10..20).map(|id| get(&visit, id, &url));
        for outcome in futures_util::future::join_all(many).await {
            assert_eq!(outcome.unwrap().1, told);
        }
        assert_eq!(server.connections.load(Ordering::SeqCst), 1);
        for (tenant, deployment) in [("tenant", "other"), ("other", "deployment")] {
            let before = server.connections.load(Ordering::SeqCst);
            let visit = door.visit(Pass::new(tenant, deployment, pass(&[server.port]).rules));
            get(&visit, 1, &url).await.unwrap();
            assert_eq!(server.connections.load(Ordering::SeqCst), before + 1, "{tenant}/{deployment}");
        }
    });
}

/// A name that was checked is the only one that is told, in the TLS handshake, in `:authority` and in `Host`.
#[test]
fn nobody_is_asked_for_by_another_name() {
    run(async {
        let ours = Authority::new();
        for (alpn, http2) in [(&["h2"][..], true), (&["http/1.1"][..], false)] {
            let server = polite(ours.acceptor(&["a.example", "b.example"], |_| {}, alpn)).await;
            let visit = door(server.port, ours.root(), Limits::default()).visit(pass(&[server.port]));
            let here = format!("a.example:{}", server.port);
            let url = format!("https://{here}/x");
            for headers in [
                json!([["host", "b.example"]]),
                json!([["Host", here], ["host", "b.example"]]),
                json!([["host", "a.example"]]),
                json!([["host", ""]]),
                json!([[":authority", "b.example"]]),
                json!([[":authority", here]]),
                json!([[":path", "/y"]]),
                json!([["x", "1\r\nhost: b.example"]]),
            ] {
                let denied = fetch(&visit, 1, &url, json!({ "headers": headers })).await.unwrap_err();
                assert_eq!(denied.code, Code::Invalid, "{headers}: {denied}");
            }
            assert_eq!(server.connections.load(Ordering::SeqCst), 0);
            let headers = json!([["HOST", here.to_uppercase()], ["x-forwarded-host", "b.example"]]);
            fetch(&visit, 2, &url, json!({ "headers": headers })).await.unwrap();
            let told = String::from_utf8(read_all(&visit, 2).await.unwrap()).unwrap();
            let want = if http2 { format!("HTTP/2.0 {url} None ") } else { format!("HTTP/1.1 /x Some(\"{here}\") ") };
            assert_eq!(told, want);
            assert_eq!(server.names.lock().unwrap()[..], [Some("a.example".to_owned())]);
        }
    });
}

/// A server of HTTP/2 that does as the function says with each stream.
async fn rude<F, W>(ours: &Authority, handle: F) -> Listening
where
    F: Fn(h2::server::SendResponse<bytes::Bytes>, u64) -> W + Send + Sync + Clone + 'static,
    W: Future<Output = ()> + Send + 'static,
{
    listen(ours.acceptor(&["a.example"], |_| {}, &["h2"]), move |stream| {
        let handle = handle.clone();
        async move {
            let Ok(mut connection) = h2::server::handshake(stream).await else { return };
            let mut number = 0;
            while let Some(Ok((_, respond))) = connection.accept().await {
                number += 1;
                tokio::spawn(handle(respond, number));
            }
        }
    })
    .await
}

#[test]
fn http2_streams_that_are_reset_and_floods() {
    run(async {
        let ours = Authority::new();
        let resets = rude(&ours, |mut respond, number| async move {
            if number % 2 == 0 {
                respond.send_reset(h2::Reason::ENHANCE_YOUR_CALM);
            } else if let Ok(mut stream) = respond.send_response(hyper::Response::new(()), false) {
                let _ = stream.send_data("half".into(), false);
                stream.send_reset(h2::Reason::CANCEL);
            }
        })
        .await;
        let limits = Limits { rate_per_host: 10_000, rate_per_tenant: 10_000, ..Limits::default() };
        let visit = door(resets.port, ours.root(), limits.clone()).visit(pass(&[resets.port]));
        for id in 0..200 {
            let denied = get(&visit, id, &format!("https://a.example:{}/", resets.port)).await.unwrap_err();
            assert_eq!(denied.code, Code::Network, "{denied}");
        }
        // Opened and cancelled at once, many times: what the code inside could do to a server, and to the host.
        let slow = rude(&ours, |mut respond, _| async move {
            let _keeps_it_open = respond.send_response(hyper::Response::new(()), false);
            tokio::time::sleep(Duration::from_secs(50)).await;
        })
        .await;
        let visit = door(slow.port, ours.root(), limits).visit(pass(&[slow.port]));
        for id in 0..300 {
            fetch(&visit, id, &format!("https://a.example:{}/", slow.port), json!({})).await.unwrap();
            cancel(&visit, id, "body").await;
        }
        assert!(slow.connections.load(Ordering::SeqCst) < 20);
        let many = rude(&ours, |mut respond, _| async move {
            let mut response = hyper::Response::new(());
            for n in 0..2000 {
                let name = http::HeaderName::try_from(format!("x-{n}")).unwrap();
                response.headers_mut().insert(name, http::HeaderValue::from_static("aaaaaaaaaaaaaaaaaaaaaaaa"));
            }
            let _ = respond.send_response(response, true);
        })
        .await;
        let visit = door(many.port, ours.root(), Limits::default()).visit(pass(&[many.port]));
        let denied = fetch(&visit, 1, &format!("https://a.example:{}/", many.port), json!({})).await.unwrap_err();
        assert!(matches!(denied.code, Code::Network | Code::Limit), "{denied}");
    });
}

#[test]
fn http2_streams_that_nobody_reads_hold_little_and_stop_no_other() {
    run(async {
        let ours = Authority::new();
        let written = Arc::new(AtomicU64::new(0));
        let count = written.clone();
        let server = rude(&ours, move |mut respond, number| {
            let count = count.clone();
            async move {
                let Ok(mut stream) = respond.send_response(hyper::Response::new(()), false) else { return };
                if number > 8 {
                    let _ = stream.send_data("short".into(), true);
                    return;
                }
                loop {
                    stream.reserve_capacity(16 << 10);
                    let Some(Ok(granted)) = std::future::poll_fn(|context| stream.poll_capacity(context)).await else {
                        return;
                    };
                    if stream.send_data(vec![0; granted].into(), false).is_err() {
                        return;
                    }
                    count.fetch_add(granted as u64, Ordering::SeqCst);
                }
            }
        })
        .await;
        let visit = door(server.port, ours.root(), Limits::default()).visit(pass(&[server.port]));
        let url = format!("https://a.example:{}/", server.port);
        for id in 0..8 {
            fetch(&visit, id, &url, json!({})).await.unwrap();
        }
        let mut before = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let now = written.load(Ordering::SeqCst);
            if now == before && now > 0 {
                break;
            }
            before = now;
        }
        assert!(before <= 8 * (256 << 10), "{before} bytes were taken though nobody asked");
        assert_eq!(get(&visit, 100, &url).await.unwrap().1, "short");
        assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    });
}
