//! Keeps a number of connections busy for a while, and asks what it cost the server.

use crate::call::{Caller, Target};
use crate::cpu::{self, Cpu};
use anyhow::{Context, Result};
use std::time::{Duration, Instant};

/// What a server did in a time.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub calls: usize,
    pub elapsed: Duration,
    /// Of every call, sorted.
    pub latencies: Vec<Duration>,
    pub cpu: Cpu,
}

impl Measured {
    pub fn per_second(&self) -> f64 {
        self.calls as f64 / self.elapsed.as_secs_f64()
    }

    pub fn percentile_ms(&self, rank: f64) -> f64 {
        percentile_ms(&self.latencies, rank)
    }

    pub fn tree_us(&self) -> f64 {
        per_call_us(self.cpu.tree, self.calls)
    }

    pub fn root_us(&self) -> f64 {
        per_call_us(self.cpu.root, self.calls)
    }
}

pub fn per_call_us(cpu: Duration, calls: usize) -> f64 {
    cpu.as_secs_f64() * 1e6 / calls.max(1) as f64
}

/// Nearest rank; the latencies are sorted.
pub fn percentile_ms(sorted: &[Duration], rank: f64) -> f64 {
    let index = ((sorted.len() as f64 * rank).ceil() as usize).saturating_sub(1);
    sorted.get(index).map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
}

/// Clients that stay, with their sessions, from round to round.
pub struct Load {
    callers: Vec<Caller>,
}

impl Load {
    pub async fn open(target: &Target, connections: usize) -> Result<Load> {
        let mut callers = Vec::with_capacity(connections);
        for _ in 0..connections {
            callers.push(Caller::open(target).await?);
        }
        Ok(Load { callers })
    }

    /// Each connection calls as soon as it has its answer. `pid` is the server, whose whole tree is looked at.
    pub async fn run(&mut self, pid: u32, time: Duration) -> Result<Measured> {
        for caller in &mut self.callers {
            caller.reconnect().await?;
        }
        let before = cpu::of(pid).context("the server is gone")?;
        let start = Instant::now();
        let deadline = start + time;
        let lanes: Vec<_> = self.callers.drain(..).map(|caller| tokio::spawn(lane(caller, deadline))).collect();
        let mut measured = Measured::default();
        for lane in lanes {
            let (caller, latencies) = lane.await??;
            self.callers.push(caller);
            measured.latencies.extend(latencies);
        }
        measured.elapsed = start.elapsed();
        measured.cpu = cpu::of(pid).context("the server is gone")?.since(&before);
        measured.calls = measured.latencies.len();
        measured.latencies.sort_unstable();
        Ok(measured)
    }
}

async fn lane(mut caller: Caller, deadline: Instant) -> Result<(Caller, Vec<Duration>)> {
    let mut latencies = Vec::new();
    let mut now = Instant::now();
    while now < deadline {
        caller.call().await?;
        let then = Instant::now();
        latencies.push(then - now);
        now = then;
    }
    Ok((caller, latencies))
}
