//! Servers that do not come up.

use super::stage::{Ear, Server, Stage, ask, call, request, run, spawn};
use super::{Behaviour, Case, case};
use crate::{Code, Failure, Program};
use bytes::Bytes;
use policy::Boundary;
use std::sync::Arc;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(a_server_that_fails_to_start_says_why),
        case!(spinning_at_the_start_ends_at_the_limit, CpuTime),
        case!(sleeping_at_the_start_ends_at_the_limit),
        case!(hoarding_at_the_start_ends_at_the_limit, Memory),
        case!(a_source_over_the_limit_is_refused, Module),
        case!(a_failed_start_is_not_tried_again_at_once),
        case!(many_first_callers_start_it_once),
        case!(a_failed_start_costs_its_tenants_other_servers_nothing, Tenant),
    ]
}

async fn fails(stage: &Stage, server: Server, code: Code, named: &str) {
    for boundary in [Boundary::Call, Boundary::Session, Boundary::Server] {
        let deployment = server.clone().boundary(boundary).deploy();
        let answer = ask(&stage.pool(), &deployment, &request("{}"), Arc::new(Ear::default())).await;
        let Err(Failure { code: heard, message }) = answer.outcome else { panic!("{boundary:?}: it was answered") };
        assert_eq!(heard, code, "{boundary:?}: {message}");
        assert!(message.contains(named), "{boundary:?}: `{message}` does not name `{named}`");
        assert_eq!(stage.wall.calls(), 0, "a server that is not there was called");
    }
    stage.until_empty().await;
}

async fn a_server_that_fails_to_start_says_why(stage: Arc<Stage>) {
    fails(&stage, stage.server(Behaviour::FailToStart), Code::InitFailed, "broken on purpose").await;
}

async fn spinning_at_the_start_ends_at_the_limit(stage: Arc<Stage>) {
    let server = stage.server(Behaviour::SpinAtStart).limits(|limits| limits.init_cpu_ms = 50);
    fails(&stage, server, Code::InitLimit, "init_cpu_ms").await;
}

async fn sleeping_at_the_start_ends_at_the_limit(stage: Arc<Stage>) {
    let server = stage.server(Behaviour::SleepAtStart).limits(|limits| limits.init_time_ms = 500);
    fails(&stage, server, Code::InitLimit, "init_time_ms").await;
}

async fn hoarding_at_the_start_ends_at_the_limit(stage: Arc<Stage>) {
    let server = stage.server(Behaviour::HoardAtStart).limits(|limits| {
        limits.memory_mb = 32;
        limits.init_cpu_ms = 30_000;
        limits.init_time_ms = 60_000;
    });
    fails(&stage, server, Code::InitLimit, "memory_mb").await;
}

async fn a_source_over_the_limit_is_refused(stage: Arc<Stage>) {
    let program = Program::Module { source: Bytes::from(vec![b' '; 1025]), file_name: "server.js".to_owned() };
    let server = stage.server(Behaviour::Echo).limits(|limits| limits.source_kb = 1).program(program);
    fails(&stage, server, Code::InitFailed, "source_kb").await;
}

async fn a_failed_start_is_not_tried_again_at_once(stage: Arc<Stage>) {
    let (pool, server) = (stage.pool(), stage.server(Behaviour::FailToStart).deploy());
    let callers: Vec<_> = (0..10).map(|_| spawn(&pool, &server, request("{}"))).collect();
    for caller in callers {
        assert_eq!(caller.await.expect("no panic"), Err(Code::InitFailed));
    }
    assert!(stage.wall.plants() < 10, "each of ten callers at once had the server started anew");
}

async fn many_first_callers_start_it_once(stage: Arc<Stage>) {
    for boundary in [Boundary::Call, Boundary::Server] {
        let before = stage.wall.plants();
        let (pool, server) = (stage.pool(), stage.server(Behaviour::Echo).boundary(boundary).deploy());
        let callers: Vec<_> = (0..20).map(|_| spawn(&pool, &server, request("{}"))).collect();
        for caller in callers {
            assert_eq!(caller.await.expect("no panic"), Ok("{}".to_owned()));
        }
        assert_eq!(stage.wall.plants() - before, 1, "{boundary:?}");
    }
}

/// Servers of a tenant share a compartment, and one of them that does not come up must not be taken for another.
async fn a_failed_start_costs_its_tenants_other_servers_nothing(stage: Arc<Stage>) {
    let pool = stage.pool();
    let tenant =
        |behaviour| stage.server(behaviour).boundary(Boundary::Tenant).limits(|limits| limits.init_time_ms = 500);
    let first = tenant(Behaviour::Count).limits(|limits| limits.init_time_ms = 10_000).deploy();
    assert_eq!(run(&pool, &first).await, Ok("1".to_owned()));
    for (trouble, code) in [(Behaviour::FailToStart, Code::InitFailed), (Behaviour::SleepAtStart, Code::InitLimit)] {
        assert_eq!(run(&pool, &tenant(trouble).deploy()).await, Err(code), "{trouble:?}");
        let later = tenant(Behaviour::Echo).limits(|limits| limits.init_time_ms = 10_000).deploy();
        let input = request(r#"{"who":"me"}"#);
        assert_eq!(call(&pool, &later, &input).await, Ok(r#"{"who":"me"}"#.to_owned()), "after {trouble:?}");
        assert!(run(&pool, &first).await.is_ok(), "the first server after {trouble:?}");
    }
}
