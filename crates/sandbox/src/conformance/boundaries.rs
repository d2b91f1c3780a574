//! Each boundary shares exactly what it says.

use super::stage::{Stage, call, in_session, order, request, run, spawn, until};
use super::{Behaviour, Case, case};
use crate::{Code, Deployment, Pool};
use policy::Boundary;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(boundary_call_shares_nothing),
        case!(boundary_session_shares_within_a_session),
        case!(boundary_server_shares_between_sessions),
        case!(boundary_tenant_shares_a_compartment_but_no_state, Tenant),
        case!(deployments_share_nothing),
        case!(a_shared_compartment_starts_anew_after_its_end),
        case!(a_shared_compartment_outlives_its_callers_failures),
        case!(a_shared_compartment_may_speak_after_its_answer),
        case!(calls_at_once_share_one_compartment, SideBySide),
        case!(only_the_spinning_call_hears_of_the_cpu_limit, SideBySide, CpuTime),
        case!(only_the_late_call_hears_of_the_time_limit, SideBySide),
        case!(sessions_beyond_the_most_hear_busy),
    ]
}

/// What a counter says to two calls of one session, one of another, and two without.
async fn counts(pool: &Pool, server: &Arc<Deployment>) -> [u32; 5] {
    let mut seen = [0; 5];
    let requests = [in_session("a"), in_session("a"), in_session("b"), request("{}"), request("{}")];
    for (count, request) in seen.iter_mut().zip(requests) {
        *count = call(pool, server, &request).await.expect("a counter counts").parse().expect("a number");
    }
    seen
}

async fn boundary_call_shares_nothing(stage: Arc<Stage>) {
    let server = stage.server(Behaviour::Count).deploy();
    assert_eq!(counts(&stage.pool(), &server).await, [1, 1, 1, 1, 1]);
}

async fn boundary_session_shares_within_a_session(stage: Arc<Stage>) {
    let server = stage.server(Behaviour::Count).boundary(Boundary::Session).deploy();
    assert_eq!(counts(&stage.pool(), &server).await, [1, 2, 1, 1, 1]);
}

async fn boundary_server_shares_between_sessions(stage: Arc<Stage>) {
    let server = stage.server(Behaviour::Count).boundary(Boundary::Server).deploy();
    assert_eq!(counts(&stage.pool(), &server).await, [1, 2, 3, 4, 5]);
}

async fn boundary_tenant_shares_a_compartment_but_no_state(stage: Arc<Stage>) {
    let pool = stage.pool();
    let counter = stage.server(Behaviour::Count).boundary(Boundary::Tenant);
    let (one, two, other) = (counter.deploy(), counter.deploy(), counter.clone().tenant("somebody else").deploy());
    assert_eq!(counts(&pool, &one).await, [1, 2, 3, 4, 5]);
    assert_eq!(counts(&pool, &two).await, [1, 2, 3, 4, 5]);
    assert_eq!(counts(&pool, &other).await, [1, 2, 3, 4, 5]);
    assert_eq!(counts(&pool, &one).await, [6, 7, 8, 9, 10]);
}

/// Also when tenant, server and source are the same.
async fn deployments_share_nothing(stage: Arc<Stage>) {
    let pool = stage.pool();
    for boundary in [Boundary::Session, Boundary::Server] {
        let counter = stage.server(Behaviour::Count).boundary(boundary);
        for server in [counter.deploy(), counter.deploy(), counter.clone().tenant("somebody else").deploy()] {
            assert_eq!(call(&pool, &server, &in_session("a")).await, Ok("1".to_owned()), "{boundary:?}");
        }
    }
}

async fn a_shared_compartment_starts_anew_after_its_end(stage: Arc<Stage>) {
    let pool = stage.pool();
    let server =
        stage.server(Behaviour::Obey).boundary(Boundary::Server).limits(|limits| limits.time_ms = 1000).deploy();
    assert_eq!(call(&pool, &server, &order("count")).await, Ok("1".to_owned()));
    assert_eq!(call(&pool, &server, &order("count")).await, Ok("2".to_owned()));
    assert_eq!(call(&pool, &server, &order("sleep")).await, Err(Code::TimeLimit));
    assert_eq!(call(&pool, &server, &order("count")).await, Ok("1".to_owned()), "what was ended is gone");
}

