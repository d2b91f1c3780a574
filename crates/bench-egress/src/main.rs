#![forbid(unsafe_code)]
//! Measures the door to the network beside clients that go straight there: the same request, the same server, the same run.
//! How to read it: docs/benchmarks.md.

mod clients;
mod machine;
mod node;
mod report;
mod rounds;
mod upstream;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use std::path::{Path, PathBuf};
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
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            error.chain().skip(1).for_each(|cause| eprintln!("caused by: {cause}"));
            ExitCode::from(2)
        }
    }
}

/// Whether every promise was kept.
fn run(options: &Options) -> Result<bool> {
    let ordinary = !options.quick && options.threads == 1;
    ensure!(!options.write_docs || ordinary, "`--write-docs` needs a whole run on one thread");
    let root = prepare()?;
    let machine = machine::Machine::look(&root);
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
    report.write(&root.join("target/bench/egress.json"))?;
    if options.write_docs {
        report.write_docs(&root.join("docs/benchmarks.md"))?;
    }
    Ok(report.promises.iter().all(|promise| promise.kept))
}

/// Makes the peer ready: the pinned package, installed once.
fn prepare() -> Result<PathBuf> {
    let root = root()?;
    let status = Command::new(root.join("bench/egress-setup.sh")).status().context("bench/egress-setup.sh")?;
    ensure!(status.success(), "undici could not be made ready (see above)");
    Ok(root)
}

/// This program is `target/release/bench-egress`.
fn root() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let root = program.ancestors().nth(3).filter(|root| root.join("bench/egress").is_dir());
    root.map(Path::to_owned).context("this program must stay in target/release of its repository")
}
