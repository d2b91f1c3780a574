//! How errors reach people and scripts: stdout is data, stderr is talk.

use serde_json::json;
use std::error::Error;
use std::process::ExitCode;

/// Exit codes: 0 ok, 1 refused, 2 our fault or this machine's, 64 a bad command line.
pub const REFUSED: u8 = 1;
pub const FAULT: u8 = 2;
pub const USAGE: u8 = 64;

/// Prints `error:`, each cause and the hint, or one JSON object, and gives the exit code.
pub fn fail(exit: u8, code: &str, error: &dyn Error, hint: Option<&str>, as_json: bool) -> ExitCode {
    if as_json {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message = format!("{message}: {error}");
            cause = error.source();
        }
        println!("{}", json!({ "error": { "code": code, "message": message, "hint": hint } }));
    } else {
        eprintln!("error: {error}");
        let mut cause = error.source();
        while let Some(error) = cause {
            eprintln!("  caused by: {error}");
            cause = error.source();
        }
        if let Some(hint) = hint {
            eprintln!("hint: {hint}");
        }
    }
    ExitCode::from(exit)
}
