#![forbid(unsafe_code)]
//! Measures the door to the network beside clients that go straight there: the same request, the same server, the same run.
//! How to read it: docs/benchmarks.md.

mod clients;
mod node;
mod report;
mod rounds;
mod upstream;

use anyhow::{Result, ensure};
use bench_report::{Machine, all_kept, locked_version, pinned_versions, prepare, said, write_json};
use clap::Parser;
use std::path::Path;
use std::process::{Command, ExitCode};

#[derive(Parser)]
#[command(about = "Measures the door to the network beside clients that go straight there")]
struct Options {
    /// A short run: shows that it works, not how fast
    #[arg(long)]
    quick: bool,
    /// Replace the table of docs/benchmarks.md
    #[arg(long)]
    write_docs: bool,
    /// Threads of the clients in this process and of the door, as `serve` has one for each core
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    threads: u8,
}

fn main() -> ExitCode {
    bench_report::ended(run(&Options::parse()))
}

/// Whether every promise was kept.
fn run(options: &Options) -> Result<bool> {
    let ordinary = !options.quick && options.threads == 1;
    ensure!(!options.write_docs || ordinary, "`--write-docs` needs a whole run on one thread");
    let root = prepare("egress-setup.sh")?;
    let machine = Machine::look(peers(&root));
    // One thread, so that each client has one core at most, as Node's has.
    let mut runtime = match options.threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.worker_threads(options.threads.into()).enable_all().build()?;
    let rows = runtime.block_on(rounds::measure(&root, options.quick))?;
    let promises = report::promises(&rows);
    let report = report::Report { machine, quick: options.quick, threads: options.threads, rows, promises };
    report.print();
    write_json(&root.join("target/bench/egress.json"), &report)?;
    if options.write_docs {
        report.write_docs(&root.join("docs/benchmarks.md"))?;
    }
    Ok(all_kept(&report.promises))
}

fn peers(root: &Path) -> Vec<(String, String)> {
    let node = said(Command::new(root.join("target/v8/node/bin/node")).arg("--version"));
    let packages = pinned_versions(&root.join("bench/egress/package.json"));
    [("Node".to_owned(), node)].into_iter().chain(packages).chain(locked_version(root, "hyper")).collect()
}
