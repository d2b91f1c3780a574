//! SIGKILL of the host itself, at random moments, with compartments in every state: nothing outlives it.

#[path = "support/mod.rs"]
mod support;

use policy::Boundary;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::load::{Dice, Load};
use support::processes::{below, processes};
use support::{Server, run};

/// The host that is killed: this test again, told so by a variable.
fn start_host() -> Child {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_killed_host_takes_everything_along", "--nocapture"])
        .env("BULKHEAD_KILL_TEST_HOST", "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    child.unwrap()
}

async fn host() {
    let pool = support::pool().await;
    let _load = Load::start(&pool);
    // Compartments in every state: spinning, sleeping, initialising.
    for source in ["while (true);", "await new Promise(() => {});"] {
        let server = Server::new(source).limit("cpu_ms", 30_000).boundary(Boundary::Server).deploy();
        let pool = pool.clone();
        tokio::spawn(async move { run(&pool, &server, "{}").await });
    }
    let slow = Server::new("for (;;); export default {}").limit("init_cpu_ms", 30_000).deploy();
    let _ = run(&pool, &slow, "{}").await;
    // Its limits are longer than the test; nothing may outlive it all the same.
    tokio::time::sleep(Duration::from_secs(30)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_host_takes_everything_along() {
    if std::env::var_os("BULKHEAD_KILL_TEST_HOST").is_some() {
        return host().await;
    }
    let mut dice = Dice(42);
    for round in 0..5 {
        let mut host = start_host();
        let start = Instant::now();
        // All depths are there: the host works.
        while !(1..=4).all(|depth| below(host.id()).iter().any(|(_, d)| *d == depth)) {
            assert!(start.elapsed() < Duration::from_secs(30), "the host did not come up: {:?}", below(host.id()));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(dice.roll(400) as u64)).await;
        let family: Vec<u32> = below(host.id()).into_iter().map(|(pid, _)| pid).collect();
        assert!(family.len() >= 4);
        host.kill().unwrap();
        host.wait().unwrap();
        let start = Instant::now();
        let living = || {
            let all = processes();
            let is_ours = |pid: &u32| {
                let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                name.starts_with("bulkhead-v8")
            };
            family.iter().copied().filter(|pid| all.get(pid).is_some_and(|(_, s)| *s != 'Z') && is_ours(pid)).count()
        };
        while living() > 0 {
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "round {round}: {} processes outlive their host",
                living()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
