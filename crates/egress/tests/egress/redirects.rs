//! Every hop is decided anew.

use crate::rig;

use egress::{Code, Limits, Pass};
use rig::*;
use serde_json::json;
use std::sync::{Arc, Mutex};

/// Redirects to what its query says, with the status in its path; answers other paths with the request itself.
async fn redirector() -> Server {
    Server::raw(|request| {
        let path = request.split(' ').nth(1).unwrap();
        match path.strip_prefix("/to/").and_then(|rest| rest.split_once('?')) {
            Some((status, to)) => redirect(status.parse().unwrap(), to),
            None => ok(request),
        }
    })
    .await
}

#[test]
fn methods_and_bodies_as_fetch_has_them() {
    run(async {
        let server = redirector().await;
        let visit = visit(&[server.port], Limits::default());
        let cases = [
            (301, "POST", "GET", false),
            (302, "POST", "GET", false),
            (303, "POST", "GET", false),
            (303, "PUT", "GET", false),
            (303, "DELETE", "GET", false),
            (301, "PUT", "PUT", true),
            (302, "PATCH", "PATCH", true),
            (307, "POST", "POST", true),
            (308, "POST", "POST", true),
            (308, "PUT", "PUT", true),
        ];
        for (id, (status, method, after, kept)) in cases.into_iter().enumerate() {
            let id = id as u64;
            let more =
                json!({ "method": method, "bodyLength": 4, "headers": [["content-type", "text/x"], ["x-k", "1"]] });
            let url = server.url(&format!("/to/{status}?/end"));
            let head = fetch_body(&visit, id, &url, more, "body".into()).await.unwrap();
            assert_eq!(head["redirected"], true);
            assert_eq!(head["url"], server.url("/end"));
            let seen = String::from_utf8(read_all(&visit, id).await.unwrap()).unwrap();
            assert!(seen.starts_with(&format!("{after} /end ")), "{status} {method}: {seen}");
            assert_eq!(seen.ends_with("\r\n\r\nbody"), kept, "{status} {method}");
            assert_eq!(seen.contains("content-type: text/x"), kept, "{status} {method}");
            assert!(seen.contains("x-k: 1"));
        }
        let (status, seen) = {
            let head = fetch(&visit, 90, &server.url("/to/303?/end"), json!({ "method": "HEAD" })).await.unwrap();
            (head["status"].clone(), server.requests().pop().unwrap())
        };
        assert!(status == 200 && seen.starts_with("HEAD /end "));
    });
}

#[test]
fn error_and_manual() {
    run(async {
        let server = redirector().await;
        let visit = visit(&[server.port], Limits::default());
        let url = server.url("/to/302?/end");
        let denied = fetch(&visit, 1, &url, json!({ "redirect": "error" })).await.unwrap_err();
        assert_eq!(denied.code, Code::Network);
        let head = fetch(&visit, 2, &url, json!({ "redirect": "manual" })).await.unwrap();
        assert_eq!((head["status"].as_u64(), head["redirected"].as_bool()), (Some(302), Some(false)));
        assert!(head["headers"].as_array().unwrap().contains(&json!(["location", "/end"])));
        assert!(fetch(&visit, 3, &url, json!({ "redirect": "sometimes" })).await.is_err());
        assert_eq!(server.requests().len(), 2);
    });
}

#[test]
fn a_stream_is_not_sent_twice() {
    run(async {
        let server = redirector().await;
        let visit = visit(&[server.port], Limits::default());
        for (id, status, fine) in [(1, 307, false), (2, 302, false), (3, 303, true)] {
            let url = server.url(&format!("/to/{status}?/end"));
            let (head, _) = tokio::join!(
                fetch(&visit, id, &url, json!({ "method": "POST", "stream": true })),
                write(&visit, id, "x", true),
            );
            assert_eq!(head.is_ok(), fine, "{status}: {head:?}");
        }
    });
}

