use crate::logs::Reader;
use crate::stage::{Stage, in_time, servers};
use insta::assert_snapshot;
use registry::{AuditEvent, CallEvent, Role, token_hash};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const PATH: &str = "/admin/v1/tenants/acme/calls";

fn call(stage: &Stage, tenant: &str, server: &str, caller: &str, name: &str) {
    stage.registry.audit().append(&event(tenant, server, caller, name)).unwrap();
}

fn event(tenant: &str, server: &str, caller: &str, name: &str) -> AuditEvent {
    let [tenant, server, caller, name] = [tenant, server, caller, name].map(str::to_owned);
    let (method, outcome) = ("tools/call".to_owned(), if name == "bad" { "tool_error" } else { "ok" }.to_owned());
    AuditEvent::Call(CallEvent { tenant, server, caller, name, method, outcome, ..CallEvent::default() })
}

fn id(stage: &Stage, token: &str) -> String {
    stage.registry.directory().keys[&token_hash(token)].id.clone()
}

fn names(page: &Value) -> Vec<&str> {
    page["calls"].as_array().unwrap().iter().map(|call| call["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn calls_are_listed_newest_first() {
    in_time(async {
        let stage = Stage::new().await;
        for (tenant, server, name) in [
            ("acme", "prices", "one"),
            ("globex", "vault", "theirs"),
            ("acme", "stock", "two"),
            ("acme", "prices", "bad"),
        ] {
            call(&stage, tenant, server, "somebody", name);
        }
        let seen = stage.get(&stage.acme.admin, PATH).await;
        assert_eq!(names(&seen.json()), ["bad", "two", "one"]);
        let list = async |query: &str| stage.get(&stage.acme.admin, &format!("{PATH}?{query}")).await;
        assert_snapshot!(list("limit=1&outcome=tool_error").await.shown(), @r#"
        200 {
          "calls": [
            {
              "arguments_sha256": "",
              "boundary": "",
              "caller": "somebody",
              "cpu_limit_ms": 0,
              "cpu_us": 0,
              "deployment": "[deployment]",
              "hash": "[hash]",
              "host_calls": 0,
              "masked": 0,
              "memory_limit_mb": 0,
              "method": "tools/call",
              "name": "bad",
              "outcome": "tool_error",
              "peak_memory_kb": 0,
              "server": "prices",
              "tenant": "acme",
              "time": "[time]",
              "time_limit_ms": 0,
              "time_us": 0,
              "wait_us": 0,
              "wall": ""
            }
          ],
          "next": null
        }
        "#);
        assert_eq!(names(&list("server=prices").await.json()), ["bad", "one"]);
        assert_eq!(names(&list("outcome=ok").await.json()), ["two", "one"]);
        assert_eq!(names(&list("server=prices&outcome=tool_error").await.json()), ["bad"]);
        assert_eq!(list("server=nothing").await.json()["calls"], json!([]));
        assert_eq!(list("cursor=5").await.code(), "bad_query");
        assert_eq!(list("since=5").await.code(), "bad_query");
        let fields: BTreeSet<_> = seen.json()["calls"][0].as_object().unwrap().keys().cloned().collect();
        assert!(!fields.contains("seq") && !fields.contains("prev"), "numbers of lines tell how busy others are");
        assert!(fields.contains("hash") && fields.contains("time"));
    })
    .await;
}

#[tokio::test]
async fn a_cursor_is_worth_nothing_to_a_new_tenant_of_the_same_name() {
    in_time(async {
        let stage = Stage::new().await;
        for i in 0..5 {
            call(&stage, "acme", "prices", "somebody", &format!("call-{i}"));
        }
        let page = stage.get(&stage.acme.admin, &format!("{PATH}?limit=2")).await.json();
        let next = page["next"].as_str().expect("there is more");
        let actor = registry::Actor("key-test".to_owned());
        stage.registry.delete_tenant(&actor, "acme").unwrap();
        let made = stage.registry.create_tenant(&actor, "acme").unwrap();
        let list = async |query: &str| stage.get(made.admin_key.expose(), &format!("{PATH}?{query}")).await;
        assert_eq!(list(&format!("cursor={next}")).await.code(), "bad_query");
        assert_eq!(list("limit=1000").await.json()["calls"], json!([]));
    })
    .await;
}

#[tokio::test]
async fn pages_of_calls_do_not_tell_how_busy_others_are() {
    in_time(async {
        let stage = Stage::new().await;
        for i in 0..5 {
            call(&stage, "acme", "prices", "somebody", &format!("call-{i}"));
            call(&stage, "globex", "vault", "somebody", "theirs");
        }
        let mut seen = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = stage.get(&stage.acme.admin, &format!("{PATH}?limit=2{cursor}")).await.json();
            seen.extend(names(&page).into_iter().map(str::to_owned));
            let Some(next) = page["next"].as_str() else { break };
            assert!(next.parse::<u64>().is_err(), "{next}");
            let theirs = format!("/admin/v1/tenants/globex/calls?cursor={next}");
            assert_eq!(stage.get(&stage.globex.admin, &theirs).await.code(), "bad_query", "a cursor is its tenant's");
            cursor = format!("&cursor={next}");
        }
        assert_eq!(seen, ["call-4", "call-3", "call-2", "call-1", "call-0"]);
        let all = stage.get(&stage.acme.admin, &format!("{PATH}?limit=5")).await.json();
        assert_eq!(all["next"], json!(null), "a page that holds all is the last");
    })
    .await;
}

#[tokio::test]
async fn a_call_key_sees_its_own_calls_and_a_scoped_one_those_of_its_servers() {
    in_time(async {
        let stage = Stage::new().await;
        let own = id(&stage, &stage.acme.call);
        call(&stage, "acme", "prices", &own, "mine");
        call(&stage, "acme", "prices", "somebody", "not mine");
        for i in 0..30 {
            call(&stage, "acme", "stock", "somebody", &format!("stock {i}"));
        }
        assert_eq!(names(&stage.get(&stage.acme.call, PATH).await.json()), ["mine"]);
        assert_eq!(
            stage.get(&stage.acme.deploy, &format!("{PATH}?limit=1000")).await.json()["calls"]
                .as_array()
                .unwrap()
                .len(),
            32
        );

        let (_, scoped) = stage.key(Some("acme"), Role::Admin, servers(&["prices"]), None);
        let page = stage.get(scoped.expose(), &format!("{PATH}?limit=10")).await.json();
        assert_eq!(names(&page), ["not mine", "mine"], "found behind many of another server");
        assert_eq!(page["next"], json!(null));
        assert_eq!(stage.get(scoped.expose(), &format!("{PATH}?server=stock")).await.status, 404);
    })
    .await;
}

#[tokio::test]
async fn calls_are_followed() {
    in_time(async {
        let stage = Stage::new().await;
        let own = id(&stage, &stage.acme.call);
        for i in 0..3 {
            call(&stage, "acme", "prices", &own, &format!("past {i}"));
        }
        let path = format!("{PATH}?follow=true&limit=2");
        let mut all = Reader::new(stage.open(&stage.acme.admin, "GET", &path, None).await);
        let mut mine = Reader::new(stage.open(&stage.acme.call, "GET", &path, None).await);
        let next = async |reader: &mut Reader| -> String {
            let line: Value = serde_json::from_slice(&reader.next().await.unwrap()).unwrap();
            line["name"].as_str().unwrap().to_owned()
        };
        for reader in [&mut all, &mut mine] {
            assert_eq!(next(reader).await, "past 1", "oldest first");
            assert_eq!(next(reader).await, "past 2");
        }
        call(&stage, "globex", "vault", "somebody", "theirs");
        call(&stage, "acme", "stock", "somebody", "of somebody");
        call(&stage, "acme", "prices", &own, "mine");
        assert_eq!(next(&mut all).await, "of somebody");
        assert_eq!(next(&mut all).await, "mine");
        assert_eq!(next(&mut mine).await, "mine");
        let both = stage.get(&stage.acme.admin, &format!("{PATH}?follow=true&cursor=x")).await;
        assert_eq!(both.code(), "bad_query");
    })
    .await;
}

#[tokio::test]
async fn a_follower_that_lagged_is_told_so_and_goes_on() {
    in_time(async {
        let stage = Stage::new().await;
        let mut reader = Reader::new(stage.open(&stage.acme.admin, "GET", &format!("{PATH}?follow=true"), None).await);
        // All of it happens before the follower has its turn.
        for i in 0..5000 {
            call(&stage, "acme", "prices", "somebody", &format!("{i}"));
        }
        let mut lost = false;
        loop {
            let line: Value = serde_json::from_slice(&reader.next().await.unwrap()).unwrap();
            lost |= line["lost"] == true;
            if line["name"] == "4999" {
                break;
            }
        }
        assert!(lost);
    })
    .await;
}

/// What a tenant recorded may be large; a page of it is not.
#[tokio::test]
async fn a_page_of_calls_is_bounded_in_bytes() {
    in_time(async {
        let stage = Stage::new().await;
        let arguments = serde_json::value::to_raw_value(&"x".repeat(900 << 10)).unwrap();
        for i in 0..15 {
            let AuditEvent::Call(event) = event("acme", "prices", "somebody", &format!("{i}")) else { unreachable!() };
            let event = CallEvent { arguments: Some(arguments.clone()), ..event };
            stage.registry.audit().append(&AuditEvent::Call(event)).unwrap();
        }
        let first = stage.get(&stage.acme.admin, &format!("{PATH}?limit=1000")).await;
        assert!(first.body.len() < 12 << 20, "{}", first.body.len());
        let first = first.json();
        let mut seen: Vec<_> = names(&first).into_iter().map(str::to_owned).collect();
        assert!(seen.len() < 15);
        let next = first["next"].as_str().unwrap();
        let rest = stage.get(&stage.acme.admin, &format!("{PATH}?limit=1000&cursor={next}")).await.json();
        seen.extend(names(&rest).into_iter().map(str::to_owned));
        assert_eq!(seen, (0..15).rev().map(|i| i.to_string()).collect::<Vec<_>>());
    })
    .await;
}

#[tokio::test]
async fn long_pages_are_whole() {
    in_time(async {
        let stage = Stage::new().await;
        for i in 0..130 {
            call(&stage, "acme", "prices", "somebody", &format!("{i}"));
        }
        for limit in [49, 50, 51, 100, 129, 130, 131] {
            let page = stage.get(&stage.acme.admin, &format!("{PATH}?limit={limit}")).await.json();
            assert_eq!(names(&page), (0..130).rev().take(limit).map(|i| i.to_string()).collect::<Vec<_>>());
            assert_eq!(page["next"].is_string(), limit < 130, "{limit}");
        }
    })
    .await;
}
