//! Every limit holds, and says its own name.

use super::stage::{Ear, Server, Stage, ask, call, request, run};
use super::{Behaviour, Case, case};
use crate::{Code, Failure};
use policy::Boundary;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(spinning_ends_at_the_cpu_limit, CpuTime),
        case!(sleeping_ends_at_the_time_limit),
        case!(hoarding_ends_at_the_memory_limit, Memory),
        case!(a_bulky_result_is_refused),
        case!(shouting_ends_at_the_log_limit, Logs),
        case!(asking_ends_at_the_host_call_limit, HostCalls),
        case!(without_host_calls_none_gets_out, HostCalls),
        case!(a_failing_tool_says_why),
        case!(a_crash_is_called_one, Crash),
        case!(an_unknown_tool_is_called_one),
        case!(arguments_that_are_not_json_are_called_so),
        case!(arguments_over_a_limit_never_reach_the_wall),
    ]
}

/// The failure of such a server, for each boundary, each time followed by another just like it: a compartment that was
/// ended takes nothing with it.
async fn each_time(stage: &Stage, server: Server, code: Code, named: &str) {
    for boundary in [Boundary::Call, Boundary::Server] {
        let (pool, deployment) = (stage.pool(), server.clone().boundary(boundary).deploy());
        for time in 1..=2 {
            let answer = ask(&pool, &deployment, &request("{}"), Arc::new(Ear::default())).await;
            let Err(Failure { code: heard, message }) = answer.outcome else {
                panic!("{boundary:?}, call {time}: it was answered");
            };
            assert_eq!(heard, code, "{boundary:?}, call {time}: {message}");
            assert!(message.contains(named), "{boundary:?}: `{message}` does not name `{named}`");
        }
    }
}

async fn spinning_ends_at_the_cpu_limit(stage: Arc<Stage>) {
    let server = stage.server(Behaviour::Spin).limits(|limits| limits.cpu_ms = 20);
    each_time(&stage, server, Code::CpuLimit, "cpu_ms").await;
}

async fn sleeping_ends_at_the_time_limit(stage: Arc<Stage>) {
    let server = stage.server(Behaviour::Sleep).limits(|limits| limits.time_ms = 100);
    each_time(&stage, server, Code::TimeLimit, "time_ms").await;
}

async fn hoarding_ends_at_the_memory_limit(stage: Arc<Stage>) {
    let server = stage.server(Behaviour::Hoard).limits(|limits| {
        limits.memory_mb = 32;
        limits.cpu_ms = 30_000;
        limits.time_ms = 60_000;
    });
    each_time(&stage, server, Code::MemoryLimit, "memory_mb").await;
}

async fn a_bulky_result_is_refused(stage: Arc<Stage>) {
    let server = stage.server(Behaviour::Bulky);
    each_time(&stage, server.clone().limits(|limits| limits.result_kb = 8), Code::ResultLimit, "result_kb").await;
    let whole = run(&stage.pool(), &server.deploy()).await.expect("64 KiB are not too much by themselves");
    assert!(whole.len() >= 48 << 10, "the result has only {} bytes", whole.len());
}

async fn shouting_ends_at_the_log_limit(stage: Arc<Stage>) {
    let server = stage.server(Behaviour::Shout).limits(|limits| {
        limits.log_kb = 2;
        limits.cpu_ms = 10_000;
    });
    each_time(&stage, server.clone(), Code::LogLimit, "log_kb").await;
    let ear = Arc::new(Ear::default());
    let answer = ask(&stage.pool(), &server.deploy(), &request("{}"), ear.clone()).await;
    assert_eq!(answer.outcome.expect_err("it shouts without end").code, Code::LogLimit);
    let heard = ear.log_bytes.load(Ordering::SeqCst);
    assert!((1..=2 << 10).contains(&heard), "{heard} bytes were heard");
}

async fn asking_ends_at_the_host_call_limit(stage: Arc<Stage>) {
    let server = stage.server(Behaviour::Ask).limits(|limits| {
        limits.host_calls = 5;
        limits.cpu_ms = 10_000;
    });
    each_time(&stage, server.clone(), Code::HostCallLimit, "host_calls").await;
    let ear = Arc::new(Ear::default());
    let answer = ask(&stage.pool(), &server.deploy(), &request("{}"), ear.clone()).await;
    assert_eq!(answer.outcome.expect_err("it asks without end").code, Code::HostCallLimit);
    assert_eq!(ear.calls.load(Ordering::SeqCst), 5);
}

async fn without_host_calls_none_gets_out(stage: Arc<Stage>) {
    let server = stage.server(Behaviour::Ask).limits(|limits| limits.host_calls = 0).deploy();
    let ear = Arc::new(Ear::default());
    let answer = ask(&stage.pool(), &server, &request("{}"), ear.clone()).await;
    assert_eq!(answer.outcome.expect_err("it may not ask").code, Code::HostCallLimit);
    assert_eq!(ear.calls.load(Ordering::SeqCst), 0);
}

async fn a_failing_tool_says_why(stage: Arc<Stage>) {
    each_time(&stage, stage.server(Behaviour::Fail), Code::ToolError, "broken on purpose").await;
}

async fn a_crash_is_called_one(stage: Arc<Stage>) {
    each_time(&stage, stage.server(Behaviour::Crash), Code::Crashed, "").await;
}

async fn an_unknown_tool_is_called_one(stage: Arc<Stage>) {
    let mut nobody = request("{}");
    nobody.name = "nobody".to_owned();
    for boundary in [Boundary::Call, Boundary::Server] {
        let server = stage.server(Behaviour::Echo).boundary(boundary).deploy();
        assert_eq!(call(&stage.pool(), &server, &nobody).await, Err(Code::UnknownTool), "{boundary:?}");
    }
}

async fn arguments_that_are_not_json_are_called_so(stage: Arc<Stage>) {
    for boundary in [Boundary::Call, Boundary::Server] {
        let (pool, server) = (stage.pool(), stage.server(Behaviour::Echo).boundary(boundary).deploy());
        for input in ["", "{", "{}{}", "nothing"] {
            let heard = call(&pool, &server, &request(input)).await;
            assert_eq!(heard, Err(Code::BadArguments), "{boundary:?}: `{input}`");
        }
        assert_eq!(call(&pool, &server, &request(r#"{"a":1}"#)).await, Ok(r#"{"a":1}"#.to_owned()));
    }
}

async fn arguments_over_a_limit_never_reach_the_wall(stage: Arc<Stage>) {
    let pool = stage.pool();
    let server = stage.server(Behaviour::Echo).limits(|limits| {
        limits.argument_kb = 1;
        limits.argument_depth = 3;
    });
    let server = server.deploy();
    let of_length = |length: usize| format!(r#"{{"text":"{}"}}"#, "x".repeat(length - r#"{"text":""}"#.len()));
    for input in [of_length(1025), of_length(100_000), r#"{"a":[[[1]]]}"#.to_owned()] {
        assert_eq!(call(&pool, &server, &request(&input)).await, Err(Code::ArgumentLimit));
    }
    assert_eq!((stage.wall.plants(), stage.wall.calls()), (0, 0), "refused arguments came as far as the wall");
    for input in [of_length(1024), r#"{"a":[[1]]}"#.to_owned()] {
        assert_eq!(call(&pool, &server, &request(&input)).await, Ok(input), "what is just within the limits passes");
    }
}
