#![forbid(unsafe_code)]
//! The command line.

mod client;
mod commands;
mod completions;
mod config;
mod doctor;
mod exec;
mod logging;
mod outcome;
mod reference;
mod report;
mod run;
mod serve;
mod source;
mod terminal;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;

/// A call allocates many small things and frees them again: with the C library's allocator, an eighth of what it costs the host.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
        bulkhead exec examples/prices.js double_price '{\"price\": 45}'    one call of one tool, without a host\n  \
        bulkhead run -- npx -y @modelcontextprotocol/server-everything   any stdio server in a jail, for yourself\n  \
        bulkhead serve                                                   the host\n  \
        export BULKHEAD_KEY=$(cat bulkhead-data/operator.key)            who you are to it\n  \
        bulkhead tenant create acme                                      somebody with servers\n  \
        bulkhead deploy examples/prices.js --server acme/prices          a server\n  \
        bulkhead call acme/prices double_price '{\"price\": 45}'           a call of one of its tools"
)]
struct Cli {
    #[command(flatten)]
    connection: client::Connection,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Exec(exec::Exec),
    Run(run::Run),
    Doctor(doctor::Doctor),
    Serve(serve::Serve),
    Dev(serve::Dev),
    Config(config::ConfigCommand),
    Tenant(commands::Tenant),
    Key(commands::Key),
    Server(commands::Server),
    Init(commands::Init),
    Deploy(commands::Deploy),
    Deployments(commands::Deployments),
    Diff(commands::Diff),
    Rollback(commands::Rollback),
    Approve(commands::Approve),
    Publisher(commands::Publisher),
    Secret(commands::Secret),
    Provider(commands::Provider),
    Connect(commands::Connect),
    Disconnect(commands::Disconnect),
    Connections(commands::Connections),
    Egress(commands::Egress),
    Tools(commands::Tools),
    Call(commands::Call),
    Logs(commands::Logs),
    Calls(commands::Calls),
    AuditLog(commands::AuditLog),
    Host(commands::Host),
    #[command(name = "limits")]
    Limits(commands::LimitsCommand),
    Reload(commands::Reload),
    Completions(completions::Completions),
    #[command(hide = true)]
    Reference(reference::Reference),
}

impl Command {
    fn is_local(&self) -> bool {
        use Command::{Completions, Config, Dev, Doctor, Exec, Publisher, Reference, Run, Serve};
        matches!(
            self,
            Exec(_) | Run(_) | Doctor(_) | Serve(_) | Dev(_) | Config(_) | Publisher(_) | Completions(_) | Reference(_)
        )
    }
}

/// The local ones by name: they show no flags to find a host.
const LOCAL: [&str; 9] = ["exec", "run", "doctor", "serve", "dev", "config", "publisher", "completions", "reference"];

impl Cli {
    /// The whole command line, as help, completions and the reference show it.
    fn whole() -> clap::Command {
        fn without_host(command: clap::Command) -> clap::Command {
            let names: Vec<_> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
            let hidden = command.mut_args(|arg| match arg.get_id().as_str() {
                "url" | "key" | "key_file" => arg.hide(true),
                _ => arg,
            });
            names.into_iter().fold(hidden, |command, name| command.mut_subcommand(name, without_host))
        }
        let mut whole = Cli::command();
        whole.build();
        LOCAL.into_iter().fold(whole, |whole, name| {
            if whole.find_subcommand(name).is_some() { whole.mut_subcommand(name, without_host) } else { whole }
        })
    }
}

fn main() -> ExitCode {
    jail::process::abort_on_panic();
    let parsed = Cli::whole().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let Cli { connection, command } = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way, too. If they cannot be printed there is nobody to tell.
            let _ = error.print();
            let words: Vec<String> = std::env::args().skip(1).collect();
            if let Some(hint) = run::hint(&error, &words) {
                report::talk(&format!("hint: {}", terminal::text(&hint)));
            }
            return if error.use_stderr() { ExitCode::from(report::USAGE) } else { ExitCode::SUCCESS };
        }
    };
    if connection.is_given() && command.is_local() {
        let message = "this command talks to no host, so it has no --url, --key or --key-file\n";
        let _ = Cli::command().error(clap::error::ErrorKind::ArgumentConflict, message).print();
        return ExitCode::from(report::USAGE);
    }
    match command {
        Command::Exec(exec) => exec.run(),
        Command::Run(run) => run.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Serve(serve) => serve.run(),
        Command::Dev(dev) => dev.run(),
        Command::Config(config) => config.run(),
        Command::Tenant(tenant) => tenant.run(&connection),
        Command::Key(key) => key.run(&connection),
        Command::Server(server) => server.run(&connection),
        Command::Init(init) => init.run(),
        Command::Deploy(deploy) => deploy.run(&connection),
        Command::Deployments(deployments) => deployments.run(&connection),
        Command::Diff(diff) => diff.run(&connection),
        Command::Rollback(rollback) => rollback.run(&connection),
        Command::Approve(approve) => approve.run(&connection),
        Command::Publisher(publisher) => publisher.run(),
        Command::Secret(secret) => secret.run(&connection),
        Command::Provider(provider) => provider.run(&connection),
        Command::Connect(connect) => connect.run(&connection),
        Command::Disconnect(disconnect) => disconnect.run(&connection),
        Command::Connections(connections) => connections.run(&connection),
        Command::Egress(egress) => egress.run(&connection),
        Command::Tools(tools) => tools.run(&connection),
        Command::Call(call) => call.run(&connection),
        Command::Logs(logs) => logs.run(&connection),
        Command::Calls(calls) => calls.run(&connection),
        Command::AuditLog(audit) => audit.run(&connection),
        Command::Host(host) => host.run(&connection),
        Command::Limits(limits) => limits.run(&connection),
        Command::Reload(reload) => reload.run(&connection),
        Command::Completions(completions) => completions.run(),
        Command::Reference(reference) => reference.run(),
    }
}
