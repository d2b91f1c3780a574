//! Programs that know nothing but a proxy: tunnels, and TLS that the proxy speaks itself. On real sockets.

use crate::rig;

use egress::proxy::Authority;
use egress::{Budget, Code, Limits, Pass};
use rig::proxy::{Proxy, Secure, ask, bound, shake, until_closed};
use rig::*;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const GET: &str = "GET /x HTTP/1.1\r\nhost: a.example\r\n\r\n";

#[test]
fn a_tunnel_for_tls_with_its_name() {
    run(async {
        let secure = Secure::new().await;
        let port = secure.server.port;
        let proxy = Proxy::new(secure.visit(pass(&[port]), Limits::default()), None).await;
        let stream = proxy.tunnel(&secure.at("A.example")).await.unwrap();
        let mut stream = shake(stream, "a.example", secure.ours.root()).await.unwrap();
        for _ in 0..3 {
            let answer = ask(&mut stream, GET).await;
            assert!(answer.ends_with("HTTP/1.1 /x Some(\"a.example\") "), "{answer}");
        }
        stream.shutdown().await.unwrap();
        until_closed(&mut stream).await;
        assert_eq!(secure.server.names.lock().unwrap()[..], [Some("a.example".to_owned())]);
        let record = proxy.visit.records().remove(0);
        assert_eq!((record.method.as_str(), record.host.as_str(), record.port), ("CONNECT", "a.example", port));
        assert!(record.bytes_up > 300 && record.bytes_down > 500, "{record:?}");
        assert_eq!(proxy.visit.bytes().up, record.bytes_up);
        // The whole URL of TLS works too, some clients send it.
        let request = format!("GET https://{}/y HTTP/1.1\r\nhost: x\r\n\r\n", secure.at("a.example"));
        let answer = ask(&mut proxy.dial().await, &request).await;
        assert!(answer.contains("HTTP/1.1 /y Some"), "{answer}");
        assert_eq!(proxy.heard(), []);
    });
}

#[test]
fn tunnels_that_are_refused() {
    run(async {
        let secure = Secure::new().await;
        let port = secure.server.port;
        let names =
            Names::default().say("inner.example", &[&["10.0.0.1"]]).say("mixed.example", &[&["93.184.216.34", "::1"]]);
        let settings =
            egress::Settings { resolver: Arc::new(names), extra_roots: vec![secure.ours.root()], ..Default::default() };
        let rules = rules(&[
            &format!("https://b.example:{port}/v1/"),
            &format!("GET https://c.example:{port}"),
            &format!("https://bound.example:{port}"),
            &format!("https://127.0.0.1:{port}"),
            "inner.example",
            "mixed.example",
            &format!("http://plain.example:{port}"),
        ]);
        let door = egress::Door::dev(vec![port], settings).unwrap();
        let proxy = Proxy::new(door.visit(Pass::new("t", "d", rules.clone())), None).await;
        // To no host: a secret that was stored elsewhere would come back unseen.
        let unbound_rules = rules.clone();
        let bound = bound(Pass::new("t", "d", rules), &format!("bound.example:{port}"));
        let without = Proxy::new(door.visit(bound), None).await;
        for authority in [secure.at("bound.example"), "inner.example:443".to_owned()] {
            let answer = without.tunnel(&authority).await.expect_err(&authority);
            assert!(answer.contains("a secret could come back from there"), "{authority}: {answer}");
        }
        // Nor for a server that is bound to nothing, where another one's secret may have been stored.
        struct Others(u16);
        impl egress::Secrets for Others {
            fn get<'a>(
                &'a self,
                _: &'a egress::Use<'a>,
            ) -> futures_util::future::BoxFuture<'a, Result<Option<secrecy::SecretString>, egress::Denied>>
            {
                Box::pin(async { Ok(None) })
            }
            fn known<'a>(
                &'a self,
                _: &'a str,
            ) -> futures_util::future::BoxFuture<'a, Result<Option<secrecy::SecretString>, egress::Denied>>
            {
                Box::pin(async { Ok(None) })
            }
            fn keeps(&self, origin: &egress::Origin) -> bool {
                origin.port == self.0
            }
        }
        let others = Arc::new(egress::Bound::new(egress::Bindings::default(), Arc::new(Others(port))));
        let unbound = Pass { credentials: others, ..Pass::new("t", "d", unbound_rules) };
        let unbound = Proxy::new(door.visit(unbound), None).await;
        let answer = unbound.tunnel(&secure.at("bound.example")).await.expect_err("a tunnel");
        assert!(answer.contains("a secret could come back from there"), "{answer}");
        let answer = unbound.tunnel("inner.example:443").await.expect_err("a private address");
        assert!(answer.contains("private network"), "no secret goes there: {answer}");
        for (authority, status, words) in [
            (secure.at("a.example"), "403", "no rule allows https://a.example"),
            (secure.at("plain.example"), "403", "no rule allows https://plain.example"),
            ("b.example:443".to_owned(), "403", "no rule allows"),
            (secure.at("b.example"), "403", "rules allow only some of its paths or methods"),
            (secure.at("c.example"), "403", "rules allow only some of its paths or methods"),
            (secure.at("127.0.0.1"), "403", "an address is none"),
            ("inner.example:443".to_owned(), "403", "never reached: private network"),
            ("mixed.example:443".to_owned(), "403", "never reached: loopback"),
            ("u@a.example:443".to_owned(), "400", ""),
            ("a.example:0".to_owned(), "400", ""),
            ("a.example:99999".to_owned(), "400", ""),
        ] {
            let answer = proxy.tunnel(&authority).await.expect_err(&authority);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(words),
                "{authority}: {answer}"
            );
            let heard = proxy.heard();
            assert_eq!(heard.len(), usize::from(status == "403"), "{authority}: {heard:?}");
            assert!(heard.iter().all(|(host, _, why)| authority.starts_with(host.as_str()) && why.contains(words)));
        }
        assert_eq!(secure.server.connections.load(Ordering::SeqCst), 0);
        assert!(proxy.visit.records().iter().all(|record| !record.allowed));
    });
}

