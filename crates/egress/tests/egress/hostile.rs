//! Servers that mean ill: slow, endless, packed, broken.

use crate::rig;

use async_compression::tokio::write::{BrotliEncoder, DeflateEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder};
use egress::{Code, Limits};
use rig::*;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Impatient, so that tests end soon.
fn limits() -> Limits {
    Limits { connect_ms: 1000, first_byte_ms: 300, idle_ms: 300, total_ms: 1500, ..Limits::default() }
}

/// Says the first part, then repeats the second for ever, with pauses.
async fn repeats(first: &'static str, again: &'static str, pause_ms: u64) -> Server {
    Server::each(move |mut stream, _| async move {
        request(&mut stream).await;
        let mut more = stream.write_all(first.as_bytes()).await;
        let again = if pause_ms > 0 { again.to_owned() } else { again.repeat(500) };
        while more.is_ok() {
            more = stream.write_all(again.as_bytes()).await;
            if pause_ms > 0 {
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            }
        }
    })
    .await
}

/// The code that a fetch with its body ends with.
async fn ends_with(server: &Server, limits: Limits) -> Code {
    let visit = visit(&[server.port], limits);
    let denied = get(&visit, 1, &server.url("/")).await.expect_err("it should not end well");
    assert!(visit.records().last().unwrap().failed.is_some());
    denied.code
}

#[test]
fn slow_ones() {
    run(async {
        let silent = Server::each(|stream, _| async move {
            tokio::time::sleep(Duration::from_secs(50)).await;
            drop(stream);
        })
        .await;
        assert_eq!(ends_with(&silent, limits()).await, Code::Timeout);
        let headers = repeats("HTTP/1.1 200 OK\r\nx: ", "a", 20).await;
        assert_eq!(ends_with(&headers, limits()).await, Code::Timeout);
        let informed = repeats("", "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n", 20).await;
        assert_eq!(ends_with(&informed, limits()).await, Code::Timeout);
        let stalls = repeats("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nab", "", 20).await;
        assert_eq!(ends_with(&stalls, limits()).await, Code::Timeout);
        // Never idle for long, and never done.
        let drips = repeats("HTTP/1.1 200 OK\r\ncontent-length: 999999\r\n\r\n", "a", 20).await;
        assert_eq!(ends_with(&drips, limits()).await, Code::Timeout);
        let packed = repeats("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n\x1f", "", 20).await;
        assert_eq!(ends_with(&packed, limits()).await, Code::Timeout);
        // TLS that never answers.
        let visit = visit(&[silent.port], limits());
        let denied = fetch(&visit, 1, &format!("https://a.example:{}/", silent.port), json!({})).await.unwrap_err();
        assert_eq!(denied.code, Code::Timeout);
    });
}

