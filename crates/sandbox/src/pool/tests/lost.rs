//! Calls whose compartments are lost: tried again while nothing has happened outside, and paid for each time.

use super::wall::{Cardboard, Work, call, ms, server, server_with, turns};
use crate::{Code, PoolSettings};
use policy::Boundary;
use std::sync::atomic::Ordering;

#[tokio::test(start_paused = true)]
async fn each_attempt_is_paid_for() {
    let (pool, _) = Cardboard::new().pool(turns(4, 4));
    let answer = call(&pool, &server("acme", Work::Lose(ms(100)))).await;
    assert_eq!(answer.outcome.expect_err("all are lost").code, Code::CompartmentLost);
    assert_eq!((answer.receipt.cpu_us, answer.receipt.log_bytes), (300_000, 3));
}

#[tokio::test(start_paused = true)]
async fn who_has_connected_is_not_tried_again() {
    let (pool, _) = Cardboard::new().pool(turns(4, 4));
    let answer = call(&pool, &server("acme", Work::ConnectAndLose(ms(100)))).await;
    assert_eq!(answer.outcome.expect_err("it is lost").code, Code::CompartmentLost);
    assert_eq!(answer.receipt.time_us, 100_000);
}

#[tokio::test(start_paused = true)]
async fn a_spare_that_is_known_to_be_dead_costs_no_attempt() {
    let (pool, seen) = Cardboard::new().pool(PoolSettings { spares: 8, ..turns(4, 4) });
    let server = server("acme", Work::Compute(ms(1)));
    assert!(call(&pool, &server).await.outcome.is_ok());
    tokio::time::sleep(ms(10)).await;
    assert!(pool.state().spares > 1);
    seen.blows.fetch_add(1, Ordering::SeqCst);
    let answer = call(&pool, &server).await;
    assert!(answer.outcome.is_ok());
    assert_eq!(answer.receipt.log_bytes, 1, "one attempt");
}

/// What took a call's compartment at 10 ms took those that were growing beside it.
#[tokio::test(start_paused = true)]
async fn what_grew_beside_a_lost_compartment_is_no_spare() {
    let wall = Cardboard { grow: ms(100), ..Cardboard::new() };
    let (pool, seen) = wall.pool(PoolSettings { spares: 8, ..turns(4, 4) });
    let server = server("acme", Work::Compute(ms(20)));
    assert!(call(&pool, &server).await.outcome.is_ok());
    tokio::time::sleep(ms(300)).await;
    let before = pool.state().spares;
    assert!(before > 0);
    // Another takes a spare's place, and one more is wanted: that one grows.
    assert!(call(&pool, &server).await.outcome.is_ok());
    let (pool_too, server_too) = (pool.clone(), server.clone());
    let caller = tokio::spawn(async move { call(&pool_too, &server_too).await });
    tokio::time::sleep(ms(10)).await;
    assert!(seen.growing.load(Ordering::SeqCst) > 0, "something grows beside it");
    seen.blows.fetch_add(1, Ordering::SeqCst);
    assert!(caller.await.expect("no panic").outcome.is_ok());
    // The call was tried again in one that it grew itself, and by then what grew beside it is ready.
    assert_eq!(pool.state().spares, 0);
}

/// A server can end itself as if somebody had killed it. Once or twice it is believed.
#[tokio::test(start_paused = true)]
async fn what_is_lost_again_and_again_while_it_starts_is_given_a_rest() {
    let (pool, seen) = Cardboard { loses_seeds: true, ..Cardboard::new() }.pool(turns(4, 4));
    let server = server("acme", Work::Sleep(ms(1)));
    for _ in 0..10 {
        assert_eq!(call(&pool, &server).await.outcome.expect_err("it is lost").code, Code::CompartmentLost);
    }
    assert_eq!(seen.planted.load(Ordering::SeqCst), 4);
    tokio::time::sleep(ms(5000)).await;
    assert!(call(&pool, &server).await.outcome.is_err());
    assert_eq!(seen.planted.load(Ordering::SeqCst), 5, "then it is tried again");
}

/// No caller hears of it, so the host must.
#[tokio::test(start_paused = true)]
async fn what_is_ended_between_calls_is_counted_once() {
    let (pool, seen) = Cardboard::new().pool(turns(4, 4));
    let server = server_with("acme", Work::Sleep(ms(1)), Boundary::Server);
    let kills = || pool.totals().kills.iter().find(|(code, _)| *code == Code::CpuLimit).map_or(0, |(_, count)| *count);
    assert!(call(&pool, &server).await.outcome.is_ok());
    // Found by the next caller, who gets another one.
    seen.to_end.store(1, Ordering::SeqCst);
    assert!(call(&pool, &server).await.outcome.is_ok());
    assert!(call(&pool, &server).await.outcome.is_ok());
    assert_eq!((kills(), pool.totals().grown), (1, 2));
    // Found without any.
    seen.to_end.store(1, Ordering::SeqCst);
    tokio::time::sleep(ms(3000)).await;
    assert_eq!(kills(), 2);
}
