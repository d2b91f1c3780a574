//! `bulkhead run`: one stdio MCP server in a jail, for one person.

use crate::report::{self, FAULT, REFUSED, USAGE};
use crate::terminal;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use solo::config::{CLIENTS, Change, Wrap, path_of, undo_config, write_config};
use solo::{Error, Limits, Options, Plan, Surroundings, explain};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Run a stdio MCP server in a jail: put this before the command in a client's configuration.
///
/// The server sees a read-only system, its own package, an empty home and a small `/tmp`; of your files only what you name, of
/// the network only hosts you name, of your environment only variables you name. `npx -y PACKAGE` and `uvx PACKAGE` are
/// installed once, without install scripts, and run offline from then on.
///
/// Exit status: the server's own; 1 when it does not start because of what you said, 2 when this machine cannot jail it.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead run -- npx -y @modelcontextprotocol/server-filesystem ./notes\n  \
    bulkhead run --ro ./notes --explain -- npx -y @modelcontextprotocol/server-filesystem ./notes\n  \
    bulkhead run --allow api.github.com --env GITHUB_TOKEN -- ./my-server\n  \
    bulkhead run --write-config claude-desktop          shows the change, and asks\n  \
    bulkhead run --write-config ~/.cursor/mcp.json --undo --yes")]
pub struct Run {
    /// A file or folder that the server may read; may be repeated
    #[arg(long, value_name = "PATH")]
    ro: Vec<PathBuf>,
    /// A file or folder that it may change, too; may be repeated. Settings of repositories, editors and shells in it, such
    /// as `.git`, `.vscode` or `.envrc`, stay read-only
    #[arg(long, value_name = "PATH")]
    rw: Vec<PathBuf>,
    /// Let it change `.git` in what --rw names, but for its settings and hooks
    #[arg(long)]
    commits: bool,
    /// Let it change what programs outside run or obey in what --rw names: `.git/hooks`, `.vscode`, `.envrc` and the like
    #[arg(long)]
    repo_settings: bool,
    /// Let it make Unix sockets with paths, though a folder that is shown may hold sockets of other programs
    #[arg(long)]
    unix_sockets: bool,
    /// A host that it may reach: `api.example.com`, `*.example.com`, or a base URL; may be repeated
    #[arg(long, value_name = "HOST")]
    allow: Vec<String>,
    /// A port of a host, for what does not go through a proxy: `localhost:5432`, `db.example.com:3306`; may be repeated
    #[arg(long, value_name = "HOST:PORT")]
    tcp: Vec<String>,
    /// A variable of your environment that it sees, or `NAME=VALUE`; may be repeated
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// Memory of the server and all that it starts, in MiB
    #[arg(long = "memory", value_name = "MB", default_value_t = Limits::default().memory_mb)]
    memory_mb: u64,
    /// Of the CPU, in percent of one core
    #[arg(long = "cpu", value_name = "PERCENT", default_value_t = Limits::default().cpu_percent)]
    cpu_percent: u32,
    /// Processes and threads
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().processes)]
    processes: u64,
    /// Room in `/tmp`, and the same in the empty home, in MiB
    #[arg(long = "tmp", value_name = "MB", default_value_t = Limits::default().tmp_mb)]
    tmp_mb: u64,
    /// Do not use what is known about this server
    #[arg(long)]
    no_profile: bool,
    /// No network, not even for installing
    #[arg(long)]
    offline: bool,
    /// Run the scripts that the package has for its installation, in the jail of the installer
    #[arg(long)]
    scripts: bool,
    /// Install the package anew
    #[arg(long)]
    refresh: bool,
    /// Say in plain words what the jail is, on stderr, before starting
    #[arg(long)]
    explain: bool,
    /// Say what the jail would be, and start nothing
    #[arg(long, conflicts_with = "explain")]
    dry_run: bool,
    /// Put `bulkhead run` before the servers of a client's configuration: `claude-desktop`, `cursor`, `vscode`, or a file
    #[arg(long, value_name = "CLIENT|FILE", conflicts_with_all = ["command", "explain", "dry_run"])]
    write_config: Option<String>,
    /// With --write-config: take it out again
    #[arg(long, requires = "write_config")]
    undo: bool,
    /// With --write-config: only this server; may be repeated
    #[arg(long, value_name = "SERVER", requires = "write_config")]
    only: Vec<String>,
    /// With --write-config: do not ask
    #[arg(long, requires = "write_config")]
    yes: bool,
    /// The server's command, as it would be run without a jail
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// For a command line without the `--` before the server's command.
pub fn hint(error: &clap::Error, words: &[String]) -> Option<String> {
    let (run, rest) = words.split_first()?;
    let wrong = match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(wrong) if error.kind() == ErrorKind::UnknownArgument && run == "run" => wrong,
        _ => return None,
    };
    let (flags, command) = rest.split_at(rest.iter().position(|word| word == wrong && !word.starts_with('-'))?);
    let words = [&["bulkhead run".to_owned()], flags, &["--".to_owned()], command].concat();
    Some(format!("the server's command comes after `--`: `{}`", words.join(" ")))
}

