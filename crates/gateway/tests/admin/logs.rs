use crate::stage::{Seen, Stage, in_time, servers, whole};
use axum::body::{Body, Bytes};
use axum::response::Response;
use http_body_util::BodyExt;
use insta::assert_snapshot;
use registry::{Role, Scope, ToolLine};

const PATH: &str = "/admin/v1/tenants/acme/servers/prices/logs";

fn log(stage: &Stage, server: &str, text: &str) {
    let line = ToolLine {
        time: "2026-07-28T09:30:00.125Z".to_owned(),
        call: "call-1".to_owned(),
        level: "info".to_owned(),
        text: text.to_owned(),
    };
    stage.registry.logs().append("acme", server, &line);
}

/// Reads a stream piece by piece.
pub struct Reader(Body);

impl Reader {
    pub fn new(response: Response) -> Reader {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "application/x-ndjson");
        Reader(response.into_body())
    }

    /// The next line that has anything in it. None: the stream has ended.
    pub async fn next(&mut self) -> Option<Bytes> {
        loop {
            let frame = self.0.frame().await?.unwrap().into_data().unwrap();
            if !frame.trim_ascii().is_empty() {
                return Some(frame);
            }
        }
    }
}

fn texts(seen: &Seen) -> Vec<String> {
    let text = |line: &str| serde_json::from_str::<ToolLine>(line).unwrap().text;
    seen.text().lines().map(text).collect()
}

