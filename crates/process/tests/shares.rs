//! One tenant never keeps the memory of the whole wall from another.

mod support;

use policy::Boundary;
use process::{ProcessSettings, ProcessWall};
use sandbox::{Answer, Code, Deployment, Pool, PoolSettings, Request};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use support::{Ear, PATIENCE, Server, ask, tool, value};

/// Programs that the wall below has memory for.
const ROOM: usize = 4;
const EACH_MB: u64 = 64;

fn wall() -> Arc<Pool> {
    wall_with(0)
}

/// With so many spares. Nobody waits for a turn: sleeping calls are many here.
fn wall_with(warm: usize) -> Arc<Pool> {
    let settings = ProcessSettings { memory_mb: EACH_MB * ROOM as u64, warm, ..ProcessSettings::default() };
    let wall = ProcessWall::start(settings).expect("a wall");
    let settings =
        PoolSettings { spares: 0, patience: PATIENCE, turns: 64, turns_per_tenant: 48, ..PoolSettings::default() };
    Arc::new(Pool::new(Arc::new(wall), settings))
}

fn server(tenant: &'static str) -> Arc<Deployment> {
    let small = |limits: &mut policy::Limits| (limits.memory_mb, limits.scratch_mb) = (EACH_MB, 1);
    Server::new("honest.py", &[]).of(tenant).boundary(Boundary::Session).limit(small).deploy()
}

async fn call(pool: &Pool, server: &Arc<Deployment>, session: usize, input: Value) -> Answer {
    let request = Request { session: Some(format!("session-{session}")), ..tool("run", &input) };
    ask(pool, server, &request, &Ear::named("nobody")).await
}

/// How many calls the program of this session has served: 1 in a new one.
async fn count(pool: &Pool, server: &Arc<Deployment>, session: usize) -> Result<Value, Code> {
    let answer = call(pool, server, session, json!({ "do": "count" })).await;
    answer.outcome.map(|bytes| value(&bytes)).map_err(|failure| failure.code)
}

#[tokio::test]
async fn idle_programs_give_way_to_another_tenant() {
    let (pool, greedy, modest) = (wall(), server("greedy"), server("modest"));
    for session in 0..ROOM {
        assert_eq!(count(&pool, &greedy, session).await, Ok(json!(1)), "alone, a tenant has all there is");
    }
    assert_eq!(count(&pool, &greedy, ROOM).await, Err(Code::Busy), "its own sessions do not end for its next one");
    assert_eq!(count(&pool, &modest, 0).await, Ok(json!(1)), "another tenant has room");
    assert_eq!(count(&pool, &modest, 1).await, Ok(json!(1)), "up to its share");
    assert_eq!(count(&pool, &modest, 2).await, Err(Code::Busy), "and no further");
    for session in 2..ROOM {
        assert_eq!(count(&pool, &greedy, session).await, Ok(json!(2)), "those used last go on");
    }
    assert_eq!(count(&pool, &greedy, 0).await, Err(Code::Busy), "those used first have ended");
    assert_eq!(count(&pool, &modest, 0).await, Ok(json!(2)), "who has its share keeps it");
}

/// A tenant with weight 3 beside one with weight 1 has three quarters.
#[tokio::test]
async fn shares_follow_the_weights() {
    let (pool, light, heavy) = (wall(), server("light"), server("heavy"));
    pool.set_weight("heavy", 3);
    for session in 0..ROOM {
        assert_eq!(count(&pool, &light, session).await, Ok(json!(1)));
    }
    for session in 0..ROOM - 1 {
        assert_eq!(count(&pool, &heavy, session).await, Ok(json!(1)), "session {session}");
    }
    assert_eq!(count(&pool, &heavy, ROOM).await, Err(Code::Busy));
    assert_eq!(count(&pool, &light, ROOM - 1).await, Ok(json!(2)), "the last one of the light tenant stays");
}

/// Calls in flight end by themselves, and their program ends then; it takes no further call.
#[tokio::test]
async fn calls_in_flight_are_not_ended_for_another_tenant() {
    let (pool, greedy, modest) = (wall(), server("greedy"), server("modest"));
    for session in 0..ROOM {
        assert_eq!(count(&pool, &greedy, session).await, Ok(json!(1)));
    }
    let busy: Vec<_> = (0..ROOM)
        .map(|session| {
            let (pool, greedy) = (pool.clone(), greedy.clone());
            tokio::spawn(async move { call(&pool, &greedy, session, json!({ "do": "sleep", "for": 2 })).await })
        })
        .collect();
    while pool.state().running < ROOM {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(count(&pool, &modest, 0).await, Ok(json!(1)), "a call that ended made room");
    for call in busy {
        call.await.expect("no panic").outcome.expect("no call was ended");
    }
}

/// Calls that overlap without end keep a program busy, and the room from nobody.
#[tokio::test]
async fn a_program_that_is_never_idle_gives_way() {
    let (pool, greedy, modest) = (wall(), server("greedy"), server("modest"));
    for session in 0..ROOM {
        assert_eq!(count(&pool, &greedy, session).await, Ok(json!(1)));
    }
    let mut busy = tokio::task::JoinSet::new();
    for lane in 0..ROOM * 2 {
        let (pool, greedy) = (pool.clone(), greedy.clone());
        busy.spawn(async move {
            tokio::time::sleep(Duration::from_millis(200 * (lane / ROOM) as u64)).await;
            loop {
                let input = json!({ "do": "sleep", "for": 0.4 });
                if call(&pool, &greedy, lane % ROOM, input).await.outcome.is_err() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        });
    }
    while pool.state().running < ROOM * 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut heard = Vec::new();
    // Whoever hears `busy` tries again, as it is told.
    while heard.len() < 5 && !heard.contains(&Ok(json!(1))) {
        heard.push(count(&pool, &modest, 0).await);
    }
    assert!(heard.contains(&Ok(json!(1))), "{heard:?}");
    busy.shutdown().await;
}

/// Programs that only wait ready are no reason to refuse anybody, their own tenant included.
#[tokio::test]
async fn spares_give_way_first() {
    let (pool, greedy, modest) = (wall_with(2), server("greedy"), server("modest"));
    for session in 0..ROOM {
        assert_eq!(count(&pool, &greedy, session).await, Ok(json!(1)), "its own spares are in nobody's way");
    }
    assert_eq!(count(&pool, &modest, 0).await, Ok(json!(1)));
}
