//! Calls whose compartments are lost: tried again while nothing has happened outside, and paid for each time.

use super::wall::{Cardboard, Work, call, ms, server, turns};
use crate::Code;
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
