//! Memory is given out before a call starts, and one tenant never has all of it.

use super::wall::{Cardboard, Work, call, flood, ms, server, server_with, turns};
use crate::{Code, PoolSettings};
use policy::Boundary;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What a call with the usual limit takes.
const NEED: u64 = 128 + 8;

fn wall(calls: u64) -> Cardboard {
    Cardboard { memory_mb: Some(NEED * calls), ..Cardboard::new() }
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_memory_and_leave_some_to_others() {
    let (pool, seen) = wall(4).pool(turns(100, 100));
    flood(&pool, &server("loud", Work::Ask(ms(1000))), 14);
    tokio::time::sleep(ms(100)).await;
    assert_eq!((pool.state().running, pool.state().waiting), (3, 11));
    let answer = call(&pool, &server("quiet", Work::Ask(ms(1)))).await;
    assert_eq!((answer.outcome.is_ok(), answer.receipt.wait_us), (true, 0));
    assert_eq!(seen.most_inside.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_memory_in_vain_hears_busy_and_holds_nobody_up() {
    let settings = PoolSettings { patience: ms(700), ..turns(100, 100) };
    let (pool, _) = wall(2).pool(settings);
    for tenant in ["one", "two"] {
        flood(&pool, &server(tenant, Work::Ask(Duration::from_secs(10))), 1);
    }
    tokio::time::sleep(ms(1)).await;
    let failure = call(&pool, &server("three", Work::Ask(ms(1)))).await.outcome.expect_err("no memory");
    assert_eq!(failure.code, Code::Busy);
    assert!(failure.message.contains("memory"), "{}", failure.message);
}

/// A compartment that stays keeps its memory, and the next calls in it need none.
#[tokio::test(start_paused = true)]
async fn compartments_that_stay_hold_their_memory() {
    let (pool, seen) = wall(4).pool(PoolSettings { patience: ms(500), ..turns(100, 100) });
    let servers: Vec<_> = (0..4).map(|_| server_with("loud", Work::Ask(ms(2000)), Boundary::Server)).collect();
    for server in &servers[..3] {
        let (pool, server) = (pool.clone(), server.clone());
        tokio::spawn(async move { call(&pool, &server).await });
    }
    tokio::time::sleep(ms(1)).await;
    assert_eq!(seen.inside.load(Ordering::SeqCst), 3);
    let failure = call(&pool, &servers[3]).await.outcome.expect_err("no memory");
    assert_eq!(failure.code, Code::Busy);
    assert!(call(&pool, &server("quiet", Work::Ask(ms(1)))).await.outcome.is_ok());
    let answer = call(&pool, &servers[0]).await;
    assert_eq!((answer.outcome.is_ok(), answer.receipt.wait_us), (true, 0), "its compartment is there");
    assert_eq!(pool.totals().grown, 4);
}
