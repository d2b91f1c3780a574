#![forbid(unsafe_code)]
//! Measures the process wall beside the bare program, beside bubblewrap, and beside `npx`: the same servers, the same run.
//! How to read it: docs/benchmarks.md.

mod machine;
mod memory;
mod peer;
mod report;
mod rounds;
mod rows;

use anyhow::{Context, Result, ensure};
use bench_process::host::Host;
use clap::Parser;
use memory::Memory;
use report::{Figures, Report};
use rows::{Row, bare};
use sandbox::PoolSettings;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

#[derive(Parser)]
#[command(about = "Measures the process wall beside bare processes, bubblewrap and npx")]
struct Options {
    /// A short run: shows that it works, not how fast
    #[arg(long)]
    quick: bool,
    /// Replace the table of docs/benchmarks.md
    #[arg(long)]
    write_docs: bool,
    /// Rows to measure, instead of all
    #[arg(long, value_name = "ROW")]
    only: Vec<String>,
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
    let whole = !options.quick && options.only.is_empty();
    ensure!(!options.write_docs || whole, "`--write-docs` needs a whole run");
    let rows = rows::chosen(&options.only)?;
    let root = prepare()?;
    let machine = machine::Machine::look(&root);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let figures = runtime.block_on(measure(&rows, &root.join("target/bench/process"), options.quick))?;
    let promises = report::promises(&rows, &figures);
    let report = Report { machine, quick: options.quick, rows: figures, promises };
    report.print();
    report.write(&root.join("target/bench/process.json"))?;
    if options.write_docs {
        report.write_docs(&root.join("docs/benchmarks.md"))?;
    }
    Ok(report.promises.iter().all(|promise| promise.kept))
}

async fn measure(rows: &[Row], files: &Path, quick: bool) -> Result<Vec<Figures>> {
    let host = Host::start(files, PoolSettings::default())?;
    let times = rounds::measure(&host, rows, files, quick).await?;
    let mut memories: Vec<Memory> = Vec::new();
    for row in rows {
        eprintln!("memory of {}", row.name);
        memories.push(memory::measure(&host, row, files).await.with_context(|| row.name)?);
    }
    let of_bare = |row: &Row| bare(rows, row.server).map(|index| memories[index]).unwrap_or_default();
    let figures = rows.iter().zip(&times).zip(&memories);
    Ok(figures.map(|((row, times), memory)| Figures::of(row, times, memory, &of_bare(row))).collect())
}

/// Makes the peers ready, once.
fn prepare() -> Result<PathBuf> {
    let root = root()?;
    let status = Command::new(root.join("bench/process-setup.sh")).status().context("bench/process-setup.sh")?;
    ensure!(status.success(), "the peers could not be made ready (see above)");
    Ok(root)
}

/// This program is `target/release/bench-process`.
fn root() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let root = program.ancestors().nth(3).filter(|root| root.join("bench/process").is_dir());
    root.map(Path::to_owned).context("this program must stay in target/release of its repository")
}
