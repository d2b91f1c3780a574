//! From a command to a call: how long a deploy takes, and what the calls around it notice.

use crate::call::{Caller, Form};
use crate::host::{Host, Tenant};
use crate::load::percentile_ms;
use anyhow::{Context, Result};
use bench_report::{Machine, Promise, listed, print, replace_marked, rounded};
use serde::Serialize;
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

/// A hello-world project from its command to its endpoint.
const DEPLOY_BELOW_MS: f64 = 1000.0;

#[derive(Serialize)]
pub struct Deploys {
    pub machine: Machine,
    pub quick: bool,
    pub rows: Vec<Row>,
    pub promises: Vec<Promise>,
}

#[derive(Serialize)]
pub struct Row {
    pub name: &'static str,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub times: usize,
}

#[derive(Default)]
struct Times {
    new: Vec<Duration>,
    again: Vec<Duration>,
    switched: Vec<Duration>,
    cold: Vec<Duration>,
    warm: Vec<Duration>,
}

pub async fn run(root: &Path, quick: bool) -> Result<Deploys> {
    let machine = Machine::look(Vec::new());
    let projects = root.join(format!("target/bench/projects-{}", std::process::id()));
    let host = Host::start(root).await?;
    let mut host = Some(host);
    let measured = tokio::select! {
        measured = measure(&mut host, &projects, root, if quick { 3 } else { 25 }) => measured,
        () = crate::interrupted() => Err(anyhow::anyhow!("interrupted")),
    };
    if let Some(host) = host {
        host.stop().await;
    }
    let _ = std::fs::remove_dir_all(&projects);
    let mut times = measured?;
    let row = |name, times: &mut Vec<Duration>| {
        times.sort_unstable();
        let at = |rank| rounded(percentile_ms(times, rank), 2);
        Row { name, p50_ms: at(0.5), p99_ms: at(0.99), times: times.len() }
    };
    let rows = vec![
        row("deploy of a new server", &mut times.new),
        row("deploy of other code", &mut times.again),
        row("first call after a deploy", &mut times.switched),
        row("first call, nothing of it runs", &mut times.cold),
        row("call, warm", &mut times.warm),
    ];
    let value = rows[0].p50_ms;
    let promises = vec![Promise {
        text: "a hello-world project from command to endpoint, in ms, below 1000".to_owned(),
        value,
        kept: value < DEPLOY_BELOW_MS,
    }];
    Ok(Deploys { machine, quick, rows, promises })
}

async fn measure(host: &mut Option<Host>, projects: &Path, root: &Path, servers: usize) -> Result<Times> {
    let running = host.as_ref().context("no host")?;
    let plenty = json!({ "requests_per_s": 1e6, "burst": 1_000_000, "concurrent": 10_000, "cpu_s_per_min": 1e6 });
    let tenant = running.tenant("bench", &plenty).await?;
    let source = std::fs::read_to_string(root.join("bench/gateway/prices.js"))?;
    let mut times = Times::default();
    for number in 0..servers {
        let (name, folder) = (format!("s{number}"), projects.join(format!("s{number}")));
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("bulkhead.toml"), format!("name = \"{name}\"\nentry = \"server.js\"\n"))?;
        std::fs::write(folder.join("server.js"), &source)?;
        times.new.push(deploy(running, &tenant, &folder).await?);
        calls(running, &tenant, &name, 3).await?;
        std::fs::write(folder.join("server.js"), format!("{source}\n// another version\n"))?;
        times.again.push(deploy(running, &tenant, &folder).await?);
        times.switched.push(calls(running, &tenant, &name, 1).await?[0]);
    }
    // A host that has just started runs nothing of anybody's.
    let again = host.take().context("no host")?.restart(root).await?;
    let running = host.insert(again);
    for number in 0..servers {
        let name = format!("s{number}");
        times.cold.push(calls(running, &tenant, &name, 1).await?[0]);
        times.warm.extend(calls(running, &tenant, &name, 20).await?.drain(10..));
    }
    Ok(times)
}

async fn deploy(host: &Host, tenant: &Tenant, folder: &Path) -> Result<Duration> {
    let begin = Instant::now();
    host.deploy_project(tenant, folder).await?;
    Ok(begin.elapsed())
}

/// So many calls, one after the other with a pause, over a connection that is there.
async fn calls(host: &Host, tenant: &Tenant, server: &str, count: usize) -> Result<Vec<Duration>> {
    let mut caller = Caller::open(&host.target(tenant, server, Form::Modern)).await?;
    let mut times = Vec::new();
    for _ in 0..count {
        let begin = Instant::now();
        caller.call().await?;
        times.push(begin.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(times)
}

impl Deploys {
    pub fn print(&self) {
        println!("{:<32} {:>9} {:>9} {:>6}", "", "p50 ms", "p99 ms", "times");
        for row in &self.rows {
            println!("{:<32} {:>9} {:>9} {:>6}", row.name, row.p50_ms, row.p99_ms, row.times);
        }
        print(&self.promises);
    }

    pub fn write_docs(&self, path: &Path) -> Result<()> {
        let mut text = format!("{}\n\n| | p50 ms | p99 ms | times |\n| --- | --: | --: | --: |\n", self.machine.line());
        for row in &self.rows {
            text += &format!("| {} | {} | {} | {} |\n", row.name, row.p50_ms, row.p99_ms, row.times);
        }
        text.push('\n');
        text += &listed(&self.promises);
        replace_marked(path, "deploy", &text)
    }
}
