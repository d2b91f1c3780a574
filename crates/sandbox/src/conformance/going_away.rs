//! Callers that do not wait for their answer.

use super::stage::{Stage, call, cancel, order, request, run, spawn, until};
use super::{Behaviour, Case, case};
use crate::{Deployment, Pool};
use policy::Boundary;
use std::sync::Arc;
use std::time::Duration;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(who_goes_away_frees_the_place),
        case!(who_goes_away_frees_the_place_in_a_shared_compartment, SideBySide),
        case!(who_goes_away_frees_the_turn),
        case!(who_goes_away_at_any_moment_costs_nobody_else_anything),
        case!(who_goes_away_at_any_moment_costs_the_tenant_nothing, Tenant),
    ]
}

async fn who_goes_away_frees_the_place(stage: Arc<Stage>) {
    let pool = stage.pool_with(|settings| (settings.running, settings.spares) = (1, 0));
    let server = stage.server(Behaviour::Obey).deploy();
    for time in 0..3 {
        let before = stage.wall.calls();
        let sleeper = spawn(&pool, &server, order("sleep"));
        until("the call is inside", || stage.wall.calls() > before).await;
        cancel(sleeper).await;
        assert_eq!(pool.state().running, 0, "time {time}");
        assert_eq!(stage.wall.held().1, 0, "time {time}: the compartment is kept for nobody");
        assert_eq!(call(&pool, &server, &order("count")).await, Ok("1".to_owned()), "time {time}");
    }
}

async fn who_goes_away_frees_the_place_in_a_shared_compartment(stage: Arc<Stage>) {
    let pool = stage.pool_with(|settings| settings.running = 1);
    let server = stage.server(Behaviour::Obey).boundary(Boundary::Server).deploy();
    for time in 1..=3 {
        let before = stage.wall.calls();
        let sleeper = spawn(&pool, &server, order("sleep"));
        until("the call is inside", || stage.wall.calls() > before).await;
        cancel(sleeper).await;
        assert_eq!(pool.state().running, 0, "time {time}");
        assert_eq!(
            call(&pool, &server, &order("count")).await,
            Ok(time.to_string()),
            "the others' compartment goes on"
        );
    }
}

async fn who_goes_away_frees_the_turn(stage: Arc<Stage>) {
    let pool = stage.pool_with(|settings| (settings.running, settings.waiting) = (1, 1));
    let server = stage.server(Behaviour::Obey).limits(|limits| limits.time_ms = 60_000).deploy();
    let inside = spawn(&pool, &server, order("sleep"));
    until("the only place is taken", || stage.wall.calls() == 1).await;
    for _ in 0..3 {
        let waiting = spawn(&pool, &server, order("count"));
        until("the only turn is taken", || pool.state().waiting == 1).await;
        cancel(waiting).await;
        assert_eq!(pool.state().waiting, 0);
    }
    let waiting = spawn(&pool, &server, order("count"));
    until("the turn is taken again", || pool.state().waiting == 1).await;
    cancel(inside).await;
    assert_eq!(waiting.await.expect("no panic"), Ok("1".to_owned()));
}

/// Callers that go away after ever so little: while the server is started, a compartment grown, a call sent.
async fn go_away(pool: &Arc<Pool>, server: &Arc<Deployment>, after: Duration) {
    let caller = spawn(pool, server, request("{}"));
    tokio::time::sleep(after).await;
    caller.abort();
    // It may have been quicker.
    let _ = caller.await;
}

/// From at once to well after an answer, in steps of a fifth.
fn moments() -> impl Iterator<Item = Duration> {
    (0..40).map(|step| Duration::from_micros(50).mul_f64(1.2f64.powi(step)))
}

async fn who_goes_away_at_any_moment_costs_nobody_else_anything(stage: Arc<Stage>) {
    // Nothing is kept ready, so that every caller grows its own.
    let pool = stage.pool_with(|settings| settings.spares = 0);
    let server = stage.server(Behaviour::Count).deploy();
    let sharing = stage.server(Behaviour::Count).boundary(Boundary::Server).deploy();
    assert_eq!(run(&pool, &server).await, Ok("1".to_owned()));
    assert_eq!(run(&pool, &sharing).await, Ok("1".to_owned()));
    for moment in moments() {
        let fresh = stage.server(Behaviour::Count).deploy();
        tokio::join!(go_away(&pool, &server, moment), go_away(&pool, &sharing, moment), go_away(&pool, &fresh, moment));
        pool.release(&fresh.id);
    }
    let planted = stage.wall.plants();
    assert_eq!(run(&pool, &server).await, Ok("1".to_owned()));
    let count: u32 = run(&pool, &sharing).await.expect("it counts").parse().expect("a number");
    assert!(count > 1, "the shared compartment was lost");
    assert_eq!(stage.wall.plants(), planted, "a seed was lost");
    assert_eq!(pool.state().running, 0);
}

/// A server whose first caller goes away while it is loaded must not be taken for the next one.
async fn who_goes_away_at_any_moment_costs_the_tenant_nothing(stage: Arc<Stage>) {
    let pool = stage.pool();
    let tenant = |behaviour| stage.server(behaviour).boundary(Boundary::Tenant).deploy();
    let first = tenant(Behaviour::Count);
    assert_eq!(run(&pool, &first).await, Ok("1".to_owned()));
    let input = r#"{"who":"me"}"#;
    for (time, moment) in moments().step_by(3).enumerate() {
        let fresh = tenant(Behaviour::Count);
        go_away(&pool, &fresh, moment).await;
        let next = tenant(Behaviour::Echo);
        assert_eq!(call(&pool, &next, &request(input)).await, Ok(input.to_owned()), "after {moment:?}");
        assert_eq!(run(&pool, &first).await, Ok((time + 2).to_string()), "after {moment:?}");
        pool.release(&fresh.id);
        pool.release(&next.id);
    }
}
