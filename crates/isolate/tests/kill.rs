//! SIGKILL at random moments, under load, of compartments, deployment zygotes and base zygotes.
//!
//! No call hangs, calls of others succeed, nothing is left behind.

#[path = "support/mod.rs"]
mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::load::{Dice, Load};
use support::processes::{below, processes};

fn kill(pid: u32) {
    let status = Command::new("kill").args(["-9", &pid.to_string()]).stderr(Stdio::null()).status();
    // It may have ended by itself meanwhile.
    let _ = status.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_processes_cost_nobody_else_a_call() {
    let pool = support::pool().await;
    let load = Load::start(&pool);
    let me = std::process::id();
    let mut dice = Dice(20261115);
    let mut kills = [0; 5];
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(8) {
        tokio::time::sleep(Duration::from_millis(20 + dice.roll(60) as u64)).await;
        // Mostly compartments and deployment zygotes; a base now and then.
        let depth = [4, 4, 4, 3, 3, 2, 1][dice.roll(7)];
        let victims: Vec<u32> = below(me).into_iter().filter(|(_, d)| *d == depth).map(|(pid, _)| pid).collect();
        if !victims.is_empty() {
            kill(victims[dice.roll(victims.len())]);
            kills[depth] += 1;
        }
    }
    let served = load.stop().await;
    assert!(kills[2..].iter().all(|count| *count > 0), "every kind was killed: {kills:?}");
    assert!(served > 100, "calls went on: {served} with kills {kills:?}");
    drop(pool);
    assert_gone(me).await;
}

/// Nothing is left below this process, not even a zombie.
async fn assert_gone(root: u32) {
    let start = Instant::now();
    while !below(root).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "left behind: {:?}", below(root));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let zombies = processes().into_values().filter(|(parent, state)| *parent == root && *state == 'Z').count();
    assert_eq!(zombies, 0, "every process is reaped");
}
