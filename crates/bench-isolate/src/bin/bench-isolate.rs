#![forbid(unsafe_code)]
//! Prints one JSON row per way of calling; `bench/run.mjs` puts them beside the peers'.
//!
//! As for the peers, latency stops at the answer; taking down and making ready is outside it but inside calls/s.
//! Because they go on in the background here, latency is measured with a pause between calls, and calls/s without.

use bench_isolate::{Bench, cpu_time, descendants, private_kb};
use policy::Boundary;
use sandbox::{Growth, PoolSettings};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

const HELD: usize = 50;

/// The first ones are not counted: they make their zygote's memory shared, which was private until then.
const FIRST: usize = 20;

type Failure = Box<dyn std::error::Error + Send + Sync>;

struct Row {
    name: &'static str,
    boundary: Boundary,
    spares: usize,
    note: &'static str,
}

const ROWS: [Row; 4] = [
    Row {
        name: "bulkhead/call",
        boundary: Boundary::Call,
        spares: 8,
        note: "a fresh jailed process per call, forked beforehand",
    },
    Row {
        name: "bulkhead/call-on-request",
        boundary: Boundary::Call,
        spares: 0,
        note: "a fresh jailed process per call, forked when the call comes",
    },
    Row { name: "bulkhead/session", boundary: Boundary::Session, spares: 0, note: "one jailed process per session" },
    Row { name: "bulkhead/server", boundary: Boundary::Server, spares: 0, note: "one jailed process per server" },
];

fn main() -> Result<(), Failure> {
    let quick = std::env::var("BENCH_QUICK").is_ok_and(|value| value == "1");
    let only = std::env::var("BENCH_ONLY").ok();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for row in ROWS {
        if only.as_ref().is_some_and(|only| only != row.name) {
            continue;
        }
        // In a task, as a gateway's calls are: the main thread would have to be woken for every event.
        let measured = runtime.spawn(async move { measure(&row, if quick { 300 } else { 3000 }).await });
        println!("{}", runtime.block_on(measured)??);
    }
    Ok(())
}

async fn measure(row: &Row, calls: usize) -> Result<serde_json::Value, Failure> {
    let settings = PoolSettings { spares: row.spares, sessions: 256, ..PoolSettings::default() };
    let bench = Arc::new(Bench::new(row.boundary, settings).await?);
    for _ in 0..50 {
        bench.must_call("0").await;
        ready(&bench, row).await;
    }
    let mut latencies = Vec::with_capacity(calls);
    for _ in 0..calls {
        let begin = Instant::now();
        bench.must_call("0").await;
        latencies.push(begin.elapsed());
        ready(&bench, row).await;
    }
    let start = Instant::now();
    for _ in 0..calls {
        bench.must_call("0").await;
    }
    let alone = start.elapsed();

    let used = cpu_time();
    let start = Instant::now();
    let tasks: Vec<_> = (0..16)
        .map(|n: usize| {
            let bench = bench.clone();
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                for _ in 0..calls / 16 {
                    let begin = Instant::now();
                    bench.must_call(&n.to_string()).await;
                    latencies.push(begin.elapsed());
                }
                latencies
            })
        })
        .collect();
    let mut together = Vec::new();
    for task in tasks {
        together.extend(task.await?);
    }
    let crowded = start.elapsed();
    // Of all processes, also for what is made ready meanwhile: one compartment per call.
    let cpu = cpu_time().saturating_sub(used);
    let memory_kb = memory(row).await?;
    Ok(json!({
        "name": row.name,
        "p50_ms": percentile(&mut latencies, 0.50),
        "p99_ms": percentile(&mut latencies, 0.99),
        "calls_per_s": per_second(calls, alone),
        "memory_kb": memory_kb,
        "concurrent16_p50_ms": percentile(&mut together, 0.50),
        "concurrent16_calls_per_s": per_second(together.len(), crowded),
        "concurrent16_cpu_us": cpu.as_micros() as u64 / together.len().max(1) as u64,
        "calls": calls,
        "note": row.note,
    }))
}

/// Waits until the compartment used is gone and another is ready, as the peers take theirs down before they go on.
/// Both happen behind the caller's back here, so it is a pause; calls/s is measured without.
async fn ready(bench: &Bench, row: &Row) {
    if row.boundary == Boundary::Call {
        while row.spares > 0 && bench.pool.state().spares == 0 {
            tokio::time::sleep(Duration::from_micros(50)).await;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Private memory per compartment: that of many, divided. Those for many calls have run the tool once.
async fn memory(row: &Row) -> Result<Option<u64>, Failure> {
    let bench = Bench::new(row.boundary, PoolSettings::default()).await?;
    let seed = bench.pool.seed(&bench.deployment).await?;
    let growth = if row.boundary == Boundary::Call { Growth::Spare } else { Growth::ManyCalls };
    let mut held = Vec::new();
    let mut before = 0;
    for n in 0..HELD + FIRST {
        let compartment = seed.grow(growth).await?;
        if growth == Growth::ManyCalls {
            bench.call_in(&*compartment).await;
        }
        held.push(compartment);
        if n + 1 == FIRST {
            before = settled_private().await;
        }
    }
    let after = settled_private().await;
    drop(held);
    Ok((before > 0).then(|| after.saturating_sub(before) / HELD as u64))
}

/// Private memory of all processes below this one, in KiB; 0 when it may not be read.
async fn settled_private() -> u64 {
    tokio::time::sleep(Duration::from_millis(300)).await;
    descendants().into_iter().filter_map(private_kb).sum()
}

fn percentile(latencies: &mut [Duration], p: f64) -> f64 {
    latencies.sort_unstable();
    let index = ((latencies.len() - 1) as f64 * p).round() as usize;
    latencies[index].as_micros() as f64 / 1000.0
}

fn per_second(calls: usize, elapsed: Duration) -> f64 {
    (calls as f64 / elapsed.as_secs_f64() * 10.0).round() / 10.0
}
