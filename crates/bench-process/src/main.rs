#![forbid(unsafe_code)]
//! Measures the process wall beside the bare program, beside bubblewrap, and beside `npx`: the same servers, the same run.
//! How to read it: docs/benchmarks.md.

mod memory;
mod peer;
mod report;
mod rounds;
mod rows;

use anyhow::{Context, Result, ensure};
use bench_process::host::Host;
use bench_report::{Machine, all_kept, pinned_versions, prepare, said, write_json};
use clap::Parser;
use memory::Memory;
use report::{Figures, Report};
use rows::{Row, bare};
use sandbox::PoolSettings;
use std::path::Path;
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
    bench_report::ended(run(&Options::parse()))
}

/// Whether every promise was kept.
fn run(options: &Options) -> Result<bool> {
    let whole = !options.quick && options.only.is_empty();
    ensure!(!options.write_docs || whole, "`--write-docs` needs a whole run");
    let rows = rows::chosen(&options.only)?;
    let root = prepare("process-setup.sh")?;
    let machine = Machine::look(peers(&root));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let figures = runtime.block_on(measure(&rows, &root.join("target/bench/process"), options.quick))?;
    let promises = report::promises(&rows, &figures);
    let report = Report { machine, quick: options.quick, rows: figures, promises };
    report.print();
    write_json(&root.join("target/bench/process.json"), &report)?;
    if options.write_docs {
        report.write_docs(&root.join("docs/benchmarks.md"))?;
    }
    Ok(all_kept(&report.promises))
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

fn peers(root: &Path) -> Vec<(String, String)> {
    let version = |name: &str, program: &str| {
        let said = said(Command::new(program).arg("--version").env("PATH", "/usr/local/bin:/usr/bin:/bin"));
        (name.to_owned(), said.rsplit(' ').next().unwrap_or_default().to_owned())
    };
    let programs = [version("Node", "node"), version("Python", "python3"), version("bubblewrap", "bwrap")];
    programs.into_iter().chain(pinned_versions(&root.join("bench/process/package.json"))).collect()
}