#[test]
fn redirects_into_forbidden_places() {
    run(async {
        let server = redirector().await;
        let other = redirector().await;
        let names =
            Names::default().say("rebound.example", &[&["10.0.0.7"]]).say("inner.example", &[&["169.254.169.254"]]);
        let limits = Limits { rate_per_host: 1000, rate_per_tenant: 1000, ..Limits::default() };
        let settings = egress::Settings { limits, resolver: Arc::new(names), ..Default::default() };
        let door = egress::Door::dev(vec![server.port], settings).unwrap();
        let all = rules(&[
            &format!("http://*:{}", server.port),
            "http://*",
            "https://*",
            &format!("http://b.example:{}", other.port),
        ]);
        let visit = door.visit(Pass::new("t", "d", all));
        let (port, closed) = (server.port, other.port);
        let places = [
            "http://169.254.169.254/latest/meta-data/".to_owned(),
            "http://127.0.0.1/".to_owned(),
            "https://localhost/".to_owned(),
            "http://[::1]/".to_owned(),
            "http://0x7f000001/".to_owned(),
            "http://[::ffff:169.254.169.254]/".to_owned(),
            "//10.0.0.1/".to_owned(),
            "\\\\10.0.0.1\\".to_owned(),
            "http://rebound.example/".to_owned(),
            "http://inner.example/".to_owned(),
            format!("http://rebound.example:{port}/"),
            format!("http://b.example:{closed}/"),
            format!("http://127.0.0.1:{closed}/"),
            "http://a.example:22/".to_owned(),
            "ftp://a.example/".to_owned(),
            "file:///etc/passwd".to_owned(),
            "gopher://a.example:70/_x".to_owned(),
            "javascript:alert(1)".to_owned(),
            "data:text/plain,x".to_owned(),
            "unix:/var/run/docker.sock".to_owned(),
            format!("http://user:pass@a.example:{port}/"),
            "http://".to_owned(),
        ];
        for (id, place) in places.iter().enumerate() {
            for status in [301, 302, 303, 307, 308] {
                let id = (id * 1000 + status) as u64;
                let denied = fetch(&visit, id, &server.url(&format!("/to/{status}?{place}")), json!({})).await;
                let denied = denied.expect_err(place);
                assert!(matches!(denied.code, Code::Denied | Code::Invalid), "{place}: {denied:?}");
            }
        }
        assert_eq!(other.connections(), 0);
        let denied = visit.records().iter().filter(|record| !record.allowed).count();
        assert!(denied > 50, "{denied} refusals were recorded");
    });
}

#[test]
fn one_after_the_other_ends() {
    run(async {
        let server = Server::raw(|_| redirect(302, "/again")).await;
        let visit = visit(&[server.port], Limits { redirects: 4, ..Limits::default() });
        assert_eq!(fetch(&visit, 1, &server.url("/"), json!({})).await.unwrap_err().code, Code::Limit);
        assert_eq!(server.requests().len(), 5);
        assert_eq!(visit.records().len(), 5);
    });
}

#[test]
fn two_places_at_once_and_none() {
    run(async {
        let two = Server::says("HTTP/1.1 302 x\r\nlocation: /a\r\nlocation: /b\r\ncontent-length: 0\r\n\r\n").await;
        let none = Server::says("HTTP/1.1 302 x\r\ncontent-length: 0\r\n\r\n").await;
        let visit = visit(&[two.port, none.port], Limits::default());
        assert_eq!(fetch(&visit, 1, &two.url("/"), json!({})).await.unwrap_err().code, Code::Network);
        assert_eq!(fetch(&visit, 2, &none.url("/"), json!({})).await.unwrap()["status"], 302);
    });
}

#[test]
fn who_one_is_stays_with_the_origin() {
    run(async {
        let first = redirector().await;
        let second = redirector().await;
        let visit = visit(&[first.port, second.port], Limits::default());
        let headers = json!([["Authorization", "Bearer one"], ["cookie", "a=1"], ["x-plain", "1"]]);
        let cases = [
            ("/end".to_owned(), true),
            (first.url("/end"), true),
            (format!("http://b.example:{}/end", first.port), false),
            (second.url("/end"), false),
            // Away and back again: what was dropped does not return.
            (second.url(&format!("/to/302?{}", first.url("/end"))), false),
        ];
        for (id, (to, kept)) in cases.iter().enumerate() {
            let url = first.url(&format!("/to/302?{to}"));
            fetch(&visit, id as u64, &url, json!({ "headers": headers })).await.unwrap();
            let seen = String::from_utf8(read_all(&visit, id as u64).await.unwrap()).unwrap();
            assert_eq!(seen.contains("authorization: Bearer one"), *kept, "{to}: {seen}");
            assert_eq!(seen.contains("cookie: a=1"), *kept, "{to}");
            assert!(seen.contains("x-plain: 1"));
        }
    });
}

#[test]
fn the_watcher_hears_of_each_hop_once() {
    run(async {
        let server = redirector().await;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ear = heard.clone();
        let mut pass = pass(&[server.port]);
        pass.watch = Some(Arc::new(move |record: &egress::Record| ear.lock().unwrap().push(record.clone())));
        let visit = door(&[server.port], Limits::default()).visit(pass);
        get(&visit, 1, &server.url("/to/302?/end")).await.unwrap();
        fetch(&visit, 2, &server.url("/to/302?http://10.0.0.1/"), json!({})).await.unwrap_err();
        fetch(&visit, 3, "nonsense", json!({})).await.unwrap_err();
        drop(visit);
        let heard = heard.lock().unwrap();
        let told: Vec<_> = heard.iter().map(|record| (record.allowed, record.status, record.failed)).collect();
        assert_eq!(
            told,
            [
                (true, Some(302), None),
                (true, Some(200), None),
                (true, Some(302), None),
                (false, None, Some("egress_denied")),
                (false, None, Some("egress_invalid")),
            ]
        );
    });
}
