#![forbid(unsafe_code)]
//! The command line.

mod completions;
mod doctor;
mod exec;
mod outcome;
mod report;
mod terminal;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Runs MCP servers that nobody trusts.
///
/// Every call of untrusted code runs in a compartment of its own: a jailed process with its own limits,
/// without files, network, environment or neighbours.
#[derive(Parser)]
#[command(
    name = "bulkhead",
    version,
    propagate_version = true,
    after_help = "Examples:\n  \
        bulkhead doctor                                                  what this machine can enforce\n  \
        bulkhead exec examples/prices.js double_price '{\"price\": 45}'    one call of one tool\n  \
        bulkhead exec --help                                             limits and boundaries"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Exec(exec::Exec),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way, too. If they cannot be printed there is nobody to tell.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(report::USAGE) } else { ExitCode::SUCCESS };
        }
    };
    match cli.command {
        Command::Exec(exec) => exec.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Completions(completions) => completions.run(),
    }
}
