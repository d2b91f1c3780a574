#![forbid(unsafe_code)]
//! Measures `bulkhead serve` beside other MCP servers: the same call, the same generator, the same run.
//! How to read it: docs/benchmarks.md.

mod call;
mod cpu;
mod deploy;
mod fairness;
mod host;
mod load;
mod peers;
mod report;
mod rounds;
mod server;
mod versions;
mod wall;
mod wire;

use anyhow::{Context, Result, bail, ensure};
use bench_report::{Machine, all_kept, prepare, root, write_json};
use clap::{Parser, Subcommand};
use policy::Boundary;
use std::path::Path;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Parser)]
#[command(about = "Measures the gateway beside other MCP servers")]
struct Options {
    #[command(subcommand)]
    command: Option<What>,
    /// A short run: shows that it works, not how fast
    #[arg(long, global = true)]
    quick: bool,
    /// Rows to measure, by name or by the part before the slash
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Replace the tables of docs/benchmarks.md
    #[arg(long, global = true)]
    write_docs: bool,
}

#[derive(Subcommand)]
enum What {
    /// One tenant floods at 50 times its quota; what does another notice?
    Fairness,
    /// How long is it from `bulkhead deploy` to a call, cold and warm?
    Deploy,
}

/// One thread: the generator takes one core at most, whoever is measured.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match options.command {
        Some(What::Fairness) => run_fairness(&options).await,
        Some(What::Deploy) => run_deploy(&options).await,
        None => run_gateway(&options).await,
    };
    bench_report::ended(outcome)
}

async fn run_gateway(options: &Options) -> Result<bool> {
    ensure!(!options.write_docs || (options.only.is_empty() && !options.quick), "`--write-docs` needs a whole run");
    let chosen = |row: &peers::Row| options.only.is_empty() || options.only.iter().any(|only| matches(only, row.name));
    if !peers::ROWS.iter().any(chosen) {
        bail!("there is no such row; there are {}", peers::ROWS.map(|row| row.name).join(", "));
    }
    let root = prepare("gateway-setup.sh")?;
    let machine = Machine::look(versions::peers(&root));
    let with_wall = peers::ROWS.iter().any(|row| row.is_ours() && chosen(row));
    let wall = with_wall.then(|| start_wall(&root)).transpose()?;
    let peers = peers::Peers::start(&root, chosen).await?;
    let plan = rounds::Plan::new(options.quick);
    let measured = tokio::select! {
        measured = rounds::measure(&peers, wall.as_ref(), &plan) => measured,
        () = interrupted() => Err(anyhow::anyhow!("interrupted")),
    };
    peers.stop().await;
    let (rows, wall) = measured?;
    let promises = report::promises(&rows, wall.as_ref());
    let report =
        report::Report { machine, quick: options.quick, connections: rounds::CONNECTIONS, rows, wall, promises };
    report.print();
    write_json(&root.join("target/bench/gateway.json"), &report)?;
    if options.write_docs {
        report.write_docs(&root.join("docs/benchmarks.md"))?;
    }
    Ok(all_kept(&report.promises))
}

async fn run_fairness(options: &Options) -> Result<bool> {
    let root = root()?;
    std::fs::create_dir_all(root.join("target/bench"))?;
    let fairness = fairness::run(&root, options.quick).await?;
    fairness.print();
    write_json(&root.join("target/bench/fairness.json"), &fairness)?;
    if options.write_docs {
        fairness.write_docs(&root.join("docs/benchmarks.md"))?;
    }
    fairness.check()?;
    Ok(all_kept(&fairness.promises))
}

async fn run_deploy(options: &Options) -> Result<bool> {
    let root = root()?;
    std::fs::create_dir_all(root.join("target/bench"))?;
    let deploys = deploy::run(&root, options.quick).await?;
    deploys.print();
    write_json(&root.join("target/bench/deploy.json"), &deploys)?;
    if options.write_docs {
        deploys.write_docs(&root.join("docs/benchmarks.md"))?;
    }
    Ok(all_kept(&deploys.promises))
}

fn matches(wanted: &str, name: &str) -> bool {
    wanted == name || name.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('/'))
}

fn start_wall(root: &Path) -> Result<wall::Wall> {
    let source = std::fs::read(root.join("bench/gateway/prices.js")).context("bench/gateway/prices.js")?;
    // On a thread of its own, because it waits for its runtime.
    let started = std::thread::spawn(move || wall::Wall::start(source, Boundary::Server)).join();
    started.unwrap_or_else(|_| bail!("the wall did not start"))
}

/// Ends when somebody wants this program to end, so that it can stop what it started.
async fn interrupted() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
