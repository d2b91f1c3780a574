#![forbid(unsafe_code)]
//! 100,000 calls with a fresh process each. Resident memory of the host and its zygotes at the end must be within 5 % of
//! what it was after the first 5,000. The host's own is small, and first uses of its code move it by some per cent, so it
//! has its own bound: less than 11 bytes a call. `SOAK_CALLS` changes the number.

use bench_isolate::{Bench, descendants, proportional_kb, resident_kb};
use policy::Boundary;
use sandbox::PoolSettings;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CALLERS: u64 = 4;
const TOLERANCE: f64 = 0.05;
const HOST_GROWTH_KB: u64 = 1024;

fn main() -> Result<ExitCode, Box<dyn std::error::Error + Send + Sync>> {
    let calls: u64 = std::env::var("SOAK_CALLS").ok().map_or(Ok(100_000), |text| text.parse())?;
    let settle = (calls / 20).max(100);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let bench = Arc::new(Bench::new(Boundary::Call, PoolSettings::default()).await?);
        run(&bench, settle).await?;
        let before = resident(&bench).await;
        println!("after {settle} calls: host {} KiB, zygotes {} KiB", before.0, before.1);
        let start = Instant::now();
        run(&bench, calls - settle).await?;
        let elapsed = start.elapsed();
        let after = resident(&bench).await;
        println!(
            "after {calls} calls: host {} KiB, zygotes {} KiB; {:.0} calls/s",
            after.0,
            after.1,
            (calls - settle) as f64 / elapsed.as_secs_f64()
        );
        let total = (after.0 + after.1) as f64 <= (before.0 + before.1) as f64 * (1.0 + TOLERANCE);
        let host = after.0.saturating_sub(before.0) <= HOST_GROWTH_KB;
        let word = |ok: bool| if ok { "ok" } else { "MISSED" };
        println!("promise: host and zygotes together within 5 %: {}", word(total));
        println!("promise: the host alone within {HOST_GROWTH_KB} KiB: {}", word(host));
        Ok(if total && host { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

async fn run(bench: &Arc<Bench>, calls: u64) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let left = Arc::new(AtomicU64::new(calls));
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (bench, left) = (bench.clone(), left.clone());
            tokio::spawn(async move {
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
                    bench.must_call("0").await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await?;
    }
    Ok(())
}

/// Of the host, and of everything below it, each page counted once. The deployment is planted anew before, so that both
/// looks see the same: one base zygote that has been there all along, one deployment zygote, and what waits.
async fn resident(bench: &Bench) -> (u64, u64) {
    bench.pool.release(&bench.deployment.id);
    bench.must_call("0").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let zygotes = descendants().into_iter().filter_map(proportional_kb).sum();
    (resident_kb(std::process::id()).unwrap_or(0), zygotes)
}
