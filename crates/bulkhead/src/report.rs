//! How answers and errors reach people and scripts: stdout is data, stderr is talk.

use crate::terminal;
use serde_json::json;
use std::error::Error;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Exit codes: 0 ok, 1 refused, 2 our fault or this machine's, 64 a bad command line.
pub const REFUSED: u8 = 1;
pub const FAULT: u8 = 2;
pub const USAGE: u8 = 64;

/// Whether anybody still reads what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Reader {
    There,
    /// Went away, having seen enough.
    Gone,
    /// Cannot take it: a full disk, say. That has been told.
    Broken,
}

/// Writes one line of data that more may follow.
pub fn line(text: &str) -> Reader {
    let mut stdout = std::io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Ok(()) => Reader::There,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Reader::Gone,
        Err(error) => {
            talk(&format!("error: stdout cannot be written\n  caused by: {error}"));
            Reader::Broken
        }
    }
}

impl Reader {
    /// The exit code: the one given, unless what was printed could not be written.
    pub fn exit(self, exit: ExitCode) -> ExitCode {
        if self == Reader::Broken { ExitCode::from(FAULT) } else { exit }
    }
}

/// Writes data and gives the exit code: the one given, unless the data could not be written.
pub fn data(text: &str, exit: ExitCode) -> ExitCode {
    line(text).exit(exit)
}

/// Says something on stderr. If that is closed there is nobody to tell.
pub fn talk(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn causes(error: &dyn Error) -> impl Iterator<Item = &dyn Error> {
    let mut next = error.source();
    std::iter::from_fn(move || {
        let cause = next?;
        next = cause.source();
        Some(cause)
    })
}

/// An error with its causes, in one line.
pub fn chain(error: &dyn Error) -> String {
    causes(error).fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Says `error:`, each cause and the hint, or prints one JSON object, and gives the exit code.
pub fn fail(exit: u8, code: &str, error: &dyn Error, hint: Option<&str>, as_json: bool) -> ExitCode {
    let exit = ExitCode::from(exit);
    if as_json {
        let object = json!({ "error": { "code": code, "message": chain(error), "hint": hint } });
        return data(&terminal::json(&object.to_string()), exit);
    }
    talk(&format!("error: {}", terminal::text(&error.to_string())));
    for cause in causes(error) {
        talk(&format!("  caused by: {}", terminal::text(&cause.to_string())));
    }
    if let Some(hint) = hint {
        talk(&format!("hint: {}", terminal::text(hint)));
    }
    exit
}
