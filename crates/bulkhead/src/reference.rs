//! `bulkhead reference`: the command line as a page, docs/cli.md.

use crate::{Cli, report};
use std::fmt::Write;
use std::process::ExitCode;

const HEAD: &str = "\
# Command line

<!-- Made by `bulkhead reference`; a test compares. -->

`bulkhead COMMAND --help` says all of this and more, with examples; `bulkhead completions SHELL` teaches it to a shell.

- The host is found by `--url` or `BULKHEAD_URL` (`http://127.0.0.1:8470` unless given), the key by `--key`, `--key-file`
  or `BULKHEAD_KEY`. The first `bulkhead serve` writes the operator's key into `operator.key` in its data directory.
- stdout is data, stderr is talk. `--json` prints one JSON object, or one per line where there is no end.
- Exit status: 0 done, 1 refused, 2 a fault (the host's, or it cannot be reached), 64 a command line that makes no sense.
  With `--json` a refusal prints `{\"error\": {\"code\", \"message\", \"hint\"}}` on stdout; codes are stable.
";

/// Print the command line as Markdown.
#[derive(clap::Args)]
pub struct Reference {}

impl Reference {
    pub fn run(self) -> ExitCode {
        report::data(page().trim_end(), ExitCode::SUCCESS)
    }
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    let whole = Cli::whole();
    let mut commands: Vec<_> = whole.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    commands.retain(|command| command.get_name() != "help");
    // Changing a command puts it last; the order of help is the one they were declared in.
    commands.sort_by_key(|command| command.get_display_order());
    for command in commands {
        // Writing into a string cannot fail.
        let _ = write!(page, "\n## `bulkhead {}`\n\n{}\n\n", command.get_name(), about(command));
        entry(&mut page, "bulkhead", command);
    }
    page
}

fn about(command: &clap::Command) -> String {
    let text = command.get_about().map(ToString::to_string).unwrap_or_default();
    if text.ends_with('.') { text } else { format!("{text}.") }
}

/// Its usage and flags, or those of what is below it.
fn entry(page: &mut String, parent: &str, command: &clap::Command) {
    let name = format!("{parent} {}", command.get_name());
    let inner: Vec<_> = command.get_subcommands().filter(|inner| inner.get_name() != "help").collect();
    for inner in &inner {
        entry(page, &name, inner);
    }
    if !inner.is_empty() {
        return;
    }
    let positional = command.get_positionals().map(|arg| {
        let names = arg.get_value_names().map_or_else(|| arg.get_id().to_string(), |names| names.join(" "));
        if arg.is_required_set() { names } else { format!("[{names}]") }
    });
    let usage: Vec<_> = std::iter::once(name.clone()).chain(positional).collect();
    let what = if parent == "bulkhead" { String::new() } else { format!(": {}", about(command).trim_end_matches('.')) };
    let _ = writeln!(page, "- `{}`{what}", usage.join(" "));
    for arg in command.get_opts().chain(command.get_arguments().filter(|arg| is_switch(arg))) {
        let ours = !arg.is_hide_set()
            && !matches!(arg.get_id().as_str(), "url" | "key" | "key_file" | "help" | "version" | "json");
        if let (true, Some(long)) = (ours, arg.get_long()) {
            let value = arg.get_value_names().filter(|_| arg.get_action().takes_values());
            let value = value.map(|names| format!(" {}", names.join(" "))).unwrap_or_default();
            let about = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(page, "  - `--{long}{value}`: {about}");
        }
    }
}

fn is_switch(arg: &clap::Arg) -> bool {
    arg.get_long().is_some() && !arg.get_action().takes_values()
}
