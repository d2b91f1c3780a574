//! The same calls through the pool, in this process and without HTTP: what the wall itself costs the host.

use crate::cpu;
use crate::load::Measured;
use anyhow::{Context, Result, anyhow, ensure};
use bytes::Bytes;
use isolate::{Carrier, IsolateSettings, IsolateWall};
use policy::{Allowance, Ask, Boundary, permit};
use sandbox::{Deployment, LogLine, NoNetwork, Operation, Pool, PoolSettings, Request};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

pub struct Wall {
    /// Threads of its own, as a host has; dropped last.
    runtime: Option<Runtime>,
    pool: Arc<Pool>,
    deployment: Arc<Deployment>,
}

impl Wall {
    pub fn start(source: Vec<u8>, boundary: Boundary) -> Result<Wall> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let deployment = Deployment {
            tenant: "bench".to_owned(),
            server: "prices".to_owned(),
            id: "bench".to_owned(),
            program: sandbox::Program::Module { source: Bytes::from(source), file_name: "prices.js".to_owned() },
            permit: permit(&Ask { boundary, ..Ask::default() }, &Allowance::default()).map_err(|e| anyhow!("{e}"))?,
            shows: sandbox::Shows::default(),
        };
        let pool = runtime.block_on(async {
            let carrier = Carrier::find().map_err(|e| anyhow!("{e}"))?;
            let wall = IsolateWall::start(IsolateSettings::new(carrier)).await.map_err(|e| anyhow!("{e}"))?;
            anyhow::Ok(Pool::new(Arc::new(wall), PoolSettings::default()))
        })?;
        Ok(Wall { runtime: Some(runtime), pool: Arc::new(pool), deployment: Arc::new(deployment) })
    }

    /// `lanes` calls at once. The process looked at is this one.
    pub async fn run(&self, lanes: usize, time: Duration) -> Result<Measured> {
        let runtime = self.runtime.as_ref().context("stopped")?;
        let pid = std::process::id();
        let before = cpu::of(pid).context("no /proc")?;
        let start = Instant::now();
        let deadline = start + time;
        let tasks: Vec<_> =
            (0..lanes).map(|_| runtime.spawn(lane(self.pool.clone(), self.deployment.clone(), deadline))).collect();
        let mut measured = Measured::default();
        for task in tasks {
            measured.latencies.extend(task.await??);
        }
        measured.elapsed = start.elapsed();
        measured.cpu = cpu::of(pid).context("no /proc")?.since(&before);
        measured.calls = measured.latencies.len();
        measured.latencies.sort_unstable();
        Ok(measured)
    }
}

impl Drop for Wall {
    fn drop(&mut self) {
        // A runtime may not be waited for inside another.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn lane(pool: Arc<Pool>, deployment: Arc<Deployment>, deadline: Instant) -> Result<Vec<Duration>> {
    let request = Request {
        operation: Operation::Tool,
        name: "double_price".to_owned(),
        input: Bytes::from_static(br#"{"price":45}"#),
        session: None,
    };
    let mut latencies = Vec::new();
    let mut now = Instant::now();
    while now < deadline {
        let answer = pool.call(&deployment, &request, Arc::new(NoNetwork(|_: LogLine| {}))).await;
        let right = answer.outcome.as_ref().is_ok_and(|bytes| bytes == &br#"{"doublePrice":90}"#[..]);
        ensure!(right, "a call went wrong: {:?}", answer.outcome);
        let then = Instant::now();
        latencies.push(then - now);
        now = then;
    }
    Ok(latencies)
}
