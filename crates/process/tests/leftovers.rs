//! Sessions that are opened, used, abandoned and killed leave nothing.

mod support;

use policy::Boundary;
use sandbox::Request;
use serde_json::json;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Ear, Server, ask, pool, processes, tool};

const SESSIONS: usize = 24;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("our own descriptors").count()
}

fn mounts() -> usize {
    std::fs::read_to_string("/proc/self/mounts").expect("our own mounts").lines().count()
}

/// Kills every third program, as an operator or the kernel does.
fn strike() {
    let all = processes::below(std::process::id()).into_iter().filter(|(_, depth)| *depth == 3);
    let victims: Vec<String> = all.step_by(3).map(|(pid, _)| pid.to_string()).collect();
    // One that has ended by itself meanwhile is fine.
    let _ = Command::new("kill").arg("-9").args(victims).stderr(Stdio::null()).status();
}

async fn use_sessions() {
    let (pool, deployment) = (pool(), Server::new("honest.py", &[]).boundary(Boundary::Session).deploy());
    let mut leaving = Vec::new();
    for session in 0..SESSIONS {
        let of = |input| Request { session: Some(session.to_string()), ..tool("run", &input) };
        let answer = ask(&pool, &deployment, &of(json!({ "do": "pid" })), &Ear::named("me")).await;
        answer.outcome.unwrap_or_else(|failure| panic!("session {session}: {failure}"));
        let (pool, deployment, waits) = (pool.clone(), deployment.clone(), of(json!({ "do": "wait" })));
        leaving.push(tokio::spawn(async move { ask(&pool, &deployment, &waits, &Ear::named("me")).await }));
        if session % 8 == 7 {
            strike();
        }
    }
    leaving.iter().for_each(|caller| caller.abort());
    for caller in leaving {
        // Some were answered: their program was killed more often than a pool tries again.
        let _ = caller.await;
    }
}

#[tokio::test]
async fn sessions_leave_nothing() {
    use_sessions().await;
    support::until_nothing_is_left().await;
    let (descriptors_before, mounts_before) = (descriptors(), mounts());
    use_sessions().await;
    support::until_nothing_is_left().await;
    let all_closed = async {
        while descriptors() > descriptors_before {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let closed = tokio::time::timeout(Duration::from_secs(30), all_closed).await;
    assert!(closed.is_ok(), "{} descriptors, {descriptors_before} before", descriptors());
    assert_eq!(mounts(), mounts_before);
}
