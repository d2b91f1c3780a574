//! What really goes over the wire, to the byte, and what never does.

use crate::rig;

use egress::{Code, Limits};
use proptest::prelude::*;
use rig::*;
use serde_json::json;

#[test]
fn a_plain_request_to_the_byte() {
    run(async {
        let server = Server::says(ok("hello")).await;
        let visit = visit(&[server.port], Limits::default());
        let headers = json!([["X-A", "1"], ["x-a", " 2 "], ["x-latin", "\u{e9}"]]);
        let head = fetch(&visit, 1, &server.url("/p/../q?r=%20 s"), json!({ "headers": headers })).await.unwrap();
        assert_eq!(head["status"], 200);
        assert_eq!(head["statusText"], "OK");
        assert_eq!(head["redirected"], false);
        assert_eq!(head["url"], server.url("/q?r=%20%20s"));
        assert_eq!(head["headers"], json!([["content-length", "5"]]));
        assert_eq!(head["bodyId"], 1);
        assert_eq!(read_all(&visit, 1).await.unwrap(), b"hello");
        assert_eq!(
            server.requests(),
            [format!(
                "GET /q?r=%20%20s HTTP/1.1\r\nx-a: 1\r\nx-a: 2\r\nx-latin: \u{fffd}\r\n\
                 accept-encoding: gzip, br, zstd, deflate\r\naccept: */*\r\nuser-agent: bulkhead\r\nhost: a.example:{}\r\n\r\n",
                server.port
            )]
        );
        assert_eq!(visit.hosts_reached(), ["a.example"]);
        let records = visit.records();
        assert_eq!(records.len(), 1);
        assert!(records[0].allowed && records[0].status == Some(200) && records[0].failed.is_none());
        assert_eq!(records[0].rule.as_deref(), Some(format!("http://*:{}", server.port).as_str()));
        assert!(records[0].bytes_down >= 5 && records[0].bytes_up > 20);
        assert_eq!(visit.bytes().down, records[0].bytes_down);
    });
}

#[test]
fn bodies_to_the_byte() {
    run(async {
        let server = Server::says(ok("")).await;
        let visit = visit(&[server.port], Limits::default());
        let port = server.port;
        let tail = format!(
            "accept-encoding: gzip, br, zstd, deflate\r\naccept: */*\r\nuser-agent: bulkhead\r\nhost: a.example:{port}\r\n"
        );

        let more = json!({ "method": "POST", "bodyLength": 3, "headers": [["content-length", "3"]] });
        fetch_body(&visit, 1, &server.url("/"), more, "abc".into()).await.unwrap();
        assert_eq!(read_all(&visit, 1).await.unwrap(), b"");
        assert_eq!(server.requests()[0], format!("POST / HTTP/1.1\r\n{tail}content-length: 3\r\n\r\nabc"));

        let url = server.url("/");
        let (head, ()) = tokio::join!(fetch(&visit, 2, &url, json!({ "method": "post", "stream": true })), async {
            write(&visit, 2, "ab", false).await.unwrap();
            write(&visit, 2, "", false).await.unwrap();
            write(&visit, 2, "c", false).await.unwrap();
            write(&visit, 2, "", true).await.unwrap();
        },);
        head.unwrap();
        assert_eq!(
            server.requests()[1],
            format!("POST / HTTP/1.1\r\n{tail}transfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")
        );
        read_all(&visit, 2).await.unwrap();

        fetch(&visit, 3, &server.url("/"), json!({ "method": "PUT" })).await.unwrap();
        assert!(server.requests()[2].contains("content-length: 0\r\n"), "{}", server.requests()[2]);
    });
}

