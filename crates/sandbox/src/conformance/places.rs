//! A bounded number inside, a bounded number waiting, and nothing kept that nobody uses.

use super::stage::{Stage, call, cancel, order, request, run, spawn, until};
use super::{Behaviour, Capability, Case, case};
use crate::{Code, PoolState};
use policy::Boundary;
use std::sync::Arc;
use std::time::Duration;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(fifty_calls_at_once_are_all_served),
        case!(a_full_host_answers_busy_at_once),
        case!(a_full_server_answers_busy_at_once_and_others_are_served),
        case!(who_waits_is_served_when_a_place_is_free),
        case!(who_waits_too_long_hears_busy),
        case!(a_released_deployment_leaves_nothing),
        case!(a_released_deployment_finishes_its_calls),
        case!(a_dropped_pool_leaves_nothing),
        case!(what_nobody_calls_is_let_go),
        case!(the_longest_unused_deployment_makes_room),
        case!(nothing_is_left_of_the_processes, Outside),
    ]
}

async fn fifty_calls_at_once_are_all_served(stage: Arc<Stage>) {
    let most = 4;
    let pool = stage.pool_with(|settings| {
        settings.running_per_deployment = 20;
        settings.spares = most;
    });
    for boundary in [Boundary::Call, Boundary::Session] {
        let server = stage.server(Behaviour::Echo).boundary(boundary).deploy();
        let input = |n: usize| format!(r#"{{"n":{n}}}"#);
        let callers: Vec<_> = (0..50).map(|n| spawn(&pool, &server, request(&input(n)))).collect();
        for (n, caller) in callers.into_iter().enumerate() {
            assert_eq!(caller.await.expect("no panic"), Ok(input(n)), "{boundary:?}");
            let PoolState { running, spares, .. } = pool.state();
            assert!(running <= 20 && spares <= most, "{running} run and {spares} wait ready");
        }
        until("all places are free", || pool.state().running == 0).await;
        pool.release(&server.id);
    }
}

async fn a_full_host_answers_busy_at_once(stage: Arc<Stage>) {
    let pool = stage.pool_with(|settings| (settings.running, settings.waiting) = (1, 0));
    let sleeper = spawn(&pool, &stage.server(Behaviour::Sleep).deploy(), request("{}"));
    until("the only place is taken", || stage.wall.calls() == 1).await;
    // Patience is longer than the case, so an answer is one without waiting.
    assert_eq!(run(&pool, &stage.server(Behaviour::Echo).deploy()).await, Err(Code::Busy));
    assert_eq!((pool.state().running, pool.state().waiting), (1, 0));
    cancel(sleeper).await;
}

async fn a_full_server_answers_busy_at_once_and_others_are_served(stage: Arc<Stage>) {
    let pool = stage.pool_with(|settings| (settings.running_per_deployment, settings.waiting_per_deployment) = (1, 1));
    let server = stage.server(Behaviour::Sleep).deploy();
    let inside = spawn(&pool, &server, request("{}"));
    until("the only place is taken", || stage.wall.calls() == 1).await;
    let waiting = spawn(&pool, &server, request("{}"));
    until("the only turn is taken", || pool.state().waiting == 1).await;
    assert_eq!(run(&pool, &server).await, Err(Code::Busy));
    assert_eq!(run(&pool, &stage.server(Behaviour::Echo).deploy()).await, Ok("{}".to_owned()));
    assert_eq!((pool.state().running, pool.state().waiting), (1, 1));
    cancel(waiting).await;
    cancel(inside).await;
}

async fn who_waits_is_served_when_a_place_is_free(stage: Arc<Stage>) {
    let pool = stage.pool_with(|settings| settings.running_per_deployment = 1);
    let server = stage.server(Behaviour::Obey).limits(|limits| limits.time_ms = 500).deploy();
    let inside = spawn(&pool, &server, order("sleep"));
    until("the only place is taken", || stage.wall.calls() == 1).await;
    let waiting = spawn(&pool, &server, order("count"));
    assert_eq!(inside.await.expect("no panic"), Err(Code::TimeLimit));
    assert_eq!(waiting.await.expect("no panic"), Ok("1".to_owned()));
}

async fn who_waits_too_long_hears_busy(stage: Arc<Stage>) {
    let pool = stage.pool_with(|settings| {
        settings.running_per_deployment = 1;
        settings.patience = Duration::from_millis(50);
    });
    let server = stage.server(Behaviour::Sleep).deploy();
    let inside = spawn(&pool, &server, request("{}"));
    until("the only place is taken", || stage.wall.calls() == 1).await;
    assert_eq!(run(&pool, &server).await, Err(Code::Busy));
    cancel(inside).await;
}

fn boundaries(stage: &Stage) -> Vec<Boundary> {
    let tenant = stage.has(Capability::Tenant).then_some(Boundary::Tenant);
    [Boundary::Call, Boundary::Session, Boundary::Server].into_iter().chain(tenant).collect()
}

async fn a_released_deployment_leaves_nothing(stage: Arc<Stage>) {
    let pool = stage.pool();
    for boundary in boundaries(&stage) {
        let server = stage.server(Behaviour::Echo).boundary(boundary).deploy();
        for session in ["a", "b"] {
            assert_eq!(call(&pool, &server, &super::stage::in_session(session)).await, Ok("{}".to_owned()));
        }
        assert_ne!(stage.wall.held(), (0, 0), "{boundary:?}");
        pool.release(&server.id);
        stage.until_empty().await;
        assert_eq!(pool.state(), PoolState::default(), "{boundary:?}");
    }
}

async fn a_released_deployment_finishes_its_calls(stage: Arc<Stage>) {
    let pool = stage.pool();
    for boundary in boundaries(&stage) {
        let before = stage.wall.calls();
        let server = stage.server(Behaviour::Sleep).boundary(boundary).limits(|limits| limits.time_ms = 1000).deploy();
        let inside = spawn(&pool, &server, request("{}"));
        until("the call is inside", || stage.wall.calls() > before).await;
        pool.release(&server.id);
        assert_eq!(inside.await.expect("no panic"), Err(Code::TimeLimit), "{boundary:?}: it has its own end");
        stage.until_empty().await;
    }
}

async fn a_dropped_pool_leaves_nothing(stage: Arc<Stage>) {
    let pool = stage.pool();
    for boundary in boundaries(&stage) {
        let server = stage.server(Behaviour::Echo).boundary(boundary).deploy();
        assert_eq!(run(&pool, &server).await, Ok("{}".to_owned()), "{boundary:?}");
    }
    drop(pool);
    stage.until_empty().await;
}

async fn what_nobody_calls_is_let_go(stage: Arc<Stage>) {
    let pool = stage.pool_with(|settings| {
        settings.idle = Duration::from_millis(10);
        settings.session_idle = Duration::from_millis(10);
    });
    for boundary in boundaries(&stage) {
        let server = stage.server(Behaviour::Echo).boundary(boundary).deploy();
        assert_eq!(call(&pool, &server, &super::stage::in_session("a")).await, Ok("{}".to_owned()), "{boundary:?}");
    }
    until("the pool is empty", || pool.state() == PoolState::default()).await;
    stage.until_empty().await;
}

async fn the_longest_unused_deployment_makes_room(stage: Arc<Stage>) {
    let pool = stage.pool_with(|settings| settings.deployments = 2);
    let counter = stage.server(Behaviour::Count).boundary(Boundary::Server);
    let servers = [counter.deploy(), counter.deploy(), counter.deploy()];
    for server in &servers {
        assert_eq!(run(&pool, server).await, Ok("1".to_owned()));
        assert!(pool.state().deployments <= 2);
    }
    assert_eq!(run(&pool, &servers[1]).await, Ok("2".to_owned()), "it was used after the first");
    assert_eq!(run(&pool, &servers[0]).await, Ok("1".to_owned()), "it made room");
}

/// Handles that are gone are one thing, processes another.
async fn nothing_is_left_of_the_processes(stage: Arc<Stage>) {
    let pool = stage.pool();
    let living = stage.outside().living;
    let servers: Vec<_> = boundaries(&stage)
        .into_iter()
        .map(|boundary| stage.server(Behaviour::Obey).boundary(boundary).deploy())
        .collect();
    for server in &servers {
        assert_eq!(call(&pool, server, &order("count")).await, Ok("1".to_owned()));
        let sleeper = spawn(&pool, server, order("sleep"));
        tokio::time::sleep(Duration::from_millis(20)).await;
        cancel(sleeper).await;
    }
    assert!(living() >= servers.len(), "each deployment lives somewhere");
    for server in &servers {
        pool.release(&server.id);
    }
    stage.until_empty().await;
    // The neighbour has at most its seed, its call, and its spares.
    let neighbour = 2 + crate::PoolSettings::default().spares;
    until("no process is left", || living() <= neighbour).await;
}
