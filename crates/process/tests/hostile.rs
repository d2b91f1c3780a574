//! Servers that mean harm, each a real one in a real jail.

mod support;

use policy::Boundary;
use sandbox::Code;
use serde_json::json;
use support::{Ear, Server, ask, fails, pool, run, tool, until_nothing_is_left};

fn server(what: &str) -> Server {
    Server::new("hostile.py", &[what])
}

#[tokio::test]
async fn floods_end_at_the_log_limit() {
    for what in ["flood", "noise", "pings", "empties"] {
        let failure = fails(server(what)).await;
        assert_eq!(failure.code, Code::LogLimit, "{what}: {failure}");
    }
}

#[tokio::test]
async fn who_hangs_up_with_its_answer_is_charged_all_the_same() {
    let (pool, deployment) = (pool(), server("parting").boundary(Boundary::Call).deploy());
    let answer = ask(&pool, &deployment, &tool("run", &json!({})), &Ear::named("nobody")).await;
    assert_eq!(support::value(&answer.outcome.expect("it answers first")), "farewell");
    assert!(answer.receipt.cpu_us > 200_000, "{:?}", answer.receipt);
}

/// It is tried again as one that is innocent would be, and pays for each time.
#[tokio::test]
async fn who_seems_to_be_lost_is_charged_for_each_attempt() {
    let (pool, deployment) = (pool(), server("lost").boundary(Boundary::Call).deploy());
    let answer = ask(&pool, &deployment, &tool("run", &json!({})), &Ear::named("nobody")).await;
    assert_eq!(answer.outcome.expect_err("it never answers").code, Code::CompartmentLost);
    assert!(answer.receipt.cpu_us > 500_000, "{:?}", answer.receipt);
}

#[tokio::test]
async fn half_a_message_is_waited_for_until_the_time_limit() {
    let failure = fails(server("half").limit(|limits| limits.time_ms = 1000)).await;
    assert_eq!(failure.code, Code::TimeLimit, "{failure}");
}

#[tokio::test]
async fn a_giant_message_is_not_read_to_its_end() {
    let failure = fails(server("giant")).await;
    assert_eq!(failure.code, Code::ProtocolViolation, "{failure}");
    assert!(failure.message.contains("a message of more than"), "{failure}");
}

#[tokio::test]
async fn answers_that_nobody_asked_for_are_dropped_and_counted() {
    let (pool, server) = (pool(), server("unasked").deploy());
    assert_eq!(run(&pool, &server, json!({ "count": 50 })).await, Ok(json!("still here")));
    let failure = run(&pool, &server, json!({ "count": 60 })).await.expect_err("110 in all");
    assert_eq!(failure.code, Code::ProtocolViolation, "{failure}");
    assert_eq!(run(&pool, &server, json!({ "count": 1 })).await, Ok(json!("still here")), "the next one is innocent");
}

