//! Programs that know nothing but a proxy: requests that it can see. On real sockets.

use crate::rig;

use egress::Limits;
use rig::proxy::{KEY, Proxy, ask, bound, head};
use rig::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Answers with what it was asked, as it came.
async fn parrot() -> Server {
    Server::raw(ok).await
}

#[test]
fn requests_with_a_whole_url() {
    run(async {
        let server = parrot().await;
        let proxy = Proxy::new(visit(&[server.port], Limits::default()), None).await;
        let mut stream = proxy.dial().await;
        let url = server.url("/x?y=1");
        // One after the other on one connection; what is said to the proxy stays there.
        for method in ["GET", "DELETE", "OPTIONS"] {
            let more = "proxy-connection: keep-alive\r\nproxy-authorization: Basic eA==\r\nte: trailers\r\nconnection: x-hop, keep-alive\r\n\
                        x-hop: 1\r\nx-kept: \u{fc}\r\nupgrade: h2c\r\nkeep-alive: 5\r\nhost: other.example\r\n";
            let answer = ask(&mut stream, &format!("{method} {url} HTTP/1.1\r\n{more}\r\n")).await;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            let seen = server.requests().pop().unwrap();
            let want = format!("{method} /x?y=1 HTTP/1.1\r\nx-kept: \u{fc}\r\n");
            assert!(seen.starts_with(&want) && answer.ends_with(&seen), "{seen}");
            assert!(seen.contains(&format!("host: a.example:{}\r\n", server.port)), "{seen}");
            for gone in ["proxy", "te:", "x-hop", "upgrade", "keep-alive", "other.example"] {
                assert!(!seen.contains(gone), "{gone}: {seen}");
            }
        }
        let answer =
            ask(&mut stream, &format!("POST {url} HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nbody")).await;
        assert!(answer.contains("content-length: 4\r\n") && answer.ends_with("\r\n\r\nbody"), "{answer}");
        let chunked = "transfer-encoding: chunked\r\n\r\n2\r\nbo\r\n2;x=y\r\ndy\r\n0\r\nx-trailer: 1\r\n\r\n";
        let answer = ask(&mut stream, &format!("PUT {url} HTTP/1.1\r\nhost: x\r\n{chunked}")).await;
        assert!(answer.contains("transfer-encoding: chunked") && !answer.contains("x-trailer"), "{answer}");
        assert!(answer.ends_with("bo\r\n2\r\ndy\r\n0\r\n\r\n"), "{answer}");
        let waits = format!("POST {url} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n");
        stream.write_all(waits.as_bytes()).await.unwrap();
        assert!(head(&mut stream).await.starts_with("HTTP/1.1 100 "));
        assert!(ask(&mut stream, "z").await.ends_with("\r\n\r\nz"));
        assert_eq!(proxy.visit.records().len(), 6);
        assert!(proxy.visit.records().iter().all(|record| record.allowed && record.status == Some(200)));
        assert_eq!(proxy.heard(), []);
    });
}

#[test]
fn redirects_are_the_clients_to_follow() {
    run(async {
        let server = Server::says(redirect(302, "http://10.0.0.1/")).await;
        let proxy = Proxy::new(visit(&[server.port], Limits::default()), None).await;
        let answer =
            ask(&mut proxy.dial().await, &format!("GET {} HTTP/1.1\r\nhost: x\r\n\r\n", server.url("/"))).await;
        assert!(answer.starts_with("HTTP/1.1 302 ") && answer.contains("location: http://10.0.0.1/\r\n"), "{answer}");
        let head = ask(&mut proxy.dial().await, &format!("HEAD {} HTTP/1.1\r\nhost: x\r\n\r\n", server.url("/"))).await;
        assert!(head.starts_with("HTTP/1.1 302 "), "{head}");
    });
}

#[test]
fn secrets_are_put_in_and_masked() {
    run(async {
        let server = parrot().await;
        let pass = bound(pass(&[server.port]), &format!("http://a.example:{}", server.port));
        let proxy = Proxy::new(door(&[server.port], Limits::default()).visit(pass), None).await;
        let answer =
            ask(&mut proxy.dial().await, &format!("GET {} HTTP/1.1\r\nhost: x\r\n\r\n", server.url("/"))).await;
        assert!(server.requests()[0].contains(&format!("x-key: {KEY}\r\n")));
        assert!(answer.contains(&format!("x-key: {}\r\n", "*".repeat(KEY.len()))) && !answer.contains(KEY), "{answer}");
        assert_eq!(proxy.visit.credentials(), ["KEY"]);
    });
}

