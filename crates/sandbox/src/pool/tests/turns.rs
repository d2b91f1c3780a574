//! Who computes has a turn, who waits has none, and who computes without one steps back.

use super::wall::{Cardboard, Work, call, flood, ms, server, server_with, turns};
use crate::PoolSettings;
use crate::pool::fair::TURN;
use policy::Boundary;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// How long so many calls at once take, and how many were inside at the same time.
async fn together(settings: PoolSettings, work: Work, boundary: Boundary, calls: usize) -> (Duration, usize, usize) {
    let (pool, seen) = Cardboard::new().pool(settings);
    let server = server_with("acme", work, boundary);
    let begin = Instant::now();
    let callers: Vec<_> = (0..calls)
        .map(|_| {
            let (pool, server) = (pool.clone(), server.clone());
            tokio::spawn(async move { call(&pool, &server).await.outcome.expect("it is served") })
        })
        .collect();
    for caller in callers {
        caller.await.expect("no panic");
    }
    let read = |count: &std::sync::atomic::AtomicUsize| count.load(Ordering::SeqCst);
    (begin.elapsed(), read(&seen.most_inside), read(&seen.stepped_back))
}

#[tokio::test(start_paused = true)]
async fn no_more_compute_than_have_turns() {
    let (took, most, stepped_back) = together(turns(6, 4), Work::Compute(ms(15)), Boundary::Call, 40).await;
    assert_eq!((most, stepped_back), (4, 0), "one tenant has four");
    assert!((ms(150)..ms(160)).contains(&took), "{took:?}");
}

/// Calls that share a process need but a part of a turn each.
#[tokio::test(start_paused = true)]
async fn calls_in_one_process_share_turns() {
    let (_, most, _) = together(turns(6, 4), Work::Compute(ms(15)), Boundary::Server, 100).await;
    assert_eq!(most, 4 * TURN);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_the_host_holds_nobody_up() {
    let (took, most, stepped_back) = together(turns(1, 1), Work::Ask(ms(1000)), Boundary::Call, 40).await;
    assert_eq!((most, stepped_back), (40, 0));
    assert!(took < ms(1010), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn who_sleeps_holds_nobody_up_for_long() {
    let (took, most, stepped_back) = together(turns(4, 4), Work::Sleep(ms(5000)), Boundary::Call, 40).await;
    assert_eq!((most, stepped_back), (40, 0));
    assert!(took < ms(5000 + 10 * 21), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn who_computes_after_its_sleep_steps_back() {
    let work = Work::SleepThenCompute(ms(300), ms(200));
    let (_, most, stepped_back) = together(turns(4, 4), work, Boundary::Call, 40).await;
    assert_eq!((most, stepped_back), (40, 40));
    let work = Work::SleepThenCompute(ms(300), ms(1));
    let (_, _, stepped_back) = together(turns(4, 4), work, Boundary::Call, 40).await;
    assert_eq!(stepped_back, 0, "a moment's work is forgiven");
}

/// A call that computes for longer than a turn lets others have theirs, and goes on behind them.
#[tokio::test(start_paused = true)]
async fn a_turn_has_an_end() {
    let settings = turns(1, 1);
    let longest = settings.turn(policy::Limits::default().cpu_ms);
    let (pool, seen) = Cardboard::new().pool(settings);
    flood(&pool, &server("loud", Work::Compute(Duration::from_secs(60))), 1);
    tokio::time::sleep(ms(1)).await;
    let answer = call(&pool, &server("quiet", Work::Compute(ms(1)))).await;
    assert!(answer.outcome.is_ok());
    let waited = Duration::from_micros(answer.receipt.wait_us);
    assert!(waited <= longest + ms(25), "{waited:?} of {longest:?}");
    assert_eq!(seen.stepped_back.load(Ordering::SeqCst), 1);
}

/// Spares take turns like calls: a tenant's flood grows no more at once than it has turns.
#[tokio::test(start_paused = true)]
async fn spares_take_turns() {
    let wall = Cardboard { grow: ms(5), ..Cardboard::new() };
    let (pool, seen) = wall.pool(PoolSettings { spares: 8, ..turns(6, 3) });
    for _ in 0..10 {
        flood(&pool, &server("loud", Work::Compute(ms(1))), 2);
    }
    let quiet = server("quiet", Work::Compute(ms(1)));
    let mut waits = Vec::new();
    for _ in 0..100 {
        tokio::time::sleep(ms(40)).await;
        waits.push(call(&pool, &quiet).await.receipt.wait_us);
    }
    // Three of the loud tenant, and at most the quiet one's call and its two growers.
    let most = seen.most_growing.load(Ordering::SeqCst);
    assert!(most <= 6, "{most} grew at once");
    assert!(waits[1..].iter().all(|wait| *wait == 0), "the quiet tenant found its spare: {waits:?}");
}

/// Servers that take long to start hold up neither others' calls nor, for long, others' starts.
#[tokio::test(start_paused = true)]
async fn starts_take_turns_of_their_own() {
    let wall = Cardboard { plant: Duration::from_secs(8), ..Cardboard::new() };
    let settings = PoolSettings { plants: 2, plants_per_tenant: 1, ..turns(4, 3) };
    let (pool, seen) = wall.pool(settings);
    let quiet = server("quiet", Work::Compute(ms(1)));
    assert!(call(&pool, &quiet).await.outcome.is_ok());
    let starting: Vec<_> = (0..12)
        .map(|n| {
            let (pool, server) = (pool.clone(), server(&format!("loud-{}", n % 3), Work::Compute(ms(1))));
            tokio::spawn(async move { call(&pool, &server).await })
        })
        .collect();
    tokio::time::sleep(ms(10)).await;
    assert_eq!(seen.planting.load(Ordering::SeqCst), 2);
    let answer = call(&pool, &quiet).await;
    assert_eq!((answer.outcome.is_ok(), answer.receipt.wait_us), (true, 0));
    let other = call(&pool, &server("other", Work::Compute(ms(1)))).await;
    let waited = Duration::from_micros(other.receipt.wait_us);
    assert!(waited <= Duration::from_secs(8) + ms(1200), "one start's turn, then its own: {waited:?}");
    for caller in starting {
        assert!(caller.await.expect("no panic").outcome.is_ok());
    }
}

/// A call whose process goes on asking after its answer holds nothing any more.
#[tokio::test(start_paused = true)]
async fn who_goes_away_in_a_host_call_gives_all_back() {
    let (pool, _) = Cardboard::new().pool(PoolSettings { running: 1, ..turns(1, 1) });
    let server = server("acme", Work::Ask(Duration::from_secs(10)));
    for after in [0, 1, 9_999, 10_000] {
        let call = call(&pool, &server);
        let _ = tokio::time::timeout(ms(after), call).await;
        assert_eq!(pool.state().running, 0);
    }
    let (pool, server) = (Arc::clone(&pool), super::wall::server("acme", Work::Compute(ms(1))));
    assert_eq!(call(&pool, &server).await.receipt.wait_us, 0);
}
