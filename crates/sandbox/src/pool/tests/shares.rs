//! When there is not enough for all, each tenant gets its share.

use super::wall::{Cardboard, Work, call, flood, ms, server, turns};
use crate::PoolSettings;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn within(name: &str, is: f64, should_be: f64, tolerance: f64) {
    assert!((is / should_be - 1.0).abs() < tolerance, "{name}: {is:.3} instead of {should_be:.3}");
}

#[tokio::test(start_paused = true)]
async fn shares_follow_weights() {
    let (pool, _) = Cardboard::new().pool(turns(4, 4));
    let weights = [1, 2, 4, 0];
    let served: Vec<_> = weights
        .iter()
        .enumerate()
        .map(|(n, weight)| {
            let tenant = format!("tenant-{n}");
            pool.set_weight(&tenant, *weight);
            flood(&pool, &server(&tenant, Work::Compute(ms(10))), 30)
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let counts: Vec<f64> = served.iter().map(|served| served.load(Ordering::SeqCst) as f64).collect();
    let all: f64 = counts.iter().sum();
    within("nothing is lost", all, 4.0 * 100.0 * 60.0, 0.02);
    for (count, weight) in counts.iter().zip(weights) {
        within(&format!("weight {weight}"), *count / all, f64::from(weight.max(1)) / 8.0, 0.02);
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_weight_holds_from_then_on() {
    let (pool, _) = Cardboard::new().pool(turns(2, 2));
    let (one, two) = (server("one", Work::Compute(ms(10))), server("two", Work::Compute(ms(10))));
    let (ones, twos) = (flood(&pool, &one, 10), flood(&pool, &two, 10));
    tokio::time::sleep(Duration::from_secs(10)).await;
    pool.set_weight("two", 3);
    let before = (ones.load(Ordering::SeqCst), twos.load(Ordering::SeqCst));
    within("equal at first", before.1 as f64, before.0 as f64, 0.02);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let (ones, twos) = (ones.load(Ordering::SeqCst) - before.0, twos.load(Ordering::SeqCst) - before.1);
    within("three to one", twos as f64 / ones as f64, 3.0, 0.03);
}

/// What counts is the time, not the number of calls.
#[tokio::test(start_paused = true)]
async fn long_calls_earn_no_more_than_short_ones() {
    let (pool, _) = Cardboard::new().pool(turns(4, 4));
    let short = flood(&pool, &server("short", Work::Compute(ms(2))), 40);
    let long = flood(&pool, &server("long", Work::Compute(ms(50))), 40);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let (short, long) = (short.load(Ordering::SeqCst) * 2, long.load(Ordering::SeqCst) * 50);
    within("time of the short ones", short as f64, long as f64, 0.05);
}

/// Many servers are not many tenants.
#[tokio::test(start_paused = true)]
async fn many_servers_earn_no_more_than_one() {
    let (pool, _) = Cardboard::new().pool(turns(4, 4));
    let one = flood(&pool, &server("one", Work::Compute(ms(10))), 20);
    let many: Vec<_> = (0..10).map(|_| flood(&pool, &server("many", Work::Compute(ms(10))), 20)).collect();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let many: Vec<_> = many.iter().map(|served| served.load(Ordering::SeqCst) as f64).collect();
    within("one", one.load(Ordering::SeqCst) as f64, many.iter().sum(), 0.03);
    for served in &many {
        within("first come, first served within a tenant", *served, many[0], 0.1);
    }
}

/// Places are shared like turns when it is places that are scarce.
#[tokio::test(start_paused = true)]
async fn scarce_places_are_shared_as_well() {
    let settings = PoolSettings { running: 8, running_per_tenant: 8, ..turns(100, 100) };
    let (pool, _) = Cardboard::new().pool(settings);
    pool.set_weight("two", 3);
    let one = flood(&pool, &server("one", Work::Ask(ms(500))), 40);
    let two = flood(&pool, &server("two", Work::Ask(ms(100))), 40);
    tokio::time::sleep(Duration::from_secs(120)).await;
    let (one, two) = (one.load(Ordering::SeqCst) * 500, two.load(Ordering::SeqCst) * 100);
    within("three to one", two as f64 / one as f64, 3.0, 0.1);
}

/// Who comes back after a pause has saved nothing up, and who was alone owes nobody anything.
#[tokio::test(start_paused = true)]
async fn idle_time_is_neither_credit_nor_debt() {
    let (pool, _) = Cardboard::new().pool(turns(2, 2));
    let early = server("early", Work::Compute(ms(10)));
    let early = flood(&pool, &early, 20);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let alone = early.load(Ordering::SeqCst);
    within("alone", alone as f64, 2.0 * 100.0 * 30.0, 0.02);
    let late = flood(&pool, &server("late", Work::Compute(ms(10))), 20);
    for _ in 0..5 {
        let before = (early.load(Ordering::SeqCst), late.load(Ordering::SeqCst));
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (early, late) = (early.load(Ordering::SeqCst) - before.0, late.load(Ordering::SeqCst) - before.1);
        within("from the first second on", late as f64, early as f64, 0.05);
    }
}

/// However long the flood's line: with turns kept for others a quiet tenant does not wait at all, and otherwise for
/// no longer than one call.
#[tokio::test(start_paused = true)]
async fn a_quiet_tenant_waits_for_one_call_at_most() {
    for (per_tenant, most, flooders) in [(3, 0, 1000), (4, 40, 10), (4, 40, 1000)] {
        let (pool, _) = Cardboard::new().pool(turns(4, per_tenant));
        for n in 0..3 {
            let tenants = if per_tenant == 3 { 1 } else { n + 1 };
            flood(&pool, &server(&format!("loud-{tenants}"), Work::Compute(ms(40))), flooders);
        }
        let quiet = server("quiet", Work::Compute(ms(1)));
        // Starting takes turns of its own.
        pool.seed(&quiet).await.map(drop).expect("it starts");
        for _ in 0..200 {
            tokio::time::sleep(ms(57)).await;
            let answer = call(&pool, &quiet).await;
            assert!(answer.outcome.is_ok());
            let waited = answer.receipt.wait_us;
            assert!(waited <= most * 1000 + 1000, "waited {waited} µs beside {flooders}");
        }
    }
}

/// Nobody starves beside many tenants with calls of all lengths.
#[tokio::test(start_paused = true)]
async fn nobody_starves() {
    let (pool, _) = Cardboard::new().pool(turns(3, 2));
    for n in 0..20 {
        pool.set_weight(&format!("loud-{n}"), 10);
        flood(&pool, &server(&format!("loud-{n}"), Work::Compute(ms(1 + 5 * n))), 20);
    }
    let light = flood(&pool, &server("light", Work::Compute(ms(50))), 5);
    tokio::time::sleep(Duration::from_secs(201 * 4)).await;
    // One of 201 parts of three turns.
    within("its share", light.load(Ordering::SeqCst) as f64 * 0.05, 12.0, 0.15);
}