#[tokio::test]
async fn a_fork_bomb_is_bounded_and_leaves_nothing() {
    let bomb = server("bomb").limit(|limits| (limits.time_ms, limits.cpu_ms) = (3000, 60_000));
    let (pool, deployment) = (pool(), bomb.deploy());
    let bombing = tokio::spawn({
        let (pool, deployment) = (pool.clone(), deployment.clone());
        async move { run(&pool, &deployment, json!({})).await }
    });
    let mut most = 0;
    while !bombing.is_finished() {
        most = most.max(support::processes::below(std::process::id()).len());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let failure = bombing.await.expect("no panic").expect_err("it never answers");
    assert!(matches!(failure.code, Code::TimeLimit | Code::CpuLimit | Code::MemoryLimit), "{failure}");
    assert!((3..=60).contains(&most), "{most} processes");
    drop((pool, deployment));
    until_nothing_is_left().await;
}

#[tokio::test]
async fn who_ignores_signals_and_who_hides_is_ended_with_the_pool() {
    for what in ["stubborn", "fugitive"] {
        let (pool, deployment) = (pool(), server(what).deploy());
        run(&pool, &deployment, json!({})).await.unwrap_or_else(|failure| panic!("{what}: {failure}"));
        let living = support::processes::below(std::process::id()).len();
        assert!(living >= 3, "{what}: {living} processes");
        drop((pool, deployment));
        until_nothing_is_left().await;
    }
}

#[tokio::test]
async fn a_server_that_dies_at_its_start_shows_its_last_words() {
    let failure = fails(server("dies")).await;
    assert_eq!(failure.code, Code::InitFailed);
    assert!(failure.message.contains("exit 3") && failure.message.contains("no such thing"), "{failure}");
}

#[tokio::test]
async fn a_banner_on_standard_output_is_tolerated_and_a_flood_is_not() {
    let (pool, deployment) = (pool(), server("banner").deploy());
    assert_eq!(run(&pool, &deployment, json!({ "count": 0 })).await, Ok(json!("still here")));
    drop((pool, deployment));
    let failure = fails(server("banners")).await;
    assert_eq!(failure.code, Code::InitFailed, "{failure}");
}

#[tokio::test]
async fn a_rug_pull_is_the_answer_to_its_call() {
    for boundary in [Boundary::Call, Boundary::Server] {
        let (pool, deployment) = (pool(), server("rug").shows(&["run"]).boundary(boundary).deploy());
        assert_eq!(run(&pool, &deployment, json!({ "tools": ["run"] })).await, Ok(json!("as ever")), "{boundary:?}");
        let failure = run(&pool, &deployment, json!({ "tools": ["run", "extra"] })).await.expect_err("another surface");
        assert_eq!(failure.code, Code::SurfaceDrift, "{failure}");
        assert_eq!(
            run(&pool, &deployment, json!({ "tools": ["run"] })).await,
            Ok(json!("as ever")),
            "a new one is fine"
        );
    }
}

#[tokio::test]
async fn a_rug_pull_between_calls_ends_the_compartment() {
    let (pool, deployment) = (pool(), server("late_rug").shows(&["run"]).deploy());
    assert_eq!(run(&pool, &deployment, json!({ "after": 0 })).await, Ok(json!("as ever")));
    until_nothing_is_left().await;
    assert_eq!(run(&pool, &deployment, json!({ "after": 3600 })).await, Ok(json!("as ever")), "a new one is fine");
}

/// Each instance is asked what it shows, and not only the first.
#[tokio::test]
async fn an_instance_that_shows_something_else_is_not_used() {
    let failure = fails(server("early_rug").shows(&["run"])).await;
    assert_eq!(failure.code, Code::SurfaceDrift, "{failure}");
}

/// Some register tools only when they know their client; what counts is what they show then.
#[tokio::test]
async fn lists_may_change_while_a_server_gets_ready_but_not_for_ever() {
    let (pool, deployment) = (pool(), server("late_riser").shows(&["run", "extra"]).deploy());
    let ear = Ear::named("me");
    let answer = ask(&pool, &deployment, &tool("run", &json!({ "count": 0 })), &ear).await;
    assert_eq!(support::value(&answer.outcome.unwrap()), "still here");
    assert_eq!(ear.operations(), Vec::<String>::new(), "nobody is told of what went before");
    drop((pool, deployment));
    let failure = fails(server("fickle")).await;
    assert_eq!(failure.code, Code::InitFailed, "{failure}");
    assert!(failure.message.contains("do not stop changing"), "{failure}");
}

#[tokio::test]
async fn who_computes_when_nobody_calls_is_ended() {
    let (pool, deployment) = (pool(), server("idle_spin").deploy());
    run(&pool, &deployment, json!({})).await.expect("it answers first");
    until_nothing_is_left().await;
    run(&pool, &deployment, json!({})).await.expect("a new one answers");
}

/// Callers that come and go fill no memory of the host's.
#[tokio::test]
async fn who_does_not_read_is_ended_before_much_waits_for_it() {
    let deaf = server("deaf").limit(|limits| limits.argument_kb = 256);
    let (pool, deployment) = (pool(), deaf.deploy());
    let input = json!({ "text": "x".repeat(200 << 10) });
    run(&pool, &deployment, input.clone()).await.expect("it answers first");
    let first = support::processes::below(std::process::id());
    let goes_on = async {
        while support::processes::below(std::process::id()).iter().any(|process| first.contains(process)) {
            let call = run(&pool, &deployment, input.clone());
            let _ = tokio::time::timeout(std::time::Duration::from_millis(20), call).await;
        }
    };
    tokio::time::timeout(support::PATIENCE, goes_on).await.expect("it is ended");
}

#[tokio::test]
async fn who_closes_its_output_is_ended() {
    let failure = fails(server("closes")).await;
    assert_eq!(failure.code, Code::ProtocolViolation, "{failure}");
}

/// The bytes that a call may say are its own bound; what it said is on its receipt.
#[tokio::test]
async fn a_flood_is_on_the_receipt() {
    let (pool, deployment) = (pool(), server("flood").limit(|limits| limits.log_kb = 8).deploy());
    let ear = Ear::named("me");
    let answer = ask(&pool, &deployment, &tool("run", &json!({})), &ear).await;
    assert_eq!(answer.outcome.expect_err("a flood").code, Code::LogLimit);
    let heard: usize = ear.log.lock().unwrap().iter().map(|(_, text)| text.len()).sum();
    assert!((1..=8 << 10).contains(&heard) && answer.receipt.log_bytes as usize >= heard, "{heard} bytes were heard");
}
