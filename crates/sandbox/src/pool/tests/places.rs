//! Bounds on who may run and who may wait, and who hears "busy".

use super::wall::{Cardboard, Work, call, flood, ms, server, turns};
use crate::{Code, PoolSettings, PoolState};
use std::sync::atomic::Ordering;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn one_tenant_leaves_places_to_others() {
    let settings = PoolSettings { running: 8, running_per_tenant: 6, ..turns(100, 100) };
    let (pool, seen) = Cardboard::new().pool(settings);
    flood(&pool, &server("loud", Work::Ask(ms(1000))), 50);
    tokio::time::sleep(ms(100)).await;
    assert_eq!((pool.state().running, pool.state().waiting, pool.state().longest_line), (6, 44, 44));
    let answer = call(&pool, &server("quiet", Work::Ask(ms(1)))).await;
    assert_eq!((answer.outcome.is_ok(), answer.receipt.wait_us), (true, 0));
    assert_eq!(seen.most_inside.load(Ordering::SeqCst), 7);
}

/// The line is full of a loud tenant's callers: one of those goes, and not the quiet tenant's.
#[tokio::test(start_paused = true)]
async fn a_full_line_is_shortened_where_it_is_longest() {
    let settings = PoolSettings { running: 2, waiting: 10, running_per_tenant: 2, ..turns(100, 100) };
    let (pool, _) = Cardboard::new().pool(settings);
    pool.set_weight("heavy", 4);
    let loud = server("loud", Work::Ask(ms(1000)));
    let heavy = server("heavy", Work::Ask(ms(1000)));
    let start = |server: &std::sync::Arc<crate::Deployment>| {
        let (pool, server) = (pool.clone(), server.clone());
        tokio::spawn(async move { call(&pool, &server).await })
    };
    let mut callers: Vec<_> = (0..8).map(|_| start(&loud)).collect();
    tokio::task::yield_now().await;
    let heavies: Vec<_> = (0..4).map(|_| start(&heavy)).collect();
    tokio::time::sleep(ms(10)).await;
    assert_eq!((pool.state().running, pool.state().waiting, pool.state().longest_line), (2, 10, 6));
    let newest = callers.pop().expect("eight");
    let quiet = start(&server("quiet", Work::Ask(ms(1))));
    tokio::time::sleep(ms(10)).await;
    assert!(newest.is_finished(), "6 in line with weight 1 are more than 4 with weight 4");
    let answer = newest.await.expect("no panic");
    let failure = answer.outcome.expect_err("it had to go");
    assert_eq!(failure.code, Code::Busy);
    assert!(failure.message.contains("this host is busy"), "{}", failure.message);
    // Its own tenant's line is the longest now, so the next of that tenant goes at once.
    assert_eq!(call(&pool, &loud).await.outcome.expect_err("no room").code, Code::Busy);
    for caller in callers.into_iter().chain(heavies).chain([quiet]) {
        assert!(caller.await.expect("no panic").outcome.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn one_tenants_line_is_bounded() {
    let settings = PoolSettings { running: 1, waiting_per_tenant: 3, waiting_per_deployment: 2, ..turns(100, 100) };
    let (pool, _) = Cardboard::new().pool(settings);
    let servers: Vec<_> = (0..3).map(|_| server("loud", Work::Ask(ms(1000)))).collect();
    let callers = [0, 0, 0, 0, 1, 1].map(|n: usize| {
        let (pool, server) = (pool.clone(), servers[n].clone());
        tokio::spawn(async move { call(&pool, &server).await.outcome.map_err(|failure| failure.message) })
    });
    let mut heard = Vec::new();
    for caller in callers {
        heard.push(caller.await.expect("no panic"));
    }
    let busy = |n: usize, whose: &str| heard[n].as_ref().is_err_and(|message| message.contains(whose));
    assert!(heard[0].is_ok() && heard[1].is_ok() && heard[2].is_ok() && heard[4].is_ok(), "{heard:?}");
    assert!(busy(3, "this server is busy") && busy(5, "this tenant is busy"), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn who_waited_in_vain_hears_how_long() {
    let settings = PoolSettings { running: 1, patience: ms(700), ..turns(100, 100) };
    let (pool, _) = Cardboard::new().pool(settings);
    flood(&pool, &server("loud", Work::Ask(Duration::from_secs(10))), 1);
    tokio::time::sleep(ms(1)).await;
    let answer = call(&pool, &server("quiet", Work::Ask(ms(1)))).await;
    assert_eq!(answer.outcome.expect_err("no place").code, Code::Busy);
    assert!((700_000..701_500).contains(&answer.receipt.wait_us), "{:?}", answer.receipt);
    assert_eq!(answer.receipt.wait_us, answer.receipt.time_us);
    let totals = pool.totals();
    assert_eq!((totals.calls, totals.busy, totals.waited.as_millis()), (1, 1, 700));
}

#[tokio::test(start_paused = true)]
async fn a_closed_pool_finishes_what_runs_and_refuses_the_rest() {
    let (pool, _) = Cardboard::new().pool(PoolSettings { running: 2, ..turns(1, 1) });
    let server = server("acme", Work::Ask(ms(100)));
    let callers: Vec<_> = (0..5)
        .map(|_| {
            let (pool, server) = (pool.clone(), server.clone());
            tokio::spawn(async move { call(&pool, &server).await.outcome.map_err(|failure| failure.code) })
        })
        .collect();
    tokio::time::sleep(ms(10)).await;
    pool.close();
    assert_eq!(call(&pool, &server).await.outcome.expect_err("closed").code, Code::Busy);
    let mut heard = Vec::new();
    for caller in callers {
        heard.push(caller.await.expect("no panic").is_ok());
    }
    assert_eq!(heard, [true, true, false, false, false]);
    assert_eq!(PoolState { deployments: 0, ..pool.state() }, PoolState::default());
}

/// A tenant with many servers makes room for its own new ones.
#[tokio::test(start_paused = true)]
async fn many_servers_cost_others_none_of_theirs() {
    let (pool, _) = Cardboard::new().pool(PoolSettings { deployments: 4, ..turns(4, 4) });
    let quiet = server("quiet", Work::Compute(ms(1)));
    assert!(call(&pool, &quiet).await.outcome.is_ok());
    for _ in 0..20 {
        assert!(call(&pool, &server("loud", Work::Compute(ms(1)))).await.outcome.is_ok());
        assert!(pool.state().deployments <= 4);
    }
    let planted = pool.totals().plants;
    assert!(call(&pool, &quiet).await.outcome.is_ok());
    assert_eq!(pool.totals().plants, planted, "the quiet tenant's server was let go");
}
