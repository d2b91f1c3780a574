//! What the isolate wall does for honest servers, and how each limit speaks.

#[path = "support/mod.rs"]
mod support;

use policy::Boundary;
use sandbox::{Code, Operation, Program, Request, Speaks};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use support::{Kept, Server, call, in_session, pool, run, tool};

const COUNTER: &str = "let n = 0; export default { tools: { run: { run: () => ++n } } }";

#[tokio::test]
async fn a_call_has_a_result_and_a_receipt() {
    let pool = pool().await;
    let server = Server::new(include_str!("../../../examples/prices.js")).deploy();
    let kept = Kept::default();
    let answer = pool.call(&server, &tool("double_price", r#"{"price":45}"#), kept.host()).await;
    assert_eq!(answer.outcome.unwrap(), r#"{"doublePrice":90}"#);
    let receipt = serde_json::to_value(&answer.receipt).unwrap();
    assert_eq!(receipt["wall"], "isolate");
    assert_eq!(receipt["boundary"], "call");
    assert_eq!(receipt["jit"], false);
    assert_eq!(receipt["limits"]["cpu_ms"], 50);
    assert!(receipt["cpu_us"].as_u64().unwrap() > 0);
    let lines = kept.0.lock().unwrap();
    assert_eq!(lines.len(), 1);
    assert_eq!((lines[0].level.as_str(), lines[0].text.as_str()), ("info", "doubling 45"));
}

#[tokio::test]
async fn the_surface_is_what_the_code_shows() {
    let pool = pool().await;
    let server = Server::new(
        "export default { name: 's', tools: [{ name: 'a/b', description: 'd', input: { type: 'object' }, run() {} }],
           resources: { 'cfg://x': { read() {} }, 'cfg://{id}/y': { mimeType: 'text/plain', read() {} } },
           prompts: { hi: { arguments: [{ name: 'who' }], get() {} } } }",
    );
    let seed = pool.seed(&server.deploy()).await.unwrap();
    let surface: serde_json::Value = serde_json::from_str(seed.surface().get()).unwrap();
    assert_eq!(
        surface,
        serde_json::json!({
            "name": "s",
            "tools": [{ "name": "a/b", "description": "d", "inputSchema": { "type": "object" } }],
            "resources": [{ "uri": "cfg://x", "name": "cfg://x" }],
            "resourceTemplates": [{ "uriTemplate": "cfg://{id}/y", "name": "cfg://{id}/y", "mimeType": "text/plain" }],
            "prompts": [{ "name": "hi", "arguments": [{ "name": "who" }] }],
        })
    );
}

#[tokio::test]
async fn resources_and_prompts_answer() {
    let pool = pool().await;
    let server = Server::new(
        "export default { resources: { 'cfg://{id}/y': { read: ({ uri, variables }) => ({ uri, id: variables.id }) } },
           prompts: { hi: { get: ({ who }) => `hello ${who}` } } }",
    )
    .deploy();
    let ask = |operation, name: &str, input: &'static str| Request {
        operation,
        name: name.to_owned(),
        input: bytes::Bytes::from_static(input.as_bytes()),
        session: None,
    };
    let read = call(&pool, &server, &ask(Operation::Resource, "cfg://a%20b/y", "{}")).await;
    assert_eq!(read.outcome.unwrap(), r#"{"uri":"cfg://a%20b/y","id":"a b"}"#);
    let get = call(&pool, &server, &ask(Operation::Prompt, "hi", r#"{"who":"you"}"#)).await;
    assert_eq!(get.outcome.unwrap(), r#""hello you""#);
    let none = call(&pool, &server, &ask(Operation::Resource, "cfg://nothing", "{}")).await;
    assert_eq!(none.outcome.unwrap_err().code, Code::UnknownTool);
    let broken = call(&pool, &server, &ask(Operation::Resource, "cfg://%zz/y", "{}")).await;
    assert_eq!(broken.outcome.unwrap_err().code, Code::UnknownTool);
}

#[tokio::test]
async fn an_unhandled_rejection_reaches_the_log() {
    let pool = pool().await;
    let server =
        Server::new("Promise.reject(new Error('stray')); Promise.reject(1).catch(() => {}); return 1;").deploy();
    let kept = Kept::default();
    let answer = pool.call(&server, &tool("run", "{}"), kept.host()).await;
    assert_eq!(answer.outcome.unwrap(), "1");
    let lines = kept.0.lock().unwrap();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].text.contains("Error: stray") && lines[0].text.contains("server.js:1:16"), "{:?}", lines[0]);
}

#[tokio::test]
async fn a_library_that_is_no_worker_ends_the_start_quickly() {
    let mut carrier = support::carrier();
    carrier.library = Some("/nonexistent/libisolate_worker.so".into());
    let started = isolate::IsolateWall::start(isolate::IsolateSettings::new(carrier)).await;
    assert!(matches!(started, Err(isolate::WallError::Died(_))));
}

#[tokio::test]
async fn a_bare_script_is_a_server() {
    let pool = pool().await;
    let script = Server::new("const twice = input.price * 2;\nreturn { twice };").deploy();
    assert_eq!(run(&pool, &script, r#"{"price":4}"#).await.unwrap(), r#"{"twice":8}"#);
    // Without a return it still is one, and its loop is a call's and not an initialisation's.
    let spin = Server::new("while (true) {}").deploy();
    assert_eq!(run(&pool, &spin, "{}").await, Err(Code::CpuLimit));
}

#[tokio::test]
async fn every_boundary_shares_exactly_what_it_says() {
    let pool = pool().await;
    let counts = async |boundary, tenant: &str| {
        let server = Server::new(COUNTER).boundary(boundary).tenant(tenant).deploy();
        let mut seen = Vec::new();
        for session in [Some("a"), Some("a"), Some("b"), None, None] {
            let answer = call(&pool, &server, &in_session("run", "{}", session)).await;
            seen.push(String::from_utf8(answer.outcome.unwrap().to_vec()).unwrap().parse::<u32>().unwrap());
        }
        seen
    };
    assert_eq!(counts(Boundary::Call, "t").await, [1, 1, 1, 1, 1]);
    assert_eq!(counts(Boundary::Session, "t").await, [1, 2, 1, 1, 1]);
    assert_eq!(counts(Boundary::Server, "t").await, [1, 2, 3, 4, 5]);
    assert_eq!(counts(Boundary::Tenant, "t").await, [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn servers_of_one_tenant_share_a_process_but_no_globals() {
    let pool = pool().await;
    let source = "export default { tools: { run: { run: ({ set }) => { \
                    const seen = globalThis.left ?? null; globalThis.left = set; return seen; } } } }";
    let one = Server::new(source).boundary(Boundary::Tenant).tenant("t").deploy();
    let two = Server::new(source).boundary(Boundary::Tenant).tenant("t").deploy();
    assert_eq!(run(&pool, &one, r#"{"set":1}"#).await.unwrap(), "null");
    assert_eq!(run(&pool, &two, r#"{"set":2}"#).await.unwrap(), "null");
    assert_eq!(run(&pool, &one, r#"{"set":3}"#).await.unwrap(), "1");
    assert_eq!(run(&pool, &two, r#"{"set":4}"#).await.unwrap(), "2");
}

#[tokio::test]
async fn calls_in_one_compartment_run_side_by_side() {
    let pool = pool().await;
    let server = Server::new(
        "let waiting = []; export default { tools: { run: { async run({ last }) { \
           if (last) { for (const go of waiting) go(); return waiting.length; } \
           await new Promise((resolve) => waiting.push(resolve)); return 'released'; } } } }",
    )
    .boundary(Boundary::Server)
    .deploy();
    let first = run(&pool, &server, "{}");
    let second = run(&pool, &server, "{}");
    let last = async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        run(&pool, &server, r#"{"last":true}"#).await
    };
    let (first, second, last) = tokio::join!(first, second, last);
    assert_eq!(
        (first.unwrap(), second.unwrap(), last.unwrap()),
        (r#""released""#.into(), r#""released""#.into(), "2".into())
    );
}

#[tokio::test]
async fn in_a_shared_compartment_only_the_guilty_call_hears_of_its_limit() {
    let pool = pool().await;
    let server = Server::new(
        "export default { tools: { run: { async run({ spin }) { \
           if (spin) while (true); await new Promise((resolve) => setTimeout(resolve, 20000)); } } } }",
    )
    .boundary(Boundary::Server)
    .deploy();
    let innocent = run(&pool, &server, "{}");
    let guilty = async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        let guilty = run(&pool, &server, r#"{"spin":true}"#).await;
        // The innocent one is tried again in a new compartment; it need not be waited for.
        (guilty, tokio::time::Instant::now())
    };
    tokio::select! {
        _ = innocent => panic!("the innocent call ended with the guilty one"),
        (outcome, _) = guilty => assert_eq!(outcome, Err(Code::CpuLimit)),
    }
}

#[tokio::test]
async fn each_limit_has_its_code() {
    let pool = pool().await;
    let cases: &[(&str, &str, u64, Code)] = &[
        ("while (true);", "cpu_ms", 20, Code::CpuLimit),
        ("await new Promise(() => {});", "time_ms", 100, Code::TimeLimit),
        ("const a = []; for (;;) a.push(new Array(4096).fill(0.5));", "memory_mb", 16, Code::MemoryLimit),
        ("return 'x'.repeat(2000);", "result_kb", 1, Code::ResultLimit),
        ("for (let i = 0; i < 100; i++) console.log('x'.repeat(100));", "log_kb", 1, Code::LogLimit),
        ("for (;;) ctx.progress(1);", "log_kb", 1, Code::LogLimit),
        (
            "for (let i = 0; i < 9; i++) await fetch('https://example.com').catch(() => {});",
            "host_calls",
            8,
            Code::HostCallLimit,
        ),
    ];
    for (source, limit, value, code) in cases {
        let server = Server::new(source).limit("cpu_ms", 5000).limit(limit, *value).deploy();
        let answer = call(&pool, &server, &tool("run", "{}")).await;
        let failure = answer.outcome.unwrap_err();
        assert_eq!(failure.code, *code, "{source}: {failure}");
        assert!(failure.message.contains(limit), "`{failure}` does not name `{limit}`");
    }
}

#[tokio::test]
async fn arguments_are_measured_before_anything_runs() {
    let pool = pool().await;
    let server = Server::new(COUNTER).limit("argument_kb", 1).limit("argument_depth", 3).deploy();
    assert_eq!(run(&pool, &server, "[[[[1]]]]").await, Err(Code::ArgumentLimit));
    assert_eq!(run(&pool, &server, &format!("\"{}\"", "x".repeat(2000))).await, Err(Code::ArgumentLimit));
    assert_eq!(pool.state().spares, 0, "nothing was planted for refused arguments");
    assert_eq!(run(&pool, &server, "not json").await, Err(Code::BadArguments));
}

#[tokio::test]
async fn initialisation_speaks_with_the_authors_own_stack() {
    let pool = pool().await;
    let fails = async |source: &str| {
        let answer = call(&pool, &Server::new(source).deploy(), &tool("run", "{}")).await;
        answer.outcome.unwrap_err()
    };
    let thrown = fails("function broken() { throw new RangeError('boom'); }\nbroken();\nexport default {}").await;
    assert_eq!(thrown.code, Code::InitFailed);
    assert!(thrown.message.contains("RangeError: boom") && thrown.message.contains("server.js:1:27"), "{thrown}");
    let syntax = fails("export default {\n  tools: [ }").await;
    assert!(syntax.message.contains("server.js:2:12"), "{syntax}");
    let import = fails("import fs from 'node:fs'; export default {}").await;
    assert!(import.message.contains("cannot import `node:fs`"), "{import}");
    let timer =
        "await new Promise((resolve) => setTimeout(resolve, 5)); export default { tools: { run: { run: () => 1 } } }";
    assert_eq!(run(&pool, &Server::new(timer).deploy(), "{}").await.unwrap(), "1");
    let waits = fails("await new Promise(() => {}); export default {}").await;
    assert!(waits.message.contains("top-level await"), "{waits}");
    let none = fails("export const x = 1;").await;
    assert!(none.message.contains("no default export"), "{none}");
    let spins = fails("for (;;); export default {}").await;
    assert_eq!(spins.code, Code::InitLimit);
}

#[tokio::test]
async fn commands_are_for_another_wall() {
    let pool = pool().await;
    for boundary in [Boundary::Call, Boundary::Tenant] {
        let mut server = Arc::into_inner(Server::new("").boundary(boundary).deploy()).expect("nobody else has it");
        let (files, command) = ("/usr".into(), vec!["/usr/bin/true".to_owned()]);
        server.program =
            Program::Command { files, command, environment: BTreeMap::new(), network: false, speaks: Speaks::Stdio };
        let refused = pool.seed(&Arc::new(server)).await.err().expect("it runs modules only");
        assert_eq!(refused.code, Code::InitFailed);
        assert!(refused.message.contains("no commands"), "{refused}");
    }
}

#[tokio::test]
async fn nothing_random_repeats_between_compartments() {
    let pool = pool().await;
    let server = Server::new(
        "const atInit = Math.random(); export default { tools: { run: { run: () => \
           [Math.random(), crypto.randomUUID(), crypto.getRandomValues(new Uint32Array(1))[0], atInit] } } }",
    )
    .deploy();
    let (mut distinct, mut at_init) = (HashSet::new(), HashSet::new());
    for _ in 0..100 {
        let text = run(&pool, &server, "{}").await.unwrap();
        let values: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
        distinct.extend(values[..3].iter().map(|value| value.to_string()));
        at_init.insert(values[3].to_string());
    }
    assert_eq!(distinct.len(), 300);
    assert_eq!(at_init.len(), 1, "what initialisation made is the snapshot");
}

#[tokio::test]
async fn a_caller_that_goes_away_takes_its_compartment_along() {
    let pool = pool().await;
    let server = Server::new("await new Promise(() => {});").deploy();
    let request = tool("run", "{}");
    let gone = tokio::time::timeout(
        std::time::Duration::from_millis(200),
        pool.call(&server, &request, Kept::default().host()),
    );
    assert!(gone.await.is_err());
    assert_eq!(pool.state().running, 0);
}

#[tokio::test]
async fn jit_is_a_choice_that_shows() {
    let pool = pool().await;
    let source = "let s = 0; for (let i = 0; i < 1e5; i++) s += i; return [s, typeof WebAssembly];";
    let plain = call(&pool, &Server::new(source).deploy(), &tool("run", "{}")).await;
    let jit = call(&pool, &Server::new(source).jit().deploy(), &tool("run", "{}")).await;
    assert_eq!(plain.outcome.unwrap(), r#"[4999950000,"undefined"]"#);
    assert_eq!(jit.outcome.unwrap(), r#"[4999950000,"object"]"#);
    assert!(!plain.receipt.jit && jit.receipt.jit);
}

#[tokio::test]
async fn a_refused_fetch_says_why() {
    let pool = pool().await;
    let source = "try { await fetch('http://169.254.169.254/latest'); } catch (e) { return [e.name, e.message]; }";
    let answer = run(&pool, &Server::new(source).deploy(), "{}").await.unwrap();
    assert!(answer.starts_with(r#"["TypeError","#) && answer.contains("no egress"), "{answer}");
}

#[tokio::test]
async fn a_full_deployment_answers_busy_at_once() {
    let wall = support::wall().await;
    let settings = sandbox::PoolSettings {
        running_per_deployment: 1,
        waiting_per_deployment: 1,
        patience: std::time::Duration::from_millis(100),
        ..sandbox::PoolSettings::default()
    };
    let pool = sandbox::Pool::new(wall, settings);
    let server = Server::new("await new Promise((resolve) => setTimeout(resolve, 1000)); return 1;").deploy();
    let (one, two, three) =
        tokio::join!(run(&pool, &server, "{}"), run(&pool, &server, "{}"), run(&pool, &server, "{}"));
    assert_eq!(one.unwrap(), "1");
    assert_eq!((two, three), (Err(Code::Busy), Err(Code::Busy)));
}

/// Servers of one tenant share a process. What the host says to one while another sleeps in its initialisation fails neither.
#[tokio::test]
async fn calls_beside_a_server_that_sleeps_while_it_loads() {
    let pool = pool().await;
    let tenant = |source: &str| Server::new(source).boundary(Boundary::Tenant).tenant("t").deploy();
    let awake = tenant(COUNTER);
    assert_eq!(run(&pool, &awake, "{}").await.as_deref(), Ok("1"));
    let asleep = tenant(&format!("await new Promise((go) => setTimeout(go, 700)); {COUNTER}"));
    let loading = {
        let pool = pool.clone();
        tokio::spawn(async move { run(&pool, &asleep, "{}").await })
    };
    for call in 2..5 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(run(&pool, &awake, "{}").await, Ok(call.to_string()));
    }
    assert_eq!(loading.await.expect("no panic").as_deref(), Ok("1"));
}

/// A process holds 64 servers over its life. A tenant whose servers come and go has the next one in another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_a_tenant_come_and_go_without_end() {
    let pool = pool().await;
    let stays = Server::new(COUNTER).boundary(Boundary::Tenant).tenant("t").deploy();
    assert_eq!(run(&pool, &stays, "{}").await.as_deref(), Ok("1"));
    for server in 0..80 {
        let goes = Server::new(COUNTER).boundary(Boundary::Tenant).tenant("t").deploy();
        assert_eq!(run(&pool, &goes, "{}").await.as_deref(), Ok("1"), "server {server}");
        pool.release(&goes.id);
    }
    assert_eq!(run(&pool, &stays, "{}").await.as_deref(), Ok("2"), "and the first is where it was");
}
