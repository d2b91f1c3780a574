//! `bulkhead config`: check a file, show what a host would run with, print the reference.

use super::load::read;
use super::{Config, ConfigError, Loaded, Sources, reference};
use crate::report::{self, FAULT, REFUSED, USAGE};
use crate::terminal;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Check the configuration, show it, or print its reference.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead config check /etc/bulkhead.toml      what is wrong, with line and column\n  \
    bulkhead config show --data /var/lib/bulkhead what a host there would run with\n  \
    bulkhead config reference                     every key there is")]
pub struct ConfigCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Check(Check),
    Show(Show),
    Reference(Reference),
}

/// Check a file.
///
/// Exit status: 0 when a host would take it, 1 when it would not, 64 when it cannot be read.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead config check\n  \
    bulkhead config check bulkhead.toml --json | jq '.problems[]'")]
struct Check {
    /// The file [default: the one that `bulkhead serve` would read]
    file: Option<PathBuf>,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

/// Show what a host would run with: every key, from file, environment and flags.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead config show\n  \
    bulkhead config show --config bulkhead.toml --json | jq .quota")]
struct Show {
    #[command(flatten)]
    sources: Sources,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Print every key with its default and what it does, as Markdown.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead config reference > docs/configuration.md")]
struct Reference {}

impl ConfigCommand {
    pub fn run(self) -> ExitCode {
        match self.action {
            Action::Check(check) => check.run(),
            Action::Show(show) => show.run(),
            Action::Reference(Reference {}) => report::data(reference::page().trim_end(), ExitCode::SUCCESS),
        }
    }
}

impl Check {
    fn run(self) -> ExitCode {
        let loaded = match self.file {
            Some(path) => read(&path).map(|config| Loaded { config, path: Some(path) }),
            None => Sources::default().load(),
        };
        let (path, at_start) = match loaded {
            Ok(Loaded { path, mut config }) => {
                let at_start = config.keep_fixed(&Config::default());
                (path.map(|path| path.to_string_lossy().into_owned()), at_start)
            }
            Err(error) => return explain(&error, REFUSED, self.json),
        };
        if self.json {
            let object = json!({ "ok": true, "path": path, "at_start": at_start });
            return report::data(&terminal::json(&object.to_string()), ExitCode::SUCCESS);
        }
        if !at_start.is_empty() {
            let keys: Vec<_> = at_start.iter().map(|key| format!("`{key}`")).collect();
            report::talk(&format!(
                "note: {} take effect when a host starts, not with `bulkhead reload`",
                keys.join(", ")
            ));
        }
        let words =
            path.map_or("ok: there is no file, so the defaults hold".to_owned(), |path| format!("ok: `{path}`"));
        report::data(&terminal::text(&words), ExitCode::SUCCESS)
    }
}

impl Show {
    fn run(self) -> ExitCode {
        let Loaded { config, path } = match self.sources.load() {
            Ok(loaded) => loaded,
            Err(error) => return explain(&error, REFUSED, self.json),
        };
        if self.json {
            return match serde_json::to_string(&tree(&config)) {
                Ok(text) => report::data(&terminal::json(&text), ExitCode::SUCCESS),
                Err(error) => report::fail(FAULT, "internal", &error, None, true),
            };
        }
        let from = path.map_or("defaults".to_owned(), |path| format!("`{}`", path.display()));
        report::data(&format!("# from {}\n{}", terminal::text(&from), text(&config)), ExitCode::SUCCESS)
    }
}

fn tree(config: &Config) -> toml::Table {
    let mut top = toml::Table::new();
    for (table, keys) in config.show() {
        let values = keys.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        if table.is_empty() {
            top.extend(values);
        } else {
            top.insert(table.to_owned(), toml::Value::Table(values.collect()));
        }
    }
    top
}

/// A file that says the same, but for what is hidden. Keys without a value are comments.
pub fn text(config: &Config) -> String {
    let mut lines = Vec::new();
    for (table, keys) in config.show() {
        if !table.is_empty() {
            lines.push(format!("\n[{table}]"));
        }
        for (key, value) in keys {
            lines.push(value.map_or_else(|| format!("# {key} is not set"), |value| format!("{key} = {value}")));
        }
    }
    lines.join("\n")
}

/// Says what is wrong with a configuration: every problem with its place. `exit` is for a file that can be read.
pub fn explain(error: &ConfigError, exit: u8, as_json: bool) -> ExitCode {
    let (path, problems) = error.problems();
    let exit = match error {
        ConfigError::Problems { .. } | ConfigError::TooLarge { .. } => exit,
        ConfigError::Unreadable { .. } | ConfigError::Environment { .. } => USAGE,
    };
    if as_json {
        let path = path.map(|path| path.to_string_lossy());
        let mut message = error.to_string();
        if let Some(cause) = std::error::Error::source(error) {
            message = format!("{message}: {cause}");
        }
        let problems: Vec<_> = problems
            .iter()
            .map(|p| {
                json!({
                    "path": path, "line": p.line, "column": p.column,
                    "key": p.key, "message": p.message, "hint": p.hint,
                })
            })
            .collect();
        let object = json!({
            "error": { "code": "bad_config", "message": message, "hint": error.hint() },
            "problems": problems,
        });
        return report::data(&terminal::json(&object.to_string()), ExitCode::from(exit));
    }
    if problems.is_empty() {
        return report::fail(exit, "bad_config", error, error.hint(), false);
    }
    let path = path.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    for problem in problems {
        let key = if problem.key.is_empty() { String::new() } else { format!("`{}`: ", problem.key) };
        let line = format!("error: {path}:{}:{}: {key}{}", problem.line, problem.column, problem.message);
        report::talk(&terminal::text(&line));
        if let Some(hint) = &problem.hint {
            report::talk(&format!("hint: {}", terminal::text(hint)));
        }
    }
    ExitCode::from(exit)
}
