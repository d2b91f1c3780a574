//! What passes between a server and the client of a call, in both eras.

mod support;

use policy::{Boundary, Limits};
use process::ProcessSettings;
use sandbox::{Code, Operation, Request};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use support::{Ear, Server, ask, pool, pool_with, run, tool, value};

fn legacy() -> Server {
    Server::new("honest.py", &[])
}

fn modern() -> Server {
    Server::new("honest.py", &["modern"])
}

#[tokio::test]
async fn both_eras_show_who_they_are_and_serve() {
    for (server, name) in [(legacy(), "legacy"), (modern(), "modern")] {
        let (pool, deployment) = (pool(), server.deploy());
        let seed = pool.seed(&deployment).await.unwrap_or_else(|failure| panic!("{name}: {failure}"));
        let surface: Value = serde_json::from_str(seed.surface().get()).unwrap();
        assert_eq!(surface["name"], name);
        assert_eq!(surface["tools"], json!([{ "name": "run", "inputSchema": { "type": "object" } }]));
        assert_eq!(run(&pool, &deployment, json!({ "a": [1, "ä"] })).await, Ok(json!({ "a": [1, "ä"] })), "{name}");
    }
}

#[tokio::test]
async fn questions_reach_the_client_and_answers_come_back() {
    let (pool, deployment) = (pool(), legacy().deploy());
    for method in ["sampling/createMessage", "elicitation/create", "roots/list"] {
        let ear = Ear::named("alice");
        let request = tool("run", &json!({ "do": "ask", "method": method }));
        let answer = ask(&pool, &deployment, &request, &ear).await;
        assert_eq!(value(&answer.outcome.unwrap())["result"], json!({ "from": "alice" }));
        assert_eq!(answer.receipt.host_calls, 1);
        let asked = json!({ "asks": [{ "key": "input-1", "method": method, "params": { "messages": [] } }] });
        assert_eq!(*ear.calls.lock().unwrap(), [("ask".to_owned(), asked)]);
    }
    let unknown = run(&pool, &deployment, json!({ "do": "ask", "method": "secrets/read" })).await.unwrap();
    assert_eq!(unknown["error"]["code"], -32601);
}

#[tokio::test]
async fn a_server_of_the_newest_revision_asks_in_rounds() {
    let (pool, deployment) = (pool(), modern().deploy());
    let ear = Ear::named("alice");
    let answer = ask(&pool, &deployment, &tool("run", &json!({ "do": "input" })), &ear).await;
    let given = value(&answer.outcome.unwrap());
    assert_eq!(given, json!({ "state": "one two", "answers": { "second": { "from": "alice" } } }));
    let keys: Vec<_> = ear.calls.lock().unwrap().iter().map(|(_, meta)| meta["asks"][0]["key"].clone()).collect();
    assert_eq!(keys, ["first", "2/second"]);
}

