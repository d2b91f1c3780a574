//! `bulkhead completions`: the command line, for shells.

use crate::{Cli, report};
use std::process::ExitCode;

/// Print the completion script of a shell.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead completions bash > ~/.local/share/bash-completion/completions/bulkhead\n  \
    bulkhead completions fish > ~/.config/fish/completions/bulkhead.fish")]
pub struct Completions {
    /// The shell
    shell: clap_complete::Shell,
}

impl Completions {
    pub fn run(self) -> ExitCode {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::whole(), "bulkhead", &mut script);
        report::data(String::from_utf8_lossy(&script).trim_end(), ExitCode::SUCCESS)
    }
}