#[test]
fn endless_ones() {
    run(async {
        let plenty = || Limits { response_bytes: 1 << 20, ..Limits::default() };
        let headers = repeats("HTTP/1.1 200 OK\r\n", "x-a: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n", 0).await;
        assert_eq!(ends_with(&headers, plenty()).await, Code::Network);
        let header =
            repeats("HTTP/1.1 200 OK\r\nx: ", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0).await;
        assert_eq!(ends_with(&header, plenty()).await, Code::Network);
        let reason = repeats("HTTP/1.1 200 ", "OK OK OK OK OK OK OK OK OK OK OK OK OK OK OK OK OK OK OK OK ", 0).await;
        assert_eq!(ends_with(&reason, plenty()).await, Code::Network);
        let early = repeats("", "HTTP/1.1 100 Continue\r\n\r\n", 0).await;
        assert_eq!(ends_with(&early, limits()).await, Code::Timeout);
        let to_the_end = repeats("HTTP/1.1 200 OK\r\n\r\n", "0123456789abcdef0123456789abcdef", 0).await;
        assert_eq!(ends_with(&to_the_end, plenty()).await, Code::Limit);
        let chunked = repeats("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "4\r\nabcd\r\n", 0).await;
        assert_eq!(ends_with(&chunked, Limits { response_bytes: 16 << 10, ..plenty() }).await, Code::Limit);
        let extended =
            repeats("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4;", "a=bbbbbbbbbbbbbbbbbbb;", 0).await;
        assert_eq!(ends_with(&extended, plenty()).await, Code::Network);
        let trailers =
            repeats("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", "x-a: bbbbbbbbbbbbbb\r\n", 0).await;
        assert_eq!(ends_with(&trailers, plenty()).await, Code::Network);
        let many = format!("HTTP/1.1 200 OK\r\n{}content-length: 0\r\n\r\n", "a: b\r\n".repeat(200));
        assert_eq!(ends_with(&Server::says(many).await, plenty()).await, Code::Network);
    });
}

#[test]
fn broken_ones() {
    run(async {
        let broken = [
            "",
            "\0",
            "nonsense\r\n\r\n",
            "HTTP/1.1\r\n\r\n",
            "HTTP/1.1 99999 OK\r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/9.9 200 OK\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx y: 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx : 1\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx: 1\r\n folded: 2\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx: a\rb: c\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
            "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 1e3\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551616\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhelloX0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked, gzip\r\ncontent-length: 9\r\n\r\nshort",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nshort",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ncontent-encoding: zstd\r\ncontent-length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 5\r\n\r\n\x11ello",
            "HTTP/1.1 200 OK\r\ncontent-encoding: deflate\r\ncontent-length: 5\r\n\r\n\x07\x07\x07\x07\x07",
            "HTTP/1.1 200 OK\r\ncontent-encoding: gzip, gzip\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-encoding: br\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        ];
        for said in broken {
            let server = Server::each(move |mut stream, _| async move {
                request(&mut stream).await;
                let _ = stream.write_all(said.as_bytes()).await;
            })
            .await;
            let code = ends_with(&server, limits()).await;
            assert!(matches!(code, Code::Network), "{said:?}: {code:?}");
        }
    });
}

/// What a server says after its answer is no answer to the next question.
#[test]
fn an_answer_nobody_asked_for() {
    run(async {
        let mut two = ok("first");
        two.extend(ok("smuggled"));
        let server = Server::says(two).await;
        let visit = visit(&[server.port], limits());
        for id in 0..5 {
            let (_, body) = get(&visit, id, &server.url("/")).await.unwrap();
            assert_eq!(body, "first");
        }
        assert_eq!(server.connections(), 5, "a connection that said too much is not used again");
    });
}

async fn pack(coding: &str, data: &[u8]) -> Vec<u8> {
    async fn all<W: AsyncWrite + Unpin>(mut encoder: W, data: &[u8]) -> W {
        encoder.write_all(data).await.unwrap();
        encoder.shutdown().await.unwrap();
        encoder
    }
    match coding {
        "gzip" => all(GzipEncoder::new(Vec::new()), data).await.into_inner(),
        "br" => {
            all(BrotliEncoder::with_quality(Vec::new(), async_compression::Level::Fastest), data).await.into_inner()
        }
        "zstd" => all(ZstdEncoder::new(Vec::new()), data).await.into_inner(),
        "raw deflate" => all(DeflateEncoder::new(Vec::new()), data).await.into_inner(),
        _ => all(ZlibEncoder::new(Vec::new()), data).await.into_inner(),
    }
}

fn packed(coding: &str, body: &[u8]) -> Vec<u8> {
    let name = coding.trim_start_matches("raw ");
    let mut out =
        format!("HTTP/1.1 200 OK\r\ncontent-encoding: {name}\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
    out.extend(body);
    out
}

const CODINGS: [&str; 5] = ["gzip", "br", "zstd", "deflate", "raw deflate"];

#[test]
fn packed_bodies_are_unpacked() {
    run(async {
        let text: String = (0..40_000).map(|n| format!("{n} ")).collect();
        for coding in CODINGS {
            let body = pack(coding, text.as_bytes()).await;
            let server = Server::says(packed(coding, &body)).await;
            let visit = visit(&[server.port], Limits { chunk_bytes: 10_000, ..Limits::default() });
            let head = fetch(&visit, 1, &server.url("/"), json!({})).await.unwrap();
            assert_eq!(head["headers"], json!([]), "{coding}");
            let mut all = Vec::new();
            while let Some(chunk) = piece(&visit, 1).await.unwrap() {
                assert!(chunk.len() <= 10_000);
                all.extend(chunk);
            }
            assert!(all == text.as_bytes(), "{coding}");
            let down = visit.bytes().down;
            assert!(down < body.len() as u64 + 200, "{coding}: bytes are counted as they come");
            // The connection comes back, a moment after its response was read.
            let mut id = 2;
            while server.connections() == server.requests().len() {
                assert!(id < 50, "{coding}: the connection is not used again");
                get(&visit, id, &server.url("/")).await.unwrap();
                id += 1;
            }
        }
        let mut two = pack("gzip", b"one ").await;
        two.extend(pack("gzip", b"two").await);
        let server = Server::says(packed("gzip", &two)).await;
        let visit = visit(&[server.port], limits());
        assert_eq!(get(&visit, 1, &server.url("/")).await.unwrap().1, "one two");
    });
}

#[test]
fn bombs() {
    run(async {
        let zeros = vec![0; 6 << 20];
        for coding in CODINGS {
            let bomb = pack(coding, &zeros).await;
            let server = Server::says(packed(coding, &bomb)).await;
            for limits in
                [Limits::default(), Limits { decoded_ratio: 1 << 40, decoded_bytes: 2 << 20, ..Limits::default() }]
            {
                let most = limits.decoded_bytes.min(bomb.len() as u64 * limits.decoded_ratio).max(1 << 20);
                let visit = visit(&[server.port], limits);
                fetch(&visit, 1, &server.url("/"), json!({})).await.unwrap();
                let mut got = 0;
                let denied = loop {
                    match piece(&visit, 1).await {
                        Ok(Some(chunk)) => got += chunk.len() as u64,
                        Ok(None) => panic!("{coding}: the bomb went off"),
                        Err(denied) => break denied,
                    }
                };
                assert_eq!(denied.code, Code::Limit, "{coding}: {denied}");
                assert!(got <= most, "{coding}: {got} bytes came through");
                assert!(piece(&visit, 1).await.is_err());
            }
            // A bomb in a bomb: only the outer one is the host's to open, and it is small.
            let nested = pack(coding, &bomb).await;
            let server = Server::says(packed(coding, &nested)).await;
            let visit = visit(&[server.port], Limits::default());
            fetch(&visit, 1, &server.url("/"), json!({})).await.unwrap();
            assert!(read_all(&visit, 1).await.unwrap() == bomb, "{coding}");
        }
    });
}

/// Members without content cost their sender what they are worth.
#[test]
fn endless_empty_members() {
    run(async {
        let empty = pack("gzip", b"").await;
        let server = Server::each(move |mut stream, _| {
            let many = empty.repeat(1000);
            async move {
                request(&mut stream).await;
                let mut more = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n").await;
                while more.is_ok() {
                    more = stream.write_all(&many).await;
                }
            }
        })
        .await;
        let limits = Limits { response_bytes: 128 << 10, ..Limits::default() };
        assert_eq!(ends_with(&server, limits).await, Code::Limit);
    });
}