async fn a_shared_compartment_outlives_its_callers_failures(stage: Arc<Stage>) {
    let pool = stage.pool();
    let server = stage.server(Behaviour::Count).boundary(Boundary::Server).deploy();
    assert_eq!(run(&pool, &server).await, Ok("1".to_owned()));
    assert_eq!(call(&pool, &server, &request("nothing")).await, Err(Code::BadArguments));
    let mut nobody = request("{}");
    nobody.name = "nobody".to_owned();
    assert_eq!(call(&pool, &server, &nobody).await, Err(Code::UnknownTool));
    assert_eq!(run(&pool, &server).await, Ok("2".to_owned()));
}

async fn a_shared_compartment_may_speak_after_its_answer(stage: Arc<Stage>) {
    let pool = stage.pool();
    let server = stage.server(Behaviour::Linger).boundary(Boundary::Server).deploy();
    for time in 1..=20 {
        assert_eq!(run(&pool, &server).await, Ok(time.to_string()), "it was ended for a late word");
    }
}

async fn calls_at_once_share_one_compartment(stage: Arc<Stage>) {
    let pool = stage.pool();
    for boundary in [Boundary::Session, Boundary::Server] {
        let server = stage.server(Behaviour::Count).boundary(boundary).deploy();
        let callers: Vec<_> = (0..30).map(|_| spawn(&pool, &server, in_session("a"))).collect();
        let mut seen = BTreeSet::new();
        for caller in callers {
            seen.insert(caller.await.expect("no panic").expect("a counter counts").parse::<u32>().expect("a number"));
        }
        assert_eq!(seen, (1..=30).collect(), "{boundary:?}");
    }
}

/// The innocent one is tried again in another compartment, because nothing it did has left the first.
async fn only_the_spinning_call_hears_of_the_cpu_limit(stage: Arc<Stage>) {
    let pool = stage.pool();
    let server = stage.server(Behaviour::Obey).boundary(Boundary::Server).deploy();
    let innocent = spawn(&pool, &server, order("sleep"));
    until("the innocent call is inside", || stage.wall.calls() == 1).await;
    assert_eq!(call(&pool, &server, &order("count")).await, Ok("1".to_owned()));
    assert_eq!(call(&pool, &server, &order("spin")).await, Err(Code::CpuLimit));
    until("the innocent call is tried again", || innocent.is_finished() || stage.wall.calls() == 4).await;
    super::stage::cancel(innocent).await;
}

async fn only_the_late_call_hears_of_the_time_limit(stage: Arc<Stage>) {
    let pool = stage.pool();
    let server =
        stage.server(Behaviour::Obey).boundary(Boundary::Server).limits(|limits| limits.time_ms = 2000).deploy();
    assert_eq!(call(&pool, &server, &order("count")).await, Ok("1".to_owned()));
    let late = spawn(&pool, &server, order("sleep"));
    until("the late call is inside", || stage.wall.calls() == 2).await;
    tokio::time::sleep(std::time::Duration::from_millis(1000)).await;
    let innocent = spawn(&pool, &server, order("sleep"));
    assert_eq!(late.await.expect("no panic"), Err(Code::TimeLimit));
    until("the innocent call is tried again", || innocent.is_finished() || stage.wall.calls() == 4).await;
    super::stage::cancel(innocent).await;
}

async fn sessions_beyond_the_most_hear_busy(stage: Arc<Stage>) {
    let pool = stage.pool_with(|settings| settings.sessions = 2);
    let server = stage.server(Behaviour::Count).boundary(Boundary::Session).deploy();
    assert_eq!(call(&pool, &server, &in_session("a")).await, Ok("1".to_owned()));
    assert_eq!(call(&pool, &server, &in_session("b")).await, Ok("1".to_owned()));
    assert_eq!(call(&pool, &server, &in_session("c")).await, Err(Code::Busy));
    assert_eq!(call(&pool, &server, &in_session("a")).await, Ok("2".to_owned()), "who is in stays in");
    assert_eq!(run(&pool, &server).await, Ok("1".to_owned()), "a call without a session needs none");
}
