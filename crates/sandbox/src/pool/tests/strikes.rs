//! Processes that are ended while no call is in them: nobody hears of the first, then the deployment is paused.

use super::wall::{Cardboard, Seen, Work, call, ms, server, server_with, turns};
use crate::{Code, Deployment, Failure, Pool, PoolSettings};
use policy::Boundary;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn pool() -> (Arc<Pool>, Arc<Seen>) {
    Cardboard::new().pool(PoolSettings { spares: 4, ..turns(4, 4) })
}

/// The next compartment that is looked at is found ended, and some time passes.
async fn end_one(seen: &Seen) {
    seen.to_end.store(1, Ordering::SeqCst);
    tokio::time::sleep(ms(1100)).await;
    assert_eq!(seen.to_end.load(Ordering::SeqCst), 0, "it was looked at");
}

async fn fails(pool: &Pool, server: &Arc<Deployment>) -> Option<Failure> {
    call(pool, server).await.outcome.err()
}

#[tokio::test(start_paused = true)]
async fn a_spare_that_is_ended_again_and_again_pauses_its_deployment() {
    let (pool, seen) = pool();
    let (hostile, other) = (server("acme", Work::Compute(ms(1))), server("acme", Work::Compute(ms(1))));
    assert_eq!(fails(&pool, &hostile).await, None);
    tokio::time::sleep(ms(10)).await;
    assert!(pool.state().spares > 0);
    end_one(&seen).await;
    assert_eq!(fails(&pool, &hostile).await, None, "once is no reason");
    tokio::time::sleep(ms(10)).await;
    end_one(&seen).await;
    let failure = fails(&pool, &hostile).await.expect("it is paused");
    assert_eq!(failure.code, Code::CpuLimit);
    assert!(failure.message.contains("paused for 1 s"), "{failure}");
    assert_eq!(fails(&pool, &other).await, None, "others of the tenant are not");
    tokio::time::sleep(ms(1000)).await;
    assert_eq!(fails(&pool, &hostile).await, None, "then it is tried again");
    tokio::time::sleep(ms(10)).await;
    pool.release(&other.id);
    end_one(&seen).await;
    let failure = fails(&pool, &hostile).await.expect("it is paused");
    assert!(failure.message.contains("paused for 2 s"), "longer each time: {failure}");
}

#[tokio::test(start_paused = true)]
async fn so_does_a_shared_compartment() {
    let (pool, seen) = pool();
    let server = server_with("acme", Work::Compute(ms(1)), Boundary::Server);
    for _ in 0..2 {
        assert_eq!(fails(&pool, &server).await, None);
        end_one(&seen).await;
    }
    assert_eq!(fails(&pool, &server).await.map(|failure| failure.code), Some(Code::CpuLimit));
}

/// Who computes outside calls comes later with them.
#[test]
fn what_is_used_outside_calls_is_paid_for() {
    use crate::pool::fair::{Entered, Fair, FairLimits, TURN, Want, Word};
    let mut fair = Fair::new(FairLimits { turns: TURN, turns_per_tenant: TURN, ..turns(1, 1).calls(None) });
    let Entered::Now(held, charged) = fair.enter("third", Want::Turn, TURN) else { panic!("nobody else is there") };
    fair.charge("hostile", 1e6);
    let Entered::Wait(_, mut hostile) = fair.enter("hostile", Want::Turn, TURN) else { panic!("it is taken") };
    let Entered::Wait(_, mut quiet) = fair.enter("quiet", Want::Turn, TURN) else { panic!("it is taken") };
    fair.end_turn(&held, charged, 1.0);
    assert!(matches!(quiet.try_recv(), Ok(Word::Come(_))), "it came later and goes first");
    assert!(hostile.try_recv().is_err());
}

/// A wall may have compartments give way to other tenants. They have done nothing wrong.
#[tokio::test(start_paused = true)]
async fn what_gave_way_is_no_reason_for_a_pause() {
    let (pool, seen) = pool();
    let server = server_with("acme", Work::Compute(ms(1)), Boundary::Server);
    seen.gave_way.store(true, Ordering::SeqCst);
    for time in 0..5 {
        assert_eq!(fails(&pool, &server).await, None, "time {time}");
        end_one(&seen).await;
    }
    let kills = pool.totals().kills;
    assert!(kills.contains(&(Code::Busy, 5)) && kills.contains(&(Code::CpuLimit, 0)), "{kills:?}");
}
