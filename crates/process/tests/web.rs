//! Servers that speak MCP over HTTP inside of their jail: both kinds, all eras, and some that mean harm.

mod support;

use sandbox::{Code, Speaks};
use serde_json::{Value, json};
use support::{Ear, Server, ask, fails, pool, run, tool, until_nothing_is_left, value};

const PORT: u16 = 8080;

fn http() -> Speaks {
    Speaks::Http { port: PORT, path: "/mcp".to_owned() }
}

fn server(kind: &str) -> Server {
    let speaks = match kind {
        "old" | "elsewhere" => Speaks::Sse { port: PORT, path: "/sse".to_owned() },
        _ => http(),
    };
    Server { speaks, ..Server::new("web.py", &[kind]) }
}

const HONEST: [&str; 4] = ["json", "events", "modern", "old"];

#[tokio::test]
async fn every_kind_shows_who_it_is_and_serves() {
    for kind in HONEST {
        let (pool, deployment) = (pool(), server(kind).deploy());
        let seed = pool.seed(&deployment).await.unwrap_or_else(|failure| panic!("{kind}: {failure}"));
        let surface: Value = serde_json::from_str(seed.surface().get()).unwrap();
        assert_eq!(surface["name"], kind);
        let given = json!({ "a": [1, "ä"], "long": "x".repeat(300 << 10) });
        assert_eq!(run(&pool, &deployment, given.clone()).await, Ok(given), "{kind}");
        assert_eq!(run(&pool, &deployment, json!({ "do": "missing" })).await, Ok(json!([])), "{kind}: headers");
        drop((seed, pool, deployment));
        until_nothing_is_left().await;
    }
}

#[tokio::test]
async fn a_server_in_node_that_listens_on_localhost_serves() {
    let Some(server) = Server::node("web.mjs", &[]) else { return };
    let server = Server { speaks: http(), ..server };
    assert_eq!(run(&pool(), &server.deploy(), json!({ "a": 1 })).await, Ok(json!({ "a": 1 })));
}

/// On the stream of the call, on the one beside it, or on the only one there is.
#[tokio::test]
async fn questions_news_and_talk_reach_the_client() {
    for kind in ["json", "events", "old"] {
        let (pool, deployment) = (pool(), server(kind).deploy());
        let ear = Ear::named("alice");
        let answer = ask(&pool, &deployment, &tool("run", &json!({ "do": "ask" })), &ear).await;
        let outcome = answer.outcome.unwrap_or_else(|failure| panic!("{kind}: {failure}"));
        assert_eq!(value(&outcome)["result"], json!({ "from": "alice" }), "{kind}");
        let answer = ask(&pool, &deployment, &tool("run", &json!({ "do": "changed" })), &ear).await;
        assert_eq!(value(&answer.outcome.unwrap()), "done", "{kind}");
        assert_eq!(ear.operations(), ["ask", "notify"], "{kind}");
        if kind == "events" {
            let answer = ask(&pool, &deployment, &tool("run", &json!({ "do": "tell" })), &ear).await;
            assert_eq!(value(&answer.outcome.unwrap()), "done");
            assert_eq!(*ear.progress.lock().unwrap(), [json!({ "progress": 1.0 })]);
            assert!(ear.log.lock().unwrap().contains(&("warning".to_owned(), "told".to_owned())));
        }
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_taken_up_again() {
    assert_eq!(run(&pool(), &server("events").deploy(), json!({ "do": "resume" })).await, Ok(json!("resumed")));
}

#[tokio::test]
async fn who_goes_away_leaves_the_others_alone() {
    let (pool, deployment) = (pool(), server("json").deploy());
    let count = || run(&pool, &deployment, json!({ "do": "count" }));
    assert_eq!(count().await, Ok(json!(1)));
    let leaving = run(&pool, &deployment, json!({ "do": "sleep" }));
    assert!(tokio::time::timeout(std::time::Duration::from_millis(300), leaving).await.is_err());
    assert_eq!(count().await, Ok(json!(2)), "it is the same process");
}

#[tokio::test]
async fn what_has_no_end_is_not_read_to_its_end() {
    for (kind, said) in [
        ("endless_event", "a message of more than"),
        ("endless_body", "a message of more than"),
        ("comments", "fills its stream"),
        ("strange_kinds", "fills its stream"),
    ] {
        let failure = fails(server(kind)).await;
        assert_eq!(failure.code, Code::ProtocolViolation, "{kind}: {failure}");
        assert!(failure.message.contains(said), "{kind}: {failure}");
    }
    let failure = fails(server("endless_headers")).await;
    assert_eq!(failure.code, Code::ToolError, "{failure}");
    assert!(failure.message.contains("does not answer"), "{failure}");
}

#[tokio::test]
async fn an_answer_that_is_none_is_a_failure_of_its_call_alone() {
    for (kind, said) in [
        ("redirect", "nobody follows"),
        ("other_id", "without one"),
        ("nothing", "without one"),
        ("packed", "packs its answers"),
    ] {
        let (pool, deployment) = (pool(), server(kind).deploy());
        for _ in 0..2 {
            let failure = run(&pool, &deployment, json!({})).await.expect_err("it means harm");
            assert_eq!(failure.code, Code::ToolError, "{kind}: {failure}");
            assert!(failure.message.contains(said), "{kind}: {failure}");
        }
    }
}

#[tokio::test]
async fn who_is_no_use_any_more_is_ended() {
    let failure = fails(server("forgets")).await;
    assert_eq!(failure.code, Code::ProtocolViolation, "{failure}");
    assert!(failure.message.contains("forgotten its session"), "{failure}");
    let failure = fails(server("dies")).await;
    assert_eq!(failure.code, Code::Crashed, "{failure}");
    assert!(failure.message.contains("exit 7"), "{failure}");
}

#[tokio::test]
async fn a_server_that_cannot_be_spoken_to_does_not_start() {
    let failure = fails(server("never").limit(|limits| limits.init_time_ms = 1500)).await;
    assert_eq!(failure.code, Code::InitLimit, "{failure}");
    let failure = fails(server("elsewhere")).await;
    assert_eq!(failure.code, Code::InitFailed, "{failure}");
    assert!(failure.message.contains("none of its own"), "{failure}");
    let wrong = Speaks::Http { port: PORT, path: "/other".to_owned() };
    let failure = fails(Server { speaks: wrong, ..server("old") }).await;
    assert_eq!(failure.code, Code::InitFailed, "{failure}");
    let failure = fails(Server { speaks: Speaks::Sse { port: PORT, path: "sse".to_owned() }, ..server("old") }).await;
    assert_eq!(failure.code, Code::InitFailed, "{failure}");
}