#[test]
fn a_tunnel_for_something_else_is_closed() {
    run(async {
        // A server that tells every byte that it gets.
        let bytes = Arc::new(AtomicU64::new(0));
        let count = bytes.clone();
        let server = Server::each(move |mut stream, _| {
            let count = count.clone();
            async move {
                let mut buffer = [0; 1024];
                while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                    count.fetch_add(read as u64, Ordering::SeqCst);
                }
            }
        })
        .await;
        let limits = Limits { header_ms: 2000, ..Limits::default() };
        let proxy = Proxy::new(visit(&[server.port], limits), None).await;
        let authority = format!("a.example:{}", server.port);
        for (said, words) in [
            (&b"GET / HTTP/1.1\r\nhost: a.example\r\n\r\n"[..], "speaks no TLS"),
            (b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00", "something else than a hello"),
            (b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", "broken"),
            (b"\x80\x2e\x01\x00\x02", "speaks no TLS"),
        ] {
            let mut stream = proxy.tunnel(&authority).await.unwrap();
            stream.write_all(said).await.unwrap();
            assert_eq!(until_closed(&mut stream).await, "");
            let heard = proxy.heard();
            assert!(heard[0].0 == "a.example" && heard[0].2.contains(words), "{heard:?}");
        }
        let root = tls::Authority::new().root();
        for (name, words) in
            [("b.example", "asks for `b.example`"), ("10.0.0.1", "asks for none"), ("x.a.example", "asks for")]
        {
            let stream = proxy.tunnel(&authority).await.unwrap();
            assert!(shake(stream, name, root.clone()).await.is_err());
            assert!(proxy.heard()[0].2.contains(words), "{name}");
        }
        // Half a hello, and then nothing.
        let mut stream = proxy.tunnel(&authority).await.unwrap();
        stream.write_all(b"\x16\x03\x01").await.unwrap();
        assert_eq!(until_closed(&mut stream).await, "");
        assert_eq!(bytes.load(Ordering::SeqCst), 0, "nothing of it came through");
        let failed: Vec<_> = proxy.visit.records().iter().map(|record| record.failed).collect();
        assert_eq!(failed[..7], [Some("egress_denied"); 7]);
        assert_eq!(failed[7], Some("egress_timeout"));
    });
}

#[test]
fn the_proxy_speaks_for_hosts_that_it_has_to_see() {
    run(async {
        let secure = Secure::new().await;
        let port = secure.server.port;
        let rules = rules(&[&format!("https://a.example:{port}"), &format!("GET https://b.example:{port}/v1/")]);
        let pass = bound(Pass::new("t", "d", rules), &format!("a.example:{port}"));
        let authority = Arc::new(Authority::new().unwrap());
        let root = CertificateDer::from_pem_slice(authority.certificate_pem().as_bytes()).unwrap();
        let proxy = Proxy::new(secure.visit(pass, Limits::default()), Some(authority)).await;
        let stream = proxy.tunnel(&secure.at("a.example")).await.unwrap();
        let mut stream = shake(stream, "a.example", root.clone()).await.unwrap();
        let here = secure.at("a.example");
        for _ in 0..2 {
            let answer = ask(&mut stream, &format!("GET /x HTTP/1.1\r\nhost: {here}\r\n\r\n")).await;
            assert!(answer.ends_with(&format!("HTTP/1.1 /x Some(\"{here}\") ")), "{answer}");
        }
        assert_eq!(proxy.visit.credentials(), ["KEY"]);
        let answer =
            ask(&mut stream, &format!("POST /x HTTP/1.1\r\nhost: {here}\r\ncontent-length: 3\r\n\r\nabc")).await;
        assert!(answer.ends_with(" abc"), "{answer}");
        // Another host behind the same name is none of its business.
        for (request, status) in [
            (format!("GET /x HTTP/1.1\r\nhost: b.example:{port}\r\n\r\n"), "421"),
            (format!("GET https://b.example:{port}/ HTTP/1.1\r\nhost: {here}\r\n\r\n"), "400"),
            (format!("CONNECT {here} HTTP/1.1\r\nhost: {here}\r\n\r\n"), "400"),
        ] {
            let stream = proxy.tunnel(&here).await.unwrap();
            let mut stream = shake(stream, "a.example", root.clone()).await.unwrap();
            let answer = ask(&mut stream, &request).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        }
        // What rules say of paths and methods holds inside.
        let there = secure.at("b.example");
        let stream = proxy.tunnel(&there).await.unwrap();
        let mut stream = shake(stream, "b.example", root.clone()).await.unwrap();
        for (request, status) in
            [("GET /v1/x", "200"), ("GET /v2/x", "403"), ("DELETE /v1/x", "403"), ("GET /v1/%2e%2e/x", "403")]
        {
            let answer = ask(&mut stream, &format!("{request} HTTP/1.1\r\nhost: {there}\r\n\r\n")).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        }
        // By the name of the tunnel, or not at all.
        let stream = proxy.tunnel(&there).await.unwrap();
        assert!(shake(stream, "a.example", root).await.is_err());
        // Nobody else takes the proxy for the host.
        let stream = proxy.tunnel(&there).await.unwrap();
        assert!(shake(stream, "b.example", secure.ours.root()).await.is_err());
    });
}

#[test]
fn behind_the_proxys_tls_the_server_has_to_prove_itself() {
    run(async {
        let (secure, stranger) = (Secure::new().await, tls::Authority::new());
        let port = secure.server.port;
        let authority = Arc::new(Authority::new().unwrap());
        let root = CertificateDer::from_pem_slice(authority.certificate_pem().as_bytes()).unwrap();
        let pass = bound(pass(&[port]), &format!("a.example:{port}"));
        let visit = tls::door(port, stranger.root(), Limits::default()).visit(pass);
        let proxy = Proxy::new(visit, Some(authority)).await;
        let here = secure.at("a.example");
        let mut stream = shake(proxy.tunnel(&here).await.unwrap(), "a.example", root).await.unwrap();
        let answer = ask(&mut stream, &format!("GET / HTTP/1.1\r\nhost: {here}\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("egress_tls"), "{answer}");
        assert!(secure.server.names.lock().unwrap().is_empty());
    });
}

/// Goes with the test.
struct File(std::path::PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Programs that people have: through a tunnel, and with the proxy's own certificate.
#[test]
fn real_clients() {
    const PYTHON: &str =
        "import sys, urllib.request as r; sys.stdout.write(r.urlopen(sys.argv[1], timeout=20).read().decode())";
    const NODE: &str = "const [url, port] = [new URL(process.argv[1]), process.argv[2]];
        const ask = require('http').request({ host: '127.0.0.1', port, method: 'CONNECT', path: url.host });
        ask.on('connect', (_, socket) => {
            const get = require('https').get(url, { socket, agent: false, servername: url.hostname }, (answer) => {
                answer.pipe(process.stdout);
                answer.on('end', () => process.exit(0));
            });
        }).end();";
    run(async {
        let secure = Secure::new().await;
        let port = secure.server.port;
        let name = format!("roots-{}.pem", std::process::id());
        let file = File(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
        let authority = Arc::new(Authority::new().unwrap());
        for (bound_too, pem) in [(false, secure.ours.pem()), (true, authority.certificate_pem())] {
            std::fs::write(&file.0, pem).unwrap();
            let pass = if bound_too { bound(pass(&[port]), &format!("a.example:{port}")) } else { pass(&[port]) };
            let proxy = Proxy::new(secure.visit(pass, Limits::default()), Some(authority.clone())).await;
            let (url, at) =
                (format!("https://{}/x", secure.at("a.example")), format!("http://127.0.0.1:{}", proxy.port));
            for (program, arguments) in [
                ("curl", vec!["-sS", "--max-time", "20", &url]),
                ("python3", vec!["-c", PYTHON, &url]),
                ("node", vec!["-e", NODE, &url, &proxy.port.to_string()]),
            ] {
                let mut command = tokio::process::Command::new(program);
                command.args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
                for name in ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"] {
                    command.env(name, &file.0);
                }
                command.env("https_proxy", &at).kill_on_drop(true).stdin(std::process::Stdio::null());
                match command.output().await {
                    Err(_) => eprintln!("SKIPPED: there is no {program} here"),
                    Ok(output) => {
                        let (out, errors) =
                            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
                        assert!(out.starts_with("HTTP/1.1 /x Some"), "{program}, bound: {bound_too}: {out} {errors}");
                        assert_eq!(proxy.visit.credentials().is_empty(), !bound_too);
                    }
                }
            }
        }
    });
}

#[test]
fn tunnels_end() {
    struct Purse(AtomicU64);
    impl Budget for Purse {
        fn spend(&self, bytes: u64) -> bool {
            self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(bytes)).is_ok()
        }

        fn computed(&self, _: u64) {}
    }
    run(async {
        let secure = Secure::new().await;
        let port = secure.server.port;
        let here = secure.at("a.example");
        // Nothing happens.
        let limits = Limits { tunnel_idle_ms: 2000, ..Limits::default() };
        let proxy = Proxy::new(secure.visit(pass(&[port]), limits), None).await;
        let stream = proxy.tunnel(&here).await.unwrap();
        let mut stream = shake(stream, "a.example", secure.ours.root()).await.unwrap();
        until_closed(&mut stream).await;
        assert_eq!(proxy.visit.records()[0].failed, Some(Code::Timeout.as_str()));
        // It takes too long in all, whatever happens.
        let limits = Limits { tunnel_ms: 2000, ..Limits::default() };
        let proxy = Proxy::new(secure.visit(pass(&[port]), limits), None).await;
        let stream = proxy.tunnel(&here).await.unwrap();
        let mut stream = shake(stream, "a.example", secure.ours.root()).await.unwrap();
        while stream.write_all(GET.as_bytes()).await.is_ok() && stream.read(&mut [0; 512]).await.is_ok_and(|n| n > 0) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(proxy.visit.records()[0].failed, Some(Code::Timeout.as_str()));
        // The quota is spent.
        let mut poor = pass(&[port]);
        poor.budget = Arc::new(Purse(AtomicU64::new(4000)));
        let proxy = Proxy::new(secure.visit(poor, Limits::default()), None).await;
        let stream = proxy.tunnel(&here).await.unwrap();
        let mut stream = shake(stream, "a.example", secure.ours.root()).await.unwrap();
        while stream.write_all(GET.as_bytes()).await.is_ok() && stream.read(&mut [0; 512]).await.is_ok_and(|n| n > 0) {}
        assert_eq!(proxy.visit.records()[0].failed, Some(Code::Limit.as_str()));
        // The visit is over.
        let proxy = Proxy::new(secure.visit(pass(&[port]), Limits::default()), None).await;
        let stream = proxy.tunnel(&here).await.unwrap();
        let mut stream = shake(stream, "a.example", secure.ours.root()).await.unwrap();
        let mut waiting = proxy.dial().await;
        ask(&mut stream, GET).await;
        proxy.visit.close();
        until_closed(&mut stream).await;
        assert_eq!(until_closed(&mut waiting).await, "");
    });
}