#[tokio::test]
async fn log_progress_and_changes_are_told() {
    let (pool, deployment) = (pool(), legacy().deploy());
    let ear = Ear::named("alice");
    for what in ["log", "progress", "updated", "changed"] {
        let answer = ask(&pool, &deployment, &tool("run", &json!({ "do": what })), &ear).await;
        assert_eq!(value(&answer.outcome.unwrap()), "done", "{what}");
    }
    let mut log = ear.log.lock().unwrap().clone();
    log.sort();
    let line = |level: &str, text: &str| (level.to_owned(), text.to_owned());
    assert_eq!(log, [line("info", "on stderr"), line("warning", r#"me: {"a":1}"#)]);
    assert_eq!(*ear.progress.lock().unwrap(), [json!({ "progress": 1.0, "total": 2.0, "message": "half" })]);
    let told = |meta: Value| ("notify".to_owned(), meta);
    let expected = [told(json!({ "what": "resource", "uri": "file:///a" })), told(json!({ "what": "tools" }))];
    assert_eq!(*ear.calls.lock().unwrap(), expected);
}

/// It tells only who has asked to be told.
#[tokio::test]
async fn a_server_of_the_newest_revision_tells_of_changes() {
    let (pool, deployment) = (pool(), modern().deploy());
    let ear = Ear::named("alice");
    let answer = ask(&pool, &deployment, &tool("run", &json!({ "do": "changed" })), &ear).await;
    assert_eq!(value(&answer.outcome.unwrap()), "done");
    assert_eq!(*ear.calls.lock().unwrap(), [("notify".to_owned(), json!({ "what": "tools" }))]);
}

#[tokio::test]
async fn a_server_in_node_serves_as_well() {
    let Some(server) = Server::node("echo.mjs", &[]) else { return };
    assert_eq!(run(&pool(), &server.deploy(), json!({ "a": 1 })).await, Ok(json!({ "a": 1 })));
}

#[tokio::test]
async fn who_goes_away_has_the_call_cancelled_and_the_others_go_on() {
    let (pool, deployment) = (pool(), legacy().deploy());
    let before = run(&pool, &deployment, json!({ "do": "cancelled" })).await.unwrap();
    let leaving = tokio::spawn({
        let (pool, deployment) = (pool.clone(), deployment.clone());
        async move { run(&pool, &deployment, json!({ "do": "wait" })).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    leaving.abort();
    assert!(leaving.await.is_err_and(|error| error.is_cancelled()));
    let until = async {
        loop {
            let now = run(&pool, &deployment, json!({ "do": "cancelled" })).await.unwrap();
            assert_eq!(now["pid"], before["pid"], "it is the same process");
            if now["cancelled"] == 1 {
                return;
            }
        }
    };
    tokio::time::timeout(support::PATIENCE, until).await.expect("it is told");
}

/// Two strangers in one process: a question that might be for the other is for nobody.
#[tokio::test]
async fn a_question_is_never_put_to_a_stranger() {
    let (pool, deployment) = (pool(), legacy().deploy());
    let (alice, bob) = (Ear::named("alice"), Ear::named("bob"));
    let of = |session: &str, input: Value| Request { session: Some(session.to_owned()), ..tool("run", &input) };
    let resting = of("bob", json!({ "do": "sleep", "for": 3 }));
    let asking = of("alice", json!({ "do": "slow_ask", "after": 1 }));
    run(&pool, &deployment, json!({})).await.unwrap();
    let (rested, asked) =
        tokio::join!(ask(&pool, &deployment, &resting, &bob), ask(&pool, &deployment, &asking, &alice));
    assert_eq!(value(&rested.outcome.unwrap()), "awake");
    assert_eq!(value(&asked.outcome.unwrap())["error"]["code"], -32601);
    assert_eq!((alice.operations(), bob.operations()), (vec![], vec![]));
    // Alone, or among calls of its own session, it is heard.
    let also = of("alice", json!({ "do": "sleep", "for": 3 }));
    let (_, asked) = tokio::join!(ask(&pool, &deployment, &also, &alice), ask(&pool, &deployment, &asking, &alice));
    assert_eq!(value(&asked.outcome.unwrap())["result"], json!({ "from": "alice" }));
}

#[tokio::test]
async fn little_is_seen_from_inside() {
    let mut server = legacy();
    server.environment.insert("TOKEN".to_owned(), "given".to_owned());
    let seen = run(&pool(), &server.deploy(), json!({ "do": "look" })).await.unwrap();
    assert_eq!(seen["environment"], json!(["HOME", "LANG", "PATH", "TMPDIR", "TOKEN"]));
    assert_eq!((&seen["folder"], &seen["home"]), (&json!("/app"), &json!([])));
    assert_eq!(
        (&seen["app_writable"], &seen["tmp_writable"], &seen["home_writable"]),
        (&json!(false), &json!(true), &json!(true))
    );
    let root: Vec<_> = seen["root"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(!root.contains(&"root") && !root.contains(&"sys") && root.contains(&"app"), "{root:?}");
    assert_ne!(seen["user"], 0);
    let pids = seen["pids"].as_array().unwrap().len();
    assert!(pids <= 2, "{pids} processes are seen");
    assert_eq!(seen["descriptors"], 3);
}

/// Sessions have processes of their own, and the next one is there before it is wanted.
#[tokio::test]
async fn sessions_find_a_program_that_waits() {
    let (pool, deployment) = (pool(), legacy().boundary(Boundary::Session).deploy());
    let of = |session: String| Request { session: Some(session), ..tool("run", &json!({ "do": "pid" })) };
    let mut pids = std::collections::HashSet::new();
    for session in 0..4 {
        let request = of(session.to_string());
        for _ in 0..2 {
            let answer = ask(&pool, &deployment, &request, &Ear::named("me")).await;
            // All are the second process of their own world.
            assert!(value(&answer.outcome.unwrap()).is_u64());
        }
        let programs = || {
            let all = support::processes::below(std::process::id()).into_iter();
            all.filter(|(_, depth)| *depth == 3).map(|(pid, _)| pid).collect::<Vec<_>>()
        };
        let waits = async {
            while programs().len() < session + 2 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(support::PATIENCE, waits).await.expect("one waits beside those in use");
        pids.extend(programs());
    }
    assert!(pids.len() >= 5, "{} programs", pids.len());
    drop((pool, deployment));
    support::until_nothing_is_left().await;
}

#[tokio::test]
async fn a_command_that_is_not_there_is_named() {
    let mut server = legacy();
    server.command = vec!["nobody-has-this".to_owned()];
    let failure = run(&pool(), &server.deploy(), json!({})).await.unwrap_err();
    assert_eq!(failure.code, Code::InitFailed);
    assert!(failure.message.contains("nobody-has-this"), "{failure}");
}

#[tokio::test]
async fn modules_are_for_another_wall() {
    let mut deployment = Arc::into_inner(legacy().deploy()).unwrap();
    deployment.program =
        sandbox::Program::Module { source: bytes::Bytes::from_static(b"1"), file_name: "a.js".to_owned() };
    let failure = pool().seed(&Arc::new(deployment)).await.err().expect("it runs commands only");
    assert_eq!(failure.code, Code::InitFailed);
    assert!(failure.message.contains("no modules"), "{failure}");
}

#[tokio::test]
async fn a_resource_that_is_not_there_is_unknown() {
    let (pool, deployment) = (pool(), legacy().deploy());
    let request = Request {
        operation: Operation::Resource,
        name: "file:///nothing".to_owned(),
        input: bytes::Bytes::from_static(b"{}"),
        session: None,
    };
    let answer = ask(&pool, &deployment, &request, &Ear::named("me")).await;
    assert_eq!(answer.outcome.unwrap_err().code, Code::UnknownTool);
}

#[tokio::test]
async fn all_programs_together_have_so_much_memory_and_no_more() {
    let limits = Limits::default();
    let pool = pool_with(ProcessSettings { memory_mb: limits.memory_mb, ..ProcessSettings::default() });
    let deployment = legacy().boundary(Boundary::Session).limit(|own| own.memory_mb = limits.memory_mb).deploy();
    let of = |session: &str| Request { session: Some(session.to_owned()), ..tool("run", &json!({ "do": "pid" })) };
    let ear = Ear::named("nobody");
    assert!(ask(&pool, &deployment, &of("first"), &ear).await.outcome.is_ok());
    let second = ask(&pool, &deployment, &of("second"), &ear).await.outcome.expect_err("there is room for one");
    assert_eq!(second.code, Code::Busy, "{second}");
    assert!(ask(&pool, &deployment, &of("first"), &ear).await.outcome.is_ok(), "who is there stays");
}