impl Run {
    pub fn run(self) -> ExitCode {
        let done = match &self.write_config {
            Some(place) => self.configure(place),
            None => self.serve(),
        };
        done.unwrap_or_else(|error| {
            let exit = match &error {
                Error::Jail(_) | Error::Confine(_) | Error::Door(_) | Error::Relay(_) => FAULT,
                Error::NoCommand | Error::Variable(_) | Error::Rule(_) | Error::Tcp(_) | Error::Limit(_) => USAGE,
                _ => REFUSED,
            };
            let hint = (exit == FAULT).then_some("`bulkhead doctor` says what this machine offers");
            report::fail(exit, "run", &error, hint, false)
        })
    }

    fn options(&self) -> Options {
        Options {
            command: self.command.clone(),
            ro: self.ro.clone(),
            rw: self.rw.clone(),
            commits: self.commits,
            repo_settings: self.repo_settings,
            unix_sockets: self.unix_sockets,
            allow: self.allow.clone(),
            tcp: self.tcp.clone(),
            env: self.env.clone(),
            limits: Limits {
                memory_mb: self.memory_mb,
                cpu_percent: self.cpu_percent,
                processes: self.processes,
                tmp_mb: self.tmp_mb,
            },
            no_profile: self.no_profile,
            offline: self.offline,
            refresh: self.refresh,
            scripts: self.scripts,
            interpreter: None,
            explain: self.explain,
        }
    }

    fn serve(&self) -> Result<ExitCode, Error> {
        if self.dry_run {
            let plan = Plan::new(&self.options(), &Surroundings::here()?)?;
            return Ok(report::data(explain(&plan).trim_end(), ExitCode::SUCCESS));
        }
        // Refused only when there is one already, which is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let ended = runtime.map_err(Error::Relay)?.block_on(solo::run(self.options()))?;
        // A thread may still wait for what the client never sends.
        std::process::exit(ended.status)
    }

    fn configure(&self, place: &str) -> Result<ExitCode, Error> {
        let home = Surroundings::here()?.home;
        let path = path_of(place, &home).unwrap_or_else(|| PathBuf::from(place));
        let change = if self.undo { undo_config(&path)? } else { write_config(&path, &self.wrap())? };
        for (server, why) in &change.left {
            report::talk(&terminal::text(&format!("`{server}` stays as it is: {why}")));
        }
        if change.changed.is_empty() {
            report::talk("there is nothing to change");
            return Ok(ExitCode::SUCCESS);
        }
        let shown = report::data(&terminal::lines(&change.diff()), ExitCode::SUCCESS);
        if !self.yes && !agreed(&change.path) {
            report::talk("nothing was written");
            return Ok(ExitCode::from(REFUSED));
        }
        self.write(&change)?;
        Ok(shown)
    }

    fn write(&self, change: &Change) -> Result<(), Error> {
        let backup = change.apply()?;
        let text = format!("written; as it was before it is in `{}`; restart the client", backup.display());
        report::talk(&terminal::text(&text));
        Ok(())
    }

    fn wrap(&self) -> Wrap {
        let program = std::env::current_exe().map(|path| path.to_string_lossy().into_owned());
        let paths = |flag: &str, list: &[PathBuf]| {
            let pairs = list.iter().flat_map(|path| [flag.to_owned(), path.to_string_lossy().into_owned()]);
            pairs.collect::<Vec<_>>()
        };
        let words = |flag: &str, list: &[String]| {
            list.iter().flat_map(|word| [flag.to_owned(), word.clone()]).collect::<Vec<_>>()
        };
        let mut flags = [paths("--ro", &self.ro), paths("--rw", &self.rw)].concat();
        flags.extend([words("--allow", &self.allow), words("--tcp", &self.tcp), words("--env", &self.env)].concat());
        let switches = [
            ("--commits", self.commits),
            ("--repo-settings", self.repo_settings),
            ("--unix-sockets", self.unix_sockets),
            ("--no-profile", self.no_profile),
        ];
        flags.extend(switches.iter().filter(|(_, set)| *set).map(|(flag, _)| (*flag).to_owned()));
        Wrap {
            program: program.unwrap_or_else(|_| "bulkhead".to_owned()),
            flags,
            only: self.only.iter().cloned().collect(),
        }
    }
}

/// Asks a person; nobody is nobody's consent.
fn agreed(path: &Path) -> bool {
    if !std::io::stdin().is_terminal() {
        report::talk(&format!(
            "with `--yes` this is written; known clients: {}",
            CLIENTS.map(|(name, _)| name).join(", ")
        ));
        return false;
    }
    let _ = write!(std::io::stderr(), "write this to `{}`? [y/N] ", path.display());
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}
