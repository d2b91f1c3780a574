//! Whether one tenant at its limit slows another: `flood` sends 50 times what it may, `gentle` asks now and then.

use crate::call::{Caller, Form, Target};
use crate::host::Host;
use crate::load::percentile_ms;
use crate::rounds::median;
use anyhow::{Result, ensure};
use bench_report::{Machine, Promise, listed, print, replace_marked, rounded};
use serde::Serialize;
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

/// What the flooding tenant may send in a second, and how much more it sends.
const QUOTA: u32 = 100;
const FACTOR: f64 = 50.0;
const FLOODERS: usize = 32;
const GENTLE_PAUSE: Duration = Duration::from_millis(10);

#[derive(Serialize)]
pub struct Fairness {
    pub machine: Machine,
    pub quick: bool,
    pub boundary: String,
    pub quota_per_s: f64,
    pub flood_per_s: f64,
    /// Of the flood, in a second.
    pub served_per_s: f64,
    pub alone_p50_ms: f64,
    pub alone_p99_ms: f64,
    pub flooded_p50_ms: f64,
    pub flooded_p99_ms: f64,
    pub gentle_calls: usize,
    pub promises: Vec<Promise>,
}

struct Flood {
    sent: usize,
    served: usize,
}

pub async fn run(root: &Path, quick: bool) -> Result<Fairness> {
    let machine = Machine::look(Vec::new());
    let host = Host::start(root).await?;
    let measured = tokio::select! {
        measured = measure(&host, quick) => measured,
        () = crate::interrupted() => Err(anyhow::anyhow!("interrupted")),
    };
    host.stop().await;
    let mut fairness = Fairness { machine, quick, ..measured? };
    fairness.promises = fairness.judge();
    Ok(fairness)
}

async fn measure(host: &Host, quick: bool) -> Result<Fairness> {
    let root = crate::root()?;
    let file = root.join("bench/gateway/prices.js");
    let plenty = json!({ "requests_per_s": 1e6, "burst": 1_000_000, "concurrent": 10_000, "cpu_s_per_min": 1e6 });
    let gentle = host.tenant("gentle", &plenty).await?;
    let limited = json!({ "requests_per_s": QUOTA, "burst": QUOTA, "cpu_s_per_min": 1e6 });
    let flood = host.tenant("flood", &limited).await?;
    for tenant in [&gentle, &flood] {
        host.deploy(tenant, &file, "prices", "call").await?;
    }
    let gentle = host.target(&gentle, "prices", Form::Modern);
    let flood = host.target(&flood, "prices", Form::Modern);
    let (rounds, time) = if quick { (1, Duration::from_secs(1)) } else { (5, Duration::from_secs(4)) };
    ask_gently(&gentle, Duration::from_secs(1)).await?;
    // The first second of a flood may use its burst; that is the warm-up.
    flood_beside(&flood, Duration::from_secs(1)).await?;

    let (mut alone, mut flooded) = (Vec::new(), Vec::new());
    let (mut sent, mut served) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        alone.push(ask_gently(&gentle, time).await?);
        let (quiet, noise) = tokio::join!(ask_gently(&gentle, time), flood_beside(&flood, time));
        let noise = noise?;
        flooded.push(quiet?);
        sent.push(noise.sent as f64 / time.as_secs_f64());
        served.push(noise.served as f64 / time.as_secs_f64());
    }
    let of =
        |rounds: &[Vec<Duration>], rank| rounded(median(rounds.iter().map(|r| percentile_ms(r, rank)).collect()), 3);
    Ok(Fairness {
        machine: Machine::look(Vec::new()),
        quick,
        boundary: "call".to_owned(),
        quota_per_s: f64::from(QUOTA),
        flood_per_s: rounded(median(sent), 1),
        served_per_s: rounded(median(served), 1),
        alone_p50_ms: of(&alone, 0.5),
        alone_p99_ms: of(&alone, 0.99),
        flooded_p50_ms: of(&flooded, 0.5),
        flooded_p99_ms: of(&flooded, 0.99),
        gentle_calls: flooded.iter().map(Vec::len).sum(),
        promises: Vec::new(),
    })
}

