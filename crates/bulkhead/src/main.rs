#![forbid(unsafe_code)]
//! The command line.

mod doctor;
mod exec;
mod report;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Runs MCP servers that nobody trusts.
///
/// Every call of untrusted code runs in a compartment of its own: a jailed process with its own limits,
/// without files, network, environment or neighbours.
#[derive(Parser)]
#[command(name = "bulkhead", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Exec(exec::Exec),
    Doctor(doctor::Doctor),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command {
        Command::Exec(exec) => exec.run(),
        Command::Doctor(doctor) => doctor.run(),
    }
}
