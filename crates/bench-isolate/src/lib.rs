#![forbid(unsafe_code)]
//! What the benchmark and the soak have in common: a wall with one server, and a look at the process tree.

use bytes::Bytes;
use isolate::{Carrier, IsolateSettings, IsolateWall};
use policy::{Allowance, Ask, Boundary, permit};
use sandbox::{
    Answer, Compartment, Deployment, Failure, Host, LogLine, NoNetwork, Operation, Pool, PoolSettings, Request,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The same tool that the peers run (`bench/peers`): it tries to read the environment, then doubles a price.
pub const TOOL: &str = "export default { tools: { run: { input: { type: 'object' }, run(input) { \
     try { return { env: process.env } } catch (e) { return { doublePrice: input.price * 2 } } } } } }";

pub struct Bench {
    pub pool: Arc<Pool>,
    pub deployment: Arc<Deployment>,
    host: Arc<dyn Host>,
}

impl Bench {
    /// A pool of its own with one deployment.
    pub async fn new(
        boundary: Boundary,
        settings: PoolSettings,
    ) -> Result<Bench, Box<dyn std::error::Error + Send + Sync>> {
        let wall = IsolateWall::start(IsolateSettings::new(Carrier::find()?)).await?;
        Bench::of(&Arc::new(Pool::new(Arc::new(wall), settings)), "bench", boundary)
    }

    /// One deployment of this tenant's in a pool that others use, too.
    pub fn of(
        pool: &Arc<Pool>,
        tenant: &str,
        boundary: Boundary,
    ) -> Result<Bench, Box<dyn std::error::Error + Send + Sync>> {
        let deployment = Deployment {
            tenant: tenant.to_owned(),
            server: "prices".to_owned(),
            id: tenant.to_owned(),
            program: sandbox::Program::Module {
                source: Bytes::from_static(TOOL.as_bytes()),
                file_name: "prices.js".to_owned(),
            },
            permit: permit(&Ask { boundary, ..Ask::default() }, &Allowance::default())?,
            shows: sandbox::Shows::default(),
        };
        Ok(Bench { pool: pool.clone(), deployment: Arc::new(deployment), host: Arc::new(NoNetwork(|_: LogLine| {})) })
    }

    /// A call by way of the pool. It must succeed, or the numbers would mean nothing.
    pub async fn must_call(&self, session: &str) -> Answer {
        let answer = self.pool.call(&self.deployment, &request(session), self.host.clone()).await;
        check(&answer.outcome);
        answer
    }

    /// A call of this very compartment.
    pub async fn call_in(&self, compartment: &dyn Compartment) {
        let (outcome, _) = compartment.call(&request("0"), self.host.clone(), Duration::from_secs(10)).await;
        check(&outcome);
    }
}

fn request(session: &str) -> Request {
    Request {
        operation: Operation::Tool,
        name: "run".to_owned(),
        input: Bytes::from_static(br#"{"price": 45}"#),
        session: Some(session.to_owned()),
    }
}

fn check(outcome: &Result<Bytes, Failure>) {
    assert!(
        outcome.as_ref().is_ok_and(|bytes| bytes == &br#"{"doublePrice":90}"#[..]),
        "a call went wrong: {outcome:?}"
    );
}

/// All processes below this one, oldest first.
pub fn descendants() -> Vec<u32> {
    let mut parents: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name in parentheses may hold anything; the fields start after the last one.
        let Some(fields) = stat.rsplit_once(')').map(|(_, rest)| rest) else { continue };
        if let Some(parent) = fields.split_whitespace().nth(1).and_then(|field| field.parse().ok()) {
            parents.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut queue = vec![std::process::id()];
    while let Some(pid) = queue.pop() {
        for child in parents.remove(&pid).unwrap_or_default() {
            found.push(child);
            queue.push(child);
        }
    }
    found.sort_unstable();
    found
}

/// CPU time of this process and all below it, with those of them that have ended and were waited for.
pub fn cpu_time() -> Duration {
    // Fields of /proc/PID/stat after the name: utime, stime, cutime, cstime in ticks of 10 ms. What the kernel calls
    // children's time is of those that were waited for, so nobody is counted twice.
    let ticks = |pid: u32| -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(4);
        Some(fields.filter_map(|field| field.parse::<u64>().ok()).sum())
    };
    let all: u64 = descendants().into_iter().chain([std::process::id()]).filter_map(ticks).sum();
    Duration::from_millis(all * 10)
}

/// Memory that only this process has, in KiB. `None` when it may not be read (that needs root).
pub fn private_kb(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    Some(["Private_Clean:", "Private_Dirty:"].iter().map(|field| field_kb(&text, field).unwrap_or(0)).sum())
}

/// Resident memory of a process in KiB, with what several share divided among them where that may be read (as root).
pub fn proportional_kb(pid: u32) -> Option<u64> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    field_kb(&rollup, "Pss:").or_else(|| resident_kb(pid))
}

/// Resident memory of a process in KiB.
pub fn resident_kb(pid: u32) -> Option<u64> {
    field_kb(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmRSS:")
}

fn field_kb(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}