#[test]
fn what_is_refused_says_why() {
    run(async {
        let server = parrot().await;
        let proxy = Proxy::new(visit(&[server.port], Limits { request_bytes: 10, ..Limits::default() }), None).await;
        let cases = [
            ("GET http://10.0.0.1/ HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(), "403", "no rule allows", Some("10.0.0.1")),
            (
                format!("GET http://10.0.0.1:{}/ HTTP/1.1\r\nhost: x\r\n\r\n", server.port),
                "403",
                "never reached",
                Some("10.0.0.1"),
            ),
            (
                "GET http://b.example/ HTTP/1.1\r\nhost: a.example\r\n\r\n".to_owned(),
                "403",
                "b.example",
                Some("b.example"),
            ),
            ("GET ftp://a.example/ HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(), "403", "neither http", None),
            (
                format!("GET http://u:p@a.example:{}/ HTTP/1.1\r\nhost: x\r\n\r\n", server.port),
                "400",
                "user name",
                None,
            ),
            (format!("TRACE {} HTTP/1.1\r\nhost: x\r\n\r\n", server.url("/")), "403", "never sent", Some("a.example")),
            ("GET / HTTP/1.1\r\nhost: a.example\r\n\r\n".to_owned(), "400", "this is a proxy", None),
            ("OPTIONS * HTTP/1.1\r\nhost: a.example\r\n\r\n".to_owned(), "400", "this is a proxy", None),
            (
                format!("POST {} HTTP/1.1\r\nhost: x\r\ncontent-length: 11\r\n\r\n12345678901", server.url("/")),
                "429",
                "request_bytes",
                None,
            ),
            (
                format!(
                    "POST {} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nb\r\n12345678901\r\n0\r\n\r\n",
                    server.url("/")
                ),
                "429",
                "request_bytes",
                None,
            ),
        ];
        for (request, status, words, noticed) in cases {
            let mut stream = proxy.dial().await;
            let answer = ask(&mut stream, &request).await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(words),
                "{request}: {answer}"
            );
            let heard = proxy.heard();
            assert_eq!(heard.first().map(|(host, ..)| host.as_str()), noticed, "{request}");
        }
        assert_eq!(server.requests().len(), 0);
    });
}

#[test]
fn hostile_clients() {
    run(async {
        let server = parrot().await;
        let limits = Limits { header_ms: 300, ..Limits::default() };
        let proxy = Proxy::new(visit(&[server.port], limits), None).await;
        let url = server.url("/");
        let many: String = (0..200).map(|n| format!("x-{n}: 1\r\n")).collect();
        let long = "x".repeat(64 << 10);
        for (what, request) in [
            ("too many headers", format!("GET {url} HTTP/1.1\r\nhost: x\r\n{many}\r\n")),
            ("a long header", format!("GET {url} HTTP/1.1\r\nhost: x\r\nx: {long}\r\n\r\n")),
            ("a long URL", format!("GET {url}{long} HTTP/1.1\r\nhost: x\r\n\r\n")),
            (
                "two lengths",
                format!("POST {url} HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"),
            ),
            ("two lengths in one", format!("POST {url} HTTP/1.1\r\nhost: x\r\ncontent-length: 1, 2\r\n\r\nab")),
            ("no length", format!("POST {url} HTTP/1.1\r\nhost: x\r\ncontent-length: +1\r\n\r\na")),
            (
                "an odd coding",
                format!("POST {url} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n"),
            ),
            (
                "chunked not last",
                format!("POST {url} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n"),
            ),
            (
                "a bad chunk",
                format!("POST {url} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n-1\r\nx\r\n0\r\n\r\n"),
            ),
            (
                "a huge chunk",
                format!("POST {url} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nx"),
            ),
            ("a folded header", format!("GET {url} HTTP/1.1\r\nhost: x\r\nx: 1\r\n y: 2\r\n\r\n")),
            ("a header with a space", format!("GET {url} HTTP/1.1\r\nhost: x\r\nx : 1\r\n\r\n")),
            ("a null", format!("GET {url} HTTP/1.1\r\nhost: x\r\nx: a\0b\r\n\r\n")),
            ("a bare carriage return", format!("GET {url} HTTP/1.1\r\nhost: x\r\nx: a\rb: c\r\n\r\n")),
            ("another protocol", "\x16\x03\x01\x00\x05hello".to_owned()),
            ("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
            ("half a request", format!("GET {url} HTTP/1.1\r\nhost: x\r\nx")),
            ("nothing", String::new()),
        ] {
            let answer = proxy.say(&request).await;
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{what}: {answer}");
            let seen = server.requests();
            assert!(seen.is_empty(), "{what}: {seen:?}");
        }
    });
}

#[test]
fn no_request_hides_in_another() {
    run(async {
        let server = parrot().await;
        let proxy = Proxy::new(visit(&[server.port], Limits { header_ms: 1000, ..Limits::default() }), None).await;
        let url = server.url("/outer");
        let hidden = format!("GET {} HTTP/1.1\r\nhost: x\r\n\r\n", server.url("/hidden"));
        let chunk = format!("{:x}\r\n{hidden}\r\n0\r\n\r\n", hidden.len());
        for (what, request) in [
            (
                "both ways to tell a length",
                format!(
                    "POST {url} HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n{chunk}"
                ),
            ),
            (
                "the other way round",
                format!(
                    "POST {url} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n{chunk}"
                ),
            ),
            ("a length", format!("POST {url} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{hidden}", hidden.len())),
        ] {
            let before = server.requests().len();
            proxy.say(&request).await;
            let seen = server.requests().split_off(before);
            assert!(seen.iter().all(|seen| seen.starts_with("POST /outer ")) && seen.len() <= 1, "{what}: {seen:?}");
            let lengths =
                seen.iter().filter(|s| s.contains("content-length") && s.contains("transfer-encoding")).count();
            assert_eq!(lengths, 0, "{what}: {seen:?}");
        }
        // One behind the other at once is allowed, and each is decided by itself.
        let before = server.requests().len();
        let refused = "GET http://10.0.0.1/ HTTP/1.1\r\nhost: x\r\n\r\n";
        let answers = proxy.say(&format!("{hidden}{refused}{hidden}")).await;
        assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
        assert_eq!(answers.matches("HTTP/1.1 403 Forbidden").count(), 1, "{answers}");
        assert_eq!(server.requests().len(), before + 2);
    });
}

#[test]
fn bodies_stream_both_ways() {
    run(async {
        let server = Server::each(|mut stream, _| async move {
            // Answers before it has read, and then piece for piece.
            head(&mut stream).await;
            let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            stream.write_all(answer.as_bytes()).await.unwrap();
            let mut buffer = vec![0; 64 << 10];
            while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                let chunk = [format!("{read:x}\r\n").as_bytes(), &buffer[..read], b"\r\n"].concat();
                if stream.write_all(&chunk).await.is_err() || buffer[..read].ends_with(b"0\r\n\r\n") {
                    break;
                }
            }
            let _ = stream.write_all(b"0\r\n\r\n").await;
        })
        .await;
        let proxy = Proxy::new(visit(&[server.port], Limits::default()), None).await;
        let (mut from, mut to) = proxy.dial().await.into_split();
        let request = format!("POST {} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n", server.url("/"));
        to.write_all(request.as_bytes()).await.unwrap();
        assert!(head(&mut from).await.starts_with("HTTP/1.1 200 OK"));
        for piece in ["one", "two"] {
            to.write_all(format!("3\r\n{piece}\r\n").as_bytes()).await.unwrap();
            let mut seen = String::new();
            while !seen.contains(piece) {
                seen.push(char::from(from.read_u8().await.unwrap()));
            }
        }
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        let writing = async {
            for _ in 0..64 {
                to.write_all(chunk.as_bytes()).await.unwrap();
            }
            to.write_all(b"0\r\n\r\n").await.unwrap();
        };
        let reading = async {
            let (mut total, mut buffer) = (0, vec![0; 64 << 10]);
            while total < 64 * 0x10000 {
                total += from.read(&mut buffer).await.unwrap();
            }
        };
        tokio::join!(writing, reading);
    });
}