#[tokio::test]
async fn the_last_lines_are_read() {
    in_time(async {
        let stage = Stage::new().await;
        assert_eq!(stage.get(&stage.acme.call, PATH).await.text(), "");
        for text in ["one", "two", "three"] {
            log(&stage, "prices", text);
        }
        log(&stage, "stock", "elsewhere");
        let seen = stage.get(&stage.acme.call, PATH).await;
        assert_eq!(texts(&seen), ["one", "two", "three"]);
        assert_snapshot!(seen.text().lines().next().unwrap(), @r#"{"time":"2026-07-28T09:30:00.125Z","call":"call-1","level":"info","text":"one"}"#);
        assert_eq!(texts(&stage.get(&stage.acme.call, &format!("{PATH}?tail=2")).await), ["two", "three"]);
        assert_eq!(stage.get(&stage.acme.call, &format!("{PATH}?tail=0")).await.text(), "");
        assert_snapshot!(stage.get(&stage.acme.call, &format!("{PATH}?tail=10001")).await.shown(), @r#"
        400 {
          "error": {
            "code": "bad_query",
            "hint": null,
            "message": "`tail` of 10001 is above 10000"
          }
        }
        "#);
        assert_snapshot!(stage.get(&stage.acme.call, &format!("{PATH}?follow=yes")).await.shown(), @r#"
        400 {
          "error": {
            "code": "bad_query",
            "hint": null,
            "message": "the query is not what this route takes: follow: provided string was not `true` or `false`"
          }
        }
        "#);
    })
    .await;
}

#[tokio::test]
async fn a_log_is_followed_without_gap_or_repetition() {
    in_time(async {
        let stage = Stage::new().await;
        log(&stage, "prices", "before");
        let mut reader = Reader::new(stage.open(&stage.acme.call, "GET", &format!("{PATH}?follow=true"), None).await);
        assert!(reader.next().await.unwrap().ends_with(b"\"text\":\"before\"}\n"));
        for i in 0..100 {
            log(&stage, "stock", "elsewhere");
            log(&stage, "prices", &format!("line {i}"));
            let line = reader.next().await.unwrap();
            assert!(line.ends_with(format!("\"text\":\"line {i}\"}}\n").as_bytes()), "{line:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_reader_that_is_too_slow_is_told_so() {
    in_time(async {
        let stage = Stage::new().await;
        let mut reader = Reader::new(stage.open(&stage.acme.call, "GET", &format!("{PATH}?follow=true"), None).await);
        for i in 0..2000 {
            log(&stage, "prices", &format!("line {i}"));
        }
        let mut last = Bytes::new();
        let mut lost = false;
        while !last.ends_with(b"\"line 1999\"}\n") {
            last = reader.next().await.unwrap();
            lost |= last == "{\"lost\":true}\n";
        }
        assert!(lost);
    })
    .await;
}

#[tokio::test]
async fn following_ends_with_the_key_the_server_and_the_tenant() {
    in_time(async {
        let stage = Stage::new().await;
        let follow = async |key: &str, server: &str| {
            let path = format!("/admin/v1/tenants/acme/servers/{server}/logs?follow=true");
            Reader::new(stage.open(key, "GET", &path, None).await)
        };
        let (key, token) = stage.key(Some("acme"), Role::Call, servers(&["prices"]), None);
        let mut of_key = follow(token.expose(), "prices").await;
        let mut of_server = follow(&stage.acme.call, "prices").await;
        let mut of_tenant = follow(&stage.operator, "stock").await;

        stage.ask(&stage.acme.admin, "DELETE", &format!("/admin/v1/tenants/acme/keys/{}", key.id), None).await;
        assert_eq!(of_key.next().await, None);
        log(&stage, "prices", "still there");
        assert!(of_server.next().await.is_some(), "others go on");

        stage.ask(&stage.acme.admin, "DELETE", "/admin/v1/tenants/acme/servers/prices", None).await;
        assert_eq!(of_server.next().await, None);
        stage.ask(&stage.operator, "DELETE", "/admin/v1/tenants/acme", None).await;
        assert_eq!(of_tenant.next().await, None);
    })
    .await;
}

#[tokio::test]
async fn streams_are_counted_and_given_back() {
    in_time(async {
        let stage = Stage::new().await;
        let follow = async || stage.open(&stage.acme.call, "GET", &format!("{PATH}?follow=true"), None).await;
        let mut open = Vec::new();
        let refused = loop {
            let response = follow().await;
            if response.status() != 200 {
                break whole(response).await;
            }
            open.push(response);
            assert!(open.len() <= 64, "there is no end to them");
        };
        assert_snapshot!(refused.shown(), @r#"
        503 {
          "error": {
            "code": "busy",
            "hint": null,
            "message": "this tenant has too many streams open; close one"
          }
        }
        "#);
        assert!(refused.headers.contains_key("retry-after"));
        let (_, globex) = stage.key(Some("globex"), Role::Call, Scope::default(), None);
        let other = stage.open(globex.expose(), "GET", "/admin/v1/tenants/globex/calls?follow=true", None).await;
        assert_eq!(other.status(), 200, "another tenant has places of its own");

        drop(open);
        // A client that has gone away is noticed in its own time.
        while follow().await.status() != 200 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn following_ends_with_the_host() {
    in_time(async {
        let stage = Stage::new().await;
        let parts = gateway::Parts {
            registry: stage.registry.clone(),
            pools: Default::default(),
            settings: gateway::Settings::default(),
            reloader: None,
            traces: gateway::observe::Traces::off(),
            egress: None,
            authority: None,
            master_key: None,
            dev: true,
        };
        let running =
            gateway::start(parts, "127.0.0.1:0".parse().unwrap(), std::time::Duration::from_secs(30)).await.unwrap();
        let url = format!("http://{}{PATH}?follow=true", running.addr);
        let client = reqwest_client();
        let mut response = client.get(url).bearer_auth(&stage.acme.call).send().await.unwrap();
        log(&stage, "prices", "hello");
        assert!(response.chunk().await.unwrap().unwrap().ends_with(b"\"hello\"}\n"));
        let (rest, ()) = tokio::join!(response.chunk(), running.shutdown());
        assert_eq!(rest.unwrap(), None, "the stream ends in order, it is not cut off");
    })
    .await;
}

fn reqwest_client() -> reqwest::Client {
    // Several providers of cryptography are linked into the tests, so one must be named.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}
