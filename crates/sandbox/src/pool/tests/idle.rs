//! What is idle gives its memory to whoever holds less, and what is at work never does.

use super::wall::{Cardboard, Patient, Seen, Work, call, ms, server, server_with, turns};
use crate::{Code, Deployment, Operation, Pool, PoolSettings, Request};
use bytes::Bytes;
use policy::Boundary;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What a compartment with the usual limit takes.
const NEED: u64 = 128 + 8;

/// A pool with memory for so many compartments.
fn pool(compartments: u64) -> (Arc<Pool>, Arc<Seen>) {
    let wall = Cardboard { memory_mb: Some(NEED * compartments), ..Cardboard::new() };
    wall.pool(PoolSettings { patience: ms(500), ..turns(100, 100) })
}

fn sessions(tenant: &str, work: Work) -> Arc<Deployment> {
    server_with(tenant, work, Boundary::Session)
}

async fn call_in(pool: &Pool, server: &Arc<Deployment>, session: usize) -> Result<(), Code> {
    let request = Request {
        operation: Operation::Tool,
        name: "run".to_owned(),
        input: Bytes::from_static(b"{}"),
        session: Some(format!("session-{session}")),
    };
    pool.call(server, &request, Arc::new(Patient)).await.outcome.map(drop).map_err(|failure| failure.code)
}

async fn open(pool: &Pool, server: &Arc<Deployment>, number: usize) {
    for session in 0..number {
        assert_eq!(call_in(pool, server, session).await, Ok(()), "session {session}");
    }
}

/// Whether the compartments of these sessions are there: a call in one of them grows none.
async fn kept(pool: &Pool, server: &Arc<Deployment>, sessions: &[usize]) -> Vec<bool> {
    let mut kept = Vec::new();
    for session in sessions {
        let before = pool.totals().grown;
        assert_eq!(call_in(pool, server, *session).await, Ok(()), "session {session}");
        kept.push(pool.totals().grown == before);
    }
    kept
}

/// The attack: two tenants open sessions, leave them alone, and hold all there is.
#[tokio::test(start_paused = true)]
async fn idle_sessions_of_two_tenants_keep_nobody_out() {
    for boundary in [Boundary::Call, Boundary::Session, Boundary::Server, Boundary::Tenant] {
        let (pool, _) = pool(5);
        let (one, two) = (sessions("one", Work::Sleep(ms(1))), sessions("two", Work::Sleep(ms(1))));
        open(&pool, &one, 3).await;
        open(&pool, &two, 2).await;
        let third = server_with("three", Work::Sleep(ms(1)), boundary);
        assert_eq!(call_in(&pool, &third, 0).await, Ok(()), "{boundary:?}: the first call");
        assert_eq!(pool.totals().kills.iter().find(|(code, _)| *code == Code::Busy), Some(&(Code::Busy, 1)));
        assert_eq!(kept(&pool, &two, &[0, 1]).await, [true, true], "{boundary:?}: the largest holder gives way");
        assert_eq!(kept(&pool, &one, &[1, 2]).await, [true, true], "{boundary:?}: with what it used longest ago");
    }
}

/// The same with compartments that all callers of a server or tenant share, and with what they grow from.
#[tokio::test(start_paused = true)]
async fn idle_servers_and_seeds_of_two_tenants_keep_nobody_out() {
    for boundary in [Boundary::Server, Boundary::Tenant, Boundary::Call] {
        let seed_mb = if boundary == Boundary::Call { NEED } else { 0 };
        let wall = Cardboard { memory_mb: Some(NEED * 5), seed_mb, ..Cardboard::new() };
        let (pool, _) = wall.pool(PoolSettings { patience: ms(500), ..turns(100, 100) });
        for (tenant, servers) in [("one", 3), ("two", 2)] {
            for _ in 0..servers {
                let server = server_with(tenant, Work::Sleep(ms(1)), boundary);
                assert_eq!(call_in(&pool, &server, 0).await, Ok(()), "{boundary:?} of {tenant}");
            }
        }
        let third = server("three", Work::Sleep(ms(1)));
        for time in 0..3 {
            assert_eq!(call_in(&pool, &third, 0).await, Ok(()), "{boundary:?}, call {time}");
        }
    }
}

/// Opening sessions without end costs the tenant its own oldest ones, and its neighbours nothing of their shares.
#[tokio::test(start_paused = true)]
async fn sessions_without_end_cost_their_own_tenant() {
    let (pool, _) = pool(6);
    let (greedy, modest) = (sessions("greedy", Work::Sleep(ms(1))), sessions("modest", Work::Sleep(ms(1))));
    open(&pool, &modest, 2).await;
    open(&pool, &greedy, 40).await;
    assert_eq!(kept(&pool, &modest, &[0, 1]).await, [true, true]);
    assert_eq!(kept(&pool, &greedy, &[36, 37, 38, 39]).await, [true; 4], "the last ones stay");
    // Up to its share a neighbour gets what the other has too much.
    assert_eq!(call_in(&pool, &modest, 2).await, Ok(()));
    open(&pool, &greedy, 40).await;
    assert_eq!(kept(&pool, &modest, &[0, 1, 2]).await, [true; 3], "and keeps it");
    // Several at it have no more.
    for colluding in ["a", "b"] {
        open(&pool, &sessions(colluding, Work::Sleep(ms(1))), 20).await;
    }
    assert_eq!(kept(&pool, &modest, &[2]).await, [true], "a quarter of six");
}

