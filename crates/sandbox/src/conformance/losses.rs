//! Seeds and compartments that are lost through no fault of a caller's.

use super::stage::{Ear, Stage, ask, call, cancel, order, request, run, spawn, until};
use super::{Behaviour, Capability, Case, case};
use crate::{Answer, Code, Deployment, Pool};
use policy::Boundary;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::task::JoinHandle;

pub(super) fn cases() -> Vec<Case> {
    // Those that kill take the neighbour's own along.
    let kills = |case: Case| Case { keeps_seeds: false, ..case };
    vec![
        case!(a_dead_seed_is_replanted),
        kills(case!(killed_seeds_cost_nobody_a_call, Outside)),
        kills(case!(killed_compartments_cost_nobody_a_call, Outside)),
        kills(case!(a_call_is_tried_again_when_its_compartment_is_killed, Outside, Logs)),
        kills(case!(a_call_that_did_something_outside_is_not_tried_again, Outside, HostCalls)),
    ]
}

fn boundaries(stage: &Stage) -> Vec<Boundary> {
    let tenant = stage.has(Capability::Tenant).then_some(Boundary::Tenant);
    [Boundary::Call, Boundary::Session, Boundary::Server].into_iter().chain(tenant).collect()
}

/// A call in a task of its own, that others can listen to.
fn obeys(pool: &Arc<Pool>, server: &Arc<Deployment>, what: &'static str, ear: &Arc<Ear>) -> JoinHandle<Answer> {
    let (pool, server, ear) = (pool.clone(), server.clone(), ear.clone());
    tokio::spawn(async move { ask(&pool, &server, &order(what), ear).await })
}

async fn a_dead_seed_is_replanted(stage: Arc<Stage>) {
    let (pool, server) = (stage.pool(), stage.server(Behaviour::Count).deploy());
    for plants in 1..=3 {
        assert_eq!(run(&pool, &server).await, Ok("1".to_owned()));
        until("spares are ready", || pool.state().spares > 0).await;
        assert_eq!(run(&pool, &server).await, Ok("1".to_owned()));
        assert_eq!(stage.wall.plants(), plants);
        stage.wall.condemn();
    }
}

async fn killed_seeds_cost_nobody_a_call(stage: Arc<Stage>) {
    for (spares, boundary) in [0, 8].into_iter().flat_map(|n| boundaries(&stage).into_iter().map(move |b| (n, b))) {
        let pool = stage.pool_with(|settings| settings.spares = spares);
        let server = stage.server(Behaviour::Echo).boundary(boundary).deploy();
        assert_eq!(run(&pool, &server).await, Ok("{}".to_owned()));
        for time in 1..=3 {
            if boundary == Boundary::Call && spares > 0 {
                let callers: Vec<_> = (0..8).map(|_| spawn(&pool, &server, request("{}"))).collect();
                for caller in callers {
                    assert_eq!(caller.await.expect("no panic"), Ok("{}".to_owned()));
                }
                until("spares are ready", || pool.state().spares >= 4).await;
            }
            stage.strike(stage.outside().kill_seeds).await;
            let heard = run(&pool, &server).await;
            assert_eq!(heard, Ok("{}".to_owned()), "{boundary:?} with {spares} spares, time {time}");
        }
    }
}

async fn killed_compartments_cost_nobody_a_call(stage: Arc<Stage>) {
    let pool = stage.pool_with(|settings| settings.spares = 1);
    for boundary in boundaries(&stage) {
        let server = stage.server(Behaviour::Echo).boundary(boundary).deploy();
        for time in 1..=3 {
            assert_eq!(run(&pool, &server).await, Ok("{}".to_owned()), "{boundary:?}, time {time}");
            stage.strike(stage.outside().kill_compartments).await;
        }
    }
}

async fn a_call_is_tried_again_when_its_compartment_is_killed(stage: Arc<Stage>) {
    for boundary in boundaries(&stage) {
        let (pool, ear) = (stage.pool(), Arc::new(Ear::default()));
        let server = stage.server(Behaviour::Obey).boundary(boundary).deploy();
        let caller = obeys(&pool, &server, "log_then_sleep", &ear);
        let heard = || ear.log_bytes.load(Ordering::SeqCst);
        until("it says that it is inside", || heard() > 0).await;
        let once = heard();
        stage.strike(stage.outside().kill_compartments).await;
        until("it says so again", || heard() > once).await;
        cancel(caller).await;
    }
}

async fn a_call_that_did_something_outside_is_not_tried_again(stage: Arc<Stage>) {
    for boundary in boundaries(&stage) {
        let (pool, ear) = (stage.pool(), Arc::new(Ear::default()));
        let server = stage.server(Behaviour::Obey).boundary(boundary).deploy();
        let caller = obeys(&pool, &server, "ask_then_sleep", &ear);
        until("it did something outside", || ear.calls.load(Ordering::SeqCst) == 1).await;
        stage.strike(stage.outside().kill_compartments).await;
        let answer = caller.await.expect("no panic");
        assert_eq!(answer.outcome.expect_err("it sleeps").code, Code::CompartmentLost, "{boundary:?}");
        assert_eq!((answer.receipt.host_calls, ear.calls.load(Ordering::SeqCst)), (1, 1), "{boundary:?}");
        assert_eq!(call(&pool, &server, &order("count")).await, Ok("1".to_owned()), "{boundary:?}");
    }
}