/// One call, a pause, and so on; the latencies, sorted. None may fail.
async fn ask_gently(target: &Target, time: Duration) -> Result<Vec<Duration>> {
    let mut caller = Caller::open(target).await?;
    let mut latencies = Vec::new();
    let start = Instant::now();
    while start.elapsed() < time {
        let begin = Instant::now();
        caller.call().await?;
        latencies.push(begin.elapsed());
        tokio::time::sleep(GENTLE_PAUSE).await;
    }
    latencies.sort_unstable();
    Ok(latencies)
}

/// Floods from a thread of its own: the gentle tenant's clock must not wait for the generator of the flood.
async fn flood_beside(target: &Target, time: Duration) -> Result<Flood> {
    let target = target.clone();
    let flood = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(send_flood(&target, time))
    });
    flood.await?
}

/// Sends at a steady rate, whatever the answers; what is neither served nor refused for the quota is an error.
async fn send_flood(target: &Target, time: Duration) -> Result<Flood> {
    let interval = Duration::from_secs_f64(FLOODERS as f64 / (f64::from(QUOTA) * FACTOR));
    let lanes: Vec<_> = (0..FLOODERS)
        .map(|lane| {
            let target = target.clone();
            // Spread over the interval, so that they do not come in waves.
            let offset = interval.mul_f64(lane as f64 / FLOODERS as f64);
            tokio::spawn(async move { flood_lane(&target, interval, offset, time).await })
        })
        .collect();
    let mut flood = Flood { sent: 0, served: 0 };
    for lane in lanes {
        let lane = lane.await??;
        flood.sent += lane.sent;
        flood.served += lane.served;
    }
    Ok(flood)
}

async fn flood_lane(target: &Target, interval: Duration, offset: Duration, time: Duration) -> Result<Flood> {
    let mut caller = Caller::open(target).await?;
    let start = Instant::now();
    let mut due = start + offset;
    let mut flood = Flood { sent: 0, served: 0 };
    while due < start + time {
        tokio::time::sleep_until(due.into()).await;
        flood.sent += 1;
        flood.served += usize::from(caller.call_or_refusal().await?);
        due += interval;
    }
    Ok(flood)
}

impl Fairness {
    fn judge(&self) -> Vec<Promise> {
        let ratio = rounded(self.flooded_p99_ms / self.alone_p99_ms, 2);
        let pressure = rounded(self.flood_per_s / self.quota_per_s, 1);
        vec![
            Promise {
                text: "another tenant's p99 under the flood / alone < 2".to_owned(),
                value: ratio,
                kept: ratio < 2.0,
            },
            // Timers come late, never early.
            Promise {
                text: format!("the flood was {FACTOR} times its quota (at least 45)"),
                value: pressure,
                kept: pressure >= 45.0,
            },
        ]
    }

    pub fn check(&self) -> Result<()> {
        ensure!(self.served_per_s <= self.quota_per_s * 1.5, "the quota did not hold: {} calls/s", self.served_per_s);
        Ok(())
    }

    pub fn write_docs(&self, path: &Path) -> Result<()> {
        let mut text = format!("{}\n\n| gentle tenant | p50 ms | p99 ms |\n| --- | --: | --: |\n", self.machine.line());
        text += &format!("| alone | {} | {} |\n", self.alone_p50_ms, self.alone_p99_ms);
        text += &format!("| under the flood | {} | {} |\n\n", self.flooded_p50_ms, self.flooded_p99_ms);
        text += &format!(
            "Of the flood, {} calls/s, {} were served (quota {}) and the rest refused.\n\n",
            self.flood_per_s, self.served_per_s, self.quota_per_s
        );
        text += &listed(&self.promises);
        replace_marked(path, "fairness", &text)
    }

    pub fn print(&self) {
        println!("              p50 ms    p99 ms");
        println!("alone       {:>8}  {:>8}", self.alone_p50_ms, self.alone_p99_ms);
        println!("under flood {:>8}  {:>8}", self.flooded_p50_ms, self.flooded_p99_ms);
        println!("flood: {} calls/s sent, {} served (quota {})", self.flood_per_s, self.served_per_s, self.quota_per_s);
        print(&self.promises);
    }
}