/// A tenant with three times the weight has three quarters.
#[tokio::test(start_paused = true)]
async fn shares_of_idle_memory_follow_the_weights() {
    let (pool, _) = pool(8);
    pool.set_weight("heavy", 3);
    let (light, heavy) = (sessions("light", Work::Sleep(ms(1))), sessions("heavy", Work::Sleep(ms(1))));
    open(&pool, &light, 6).await;
    open(&pool, &heavy, 10).await;
    assert_eq!(kept(&pool, &heavy, &[4, 5, 6, 7, 8, 9]).await, [true; 6]);
    assert_eq!(kept(&pool, &light, &[4, 5]).await, [true; 2]);
}

#[tokio::test(start_paused = true)]
async fn what_is_at_work_does_not_give_way() {
    let (pool, seen) = pool(4);
    let busy = [sessions("one", Work::Sleep(ms(3000))), sessions("two", Work::Sleep(ms(3000)))];
    let mut callers = Vec::new();
    for server in &busy {
        for session in 0..2 {
            let (pool, server) = (pool.clone(), server.clone());
            callers.push(tokio::spawn(async move { call_in(&pool, &server, session).await }));
        }
    }
    tokio::time::sleep(ms(100)).await;
    assert_eq!(seen.inside.load(Ordering::SeqCst), 4);
    let third = server("three", Work::Sleep(ms(1)));
    assert_eq!(call(&pool, &third).await.outcome.map_err(|failure| failure.code).err(), Some(Code::Busy));
    for caller in callers {
        assert_eq!(caller.await.expect("no panic"), Ok(()));
    }
    assert_eq!(pool.totals().grown, 4, "each call ended where it began");
    assert!(call(&pool, &third).await.outcome.is_ok(), "then there is room");
}

/// Who waits gets what becomes idle meanwhile.
#[tokio::test(start_paused = true)]
async fn what_becomes_idle_gives_way_to_who_waits() {
    let (pool, _) = pool(2);
    for tenant in ["one", "two"] {
        let (pool, server) = (pool.clone(), sessions(tenant, Work::Sleep(ms(300))));
        tokio::spawn(async move { call_in(&pool, &server, 0).await });
    }
    tokio::time::sleep(ms(1)).await;
    let answer = call(&pool, &server("three", Work::Sleep(ms(1)))).await;
    assert!(answer.outcome.is_ok());
    assert!(answer.receipt.wait_us >= 250_000, "it waited for the end of a call");
}

/// A call that stands in line for the compartment of its session finds it when its turn comes, also when another one
/// needed memory before.
#[tokio::test(start_paused = true)]
async fn a_session_whose_next_call_waits_is_not_idle() {
    let wall = Cardboard { memory_mb: Some(NEED * 2), ..Cardboard::new() };
    let (pool, _) = wall.pool(PoolSettings { patience: Duration::from_secs(60), ..turns(1, 1) });
    let (waits, long) = (sessions("one", Work::Compute(ms(100))), sessions("two", Work::Compute(ms(100))));
    let third = server("three", Work::Compute(ms(1)));
    open(&pool, &waits, 1).await;
    let mut callers = Vec::new();
    for server in [&long, &waits, &third] {
        let (pool, server) = (pool.clone(), server.clone());
        callers.push(tokio::spawn(async move { call_in(&pool, &server, 0).await }));
        tokio::time::sleep(ms(1)).await;
    }
    for caller in callers {
        assert_eq!(caller.await.expect("no panic"), Ok(()));
    }
    assert_eq!(pool.totals().grown, 3, "one for each server");
}

/// To give way is no fault: nobody is paused for it.
#[tokio::test(start_paused = true)]
async fn giving_way_again_and_again_pauses_nobody() {
    let (pool, _) = pool(2);
    let servers = ["one", "two", "three"].map(|tenant| sessions(tenant, Work::Sleep(ms(1))));
    for round in 0..20 {
        for server in &servers {
            assert_eq!(call_in(&pool, server, 0).await, Ok(()), "round {round}");
        }
        tokio::time::sleep(ms(1500)).await;
    }
    assert!(pool.totals().kills.contains(&(Code::Busy, 58)), "{:?}", pool.totals().kills);
}

/// Nothing is left of what gave way, and all comes back.
#[tokio::test(start_paused = true)]
async fn memory_comes_back_from_what_gave_way() {
    let (pool, seen) = pool(3);
    let servers = ["one", "two", "three", "four"].map(|tenant| sessions(tenant, Work::Sleep(ms(1))));
    for session in 0..20 {
        for server in &servers {
            assert_eq!(call_in(&pool, server, session).await, Ok(()));
            tokio::task::yield_now().await;
            assert!(seen.standing.load(Ordering::SeqCst) <= 3 + 1, "what gave way is gone");
        }
    }
    tokio::time::sleep(Duration::from_secs(400)).await;
    assert_eq!((pool.state().shared, seen.standing.load(Ordering::SeqCst)), (0, 0));
    open(&pool, &sessions("five", Work::Sleep(ms(1))), 2).await;
}