#[test]
fn headers_that_are_never_sent() {
    run(async {
        let server = Server::says(ok("")).await;
        let visit = visit(&[server.port], Limits::default());
        let bad = [
            ("connection", "close, x-smuggled"),
            ("connection", "upgrade"),
            ("Connection", "content-length"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("TE", "gzip"),
            ("trailer", "x"),
            ("transfer-encoding", "chunked"),
            ("Transfer-Encoding", "identity"),
            ("transfer-encoding", "\tchunked"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAMAAABkAARAAAAAAAIAAAAA"),
            ("expect", "100-continue"),
            ("proxy-authorization", "Basic eA=="),
            ("proxy-connection", "keep-alive"),
            ("Proxy-Anything", "1"),
            ("host", "internal.example"),
            ("Host", "a.example"),
            ("content-length", "5"),
            ("content-length", "0, 0"),
            ("content-length", "+0"),
            ("x", "a\r\nhost: evil"),
            ("x", "a\nb"),
            ("x", "a\rb"),
            ("x", "a\0b"),
            ("x", "a\u{7f}b"),
            ("x", "a\u{1}b"),
            ("x", "\u{10a}\u{10d}"),
            ("x", "caf\u{2019}"),
            ("x\r\ny", "a"),
            ("x y", "a"),
            ("x:", "a"),
            (":authority", "evil"),
            (":path", "/evil"),
            ("", "a"),
            ("x\0", "a"),
            ("\u{212a}eep-alive", "a"),
            ("h\u{f6}st", "a"),
            ("x\t", "a"),
            (" host", "a"),
            ("host ", "a"),
        ];
        for (number, (name, value)) in bad.into_iter().enumerate() {
            let denied = fetch(&visit, number as u64, &server.url("/"), json!({ "headers": [[name, value]] })).await;
            let denied = denied.expect_err(&format!("{name:?}: {value:?}"));
            assert_eq!(denied.code, Code::Invalid, "{name:?}: {value:?}: {denied}");
        }
        assert_eq!(server.connections(), 0, "not even a connection was made");
        assert!(visit.records().iter().all(|record| !record.allowed && record.failed == Some("egress_invalid")));
        let many: Vec<_> = (0..101).map(|n| [format!("x-{n}"), "a".to_owned()]).collect();
        assert_eq!(
            fetch(&visit, 900, &server.url("/"), json!({ "headers": many })).await.unwrap_err().code,
            Code::Limit
        );
        let long = json!({ "headers": [["x", "a".repeat(33 << 10)]] });
        assert_eq!(fetch(&visit, 901, &server.url("/"), long).await.unwrap_err().code, Code::Limit);
        // What says the truth may be there, and is not doubled.
        let host = format!("A.example:{}", server.port);
        let headers = json!([["host", host], ["connection", "Keep-Alive"], ["content-length", "0"]]);
        fetch(&visit, 902, &server.url("/"), json!({ "headers": headers })).await.unwrap();
        let sent = server.requests().remove(0);
        assert_eq!(sent.matches("host:").count(), 1);
        assert!(!sent.contains("connection") && !sent.contains("content-length"), "{sent}");
    });
}

#[test]
fn methods_that_are_never_sent() {
    run(async {
        let server = Server::says(ok("")).await;
        let visit = visit(&[server.port], Limits::default());
        let bad = [
            "CONNECT",
            "connect",
            "TRACE",
            "trace",
            "TRACK",
            "Track",
            "",
            "GET /evil HTTP/1.1\r\nx:",
            "G T",
            "G\0T",
            "GÉT",
        ];
        for (number, method) in bad.into_iter().enumerate() {
            let denied = fetch(&visit, number as u64, &server.url("/"), json!({ "method": method })).await;
            assert!(matches!(denied.unwrap_err().code, Code::Denied | Code::Invalid), "{method}");
        }
        assert_eq!(server.connections(), 0);
        let with_body = json!({ "method": "GET", "bodyLength": 1 });
        assert!(fetch_body(&visit, 90, &server.url("/"), with_body, "x".into()).await.is_err());
        let lie = json!({ "method": "POST", "bodyLength": 5 });
        assert!(fetch_body(&visit, 91, &server.url("/"), lie, "x".into()).await.is_err());
        fetch(&visit, 92, &server.url("/"), json!({ "method": "PROPFIND" })).await.unwrap();
        assert!(server.requests()[0].starts_with("PROPFIND / HTTP/1.1\r\n"));
    });
}

#[test]
fn what_a_server_says_about_the_connection_stays_outside() {
    run(async {
        let response = "HTTP/1.1 200 Fine\r\nconnection: keep-alive, x-hop\r\nkeep-alive: 1\r\nx-hop: 1\r\nX-Kept: a\u{c3}\r\n\
                        proxy-authenticate: x\r\ntrailer: x\r\nupgrade: h2c\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n\
                        content-length: 0\r\n\r\n";
        let bytes: Vec<u8> = response.chars().map(|c| c as u8).collect();
        let server = Server::says(bytes).await;
        let visit = visit(&[server.port], Limits::default());
        let head = fetch(&visit, 1, &server.url("/"), json!({})).await.unwrap();
        assert_eq!(head["statusText"], "Fine");
        assert_eq!(
            head["headers"],
            json!([["x-kept", "a\u{c3}"], ["set-cookie", "a=1"], ["set-cookie", "b=2"], ["content-length", "0"]])
        );
    });
}

#[test]
fn responses_without_a_body() {
    run(async {
        let server = Server::raw(|request| {
            let status = if request.starts_with("HEAD") { "200 OK\r\ncontent-length: 99" } else { "204 No Content" };
            format!("HTTP/1.1 {status}\r\n\r\n").into_bytes()
        })
        .await;
        let visit = visit(&[server.port], Limits::default());
        for (id, method) in [(1, "HEAD"), (2, "GET"), (3, "HEAD")] {
            let head = fetch(&visit, id, &server.url("/"), json!({ "method": method })).await.unwrap();
            assert!(head["bodyId"].is_null());
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the list says, the server sees one request with one host, and no line that the list did not have.
    #[test]
    fn no_list_of_headers_smuggles(
        list in proptest::collection::vec((
            prop_oneof!["[a-zA-Z-]{1,12}", "(?s).{0,6}", Just("Transfer-Encoding".to_owned()), Just("content-length".to_owned())],
            prop_oneof!["[ -~]{0,12}", "(?s).{0,8}", Just("x\r\n\r\nGET /evil HTTP/1.1\r\n".to_owned())],
        ), 0..8),
    ) {
        run(async {
            let server = Server::says(ok("")).await;
            let visit = visit(&[server.port], Limits::default());
            let outcome = fetch(&visit, 1, &server.url("/"), json!({ "headers": list })).await;
            let requests = server.requests();
            prop_assert_eq!(requests.len(), usize::from(outcome.is_ok()));
            if let Some(request) = requests.first() {
                let (head, rest) = request.split_once("\r\n\r\n").unwrap();
                prop_assert_eq!(rest, "");
                let lines: Vec<&str> = head.split("\r\n").collect();
                prop_assert_eq!(lines.iter().filter(|line| line.to_ascii_lowercase().starts_with("host:")).count(), 1);
                prop_assert!(lines.len() <= list.len() + 5);
                prop_assert!(!head.to_ascii_lowercase().contains("\ntransfer-encoding") && !head.contains("\r\nGET"));
            }
            Ok(())
        })?;
    }
}
