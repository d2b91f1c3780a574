#![forbid(unsafe_code)]
//! What a base process for each tenant costs beside one for all: prints the table of docs/design.md.
//!
//! As root, because what processes share is told to root only.

use bench_isolate::{Bench, descendants, proportional_kb};
use isolate::{BaseFor, Carrier, IsolateSettings, IsolateWall};
use sandbox::{Pool, PoolSettings};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TENANTS: usize = 8;
const CALLS: usize = 400;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    println!(
        "| `base` | memory per tenant | a tenant's first call | the same, {TENANTS} at once | further calls, p50 |"
    );
    println!("|---|---|---|---|---|");
    for (name, base) in [("shared", BaseFor::Everybody), ("tenant", BaseFor::Tenant)] {
        let row = runtime.block_on(async move { tokio::spawn(measure(base)).await })??;
        println!("| `{name}` | {row}");
    }
    Ok(())
}

async fn measure(base: BaseFor) -> Result<String, Failure> {
    let benches = tenants(base).await?;
    let mut firsts = Vec::new();
    let before = memory().await;
    for bench in &benches {
        // As tenants come: one now and then.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let begin = Instant::now();
        bench.must_call("0").await;
        firsts.push(begin.elapsed());
    }
    let per_tenant = memory().await.saturating_sub(before) / TENANTS as u64;
    let mut further = Vec::new();
    for index in 0..CALLS * 2 {
        let begin = Instant::now();
        benches[index % TENANTS].must_call("0").await;
        // The first ones make each zygote cheaper to fork.
        if index >= CALLS {
            further.push(begin.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    drop(benches);
    let benches = tenants(base).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let calls: Vec<_> = benches
        .into_iter()
        .map(|bench| {
            tokio::spawn(async move {
                let begin = Instant::now();
                bench.must_call("0").await;
                begin.elapsed()
            })
        })
        .collect();
    let mut together = Vec::new();
    for call in calls {
        together.push(call.await?);
    }
    let mib = per_tenant as f64 / 1024.0;
    Ok(format!("{mib:.0} MiB | {} | {} | {} |", median(firsts), median(together), median(further)))
}

/// One deployment for each tenant, in one pool.
async fn tenants(base: BaseFor) -> Result<Vec<Bench>, Failure> {
    let settings = IsolateSettings { base, ..IsolateSettings::new(Carrier::find()?) };
    let wall = IsolateWall::start(settings).await?;
    let settings = PoolSettings { patience: Duration::from_secs(60), ..PoolSettings::default() };
    let pool = Arc::new(Pool::new(Arc::new(wall), settings));
    (0..TENANTS).map(|number| Bench::of(&pool, &format!("tenant-{number}"), policy::Boundary::Call)).collect()
}

/// Memory of all processes below this one in KiB, what several share divided among them.
async fn memory() -> u64 {
    tokio::time::sleep(Duration::from_secs(2)).await;
    descendants().into_iter().filter_map(proportional_kb).sum()
}

fn median(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    format!("{:.1} ms", times[times.len() / 2].as_secs_f64() * 1000.0)
}
