//! What a call gave, as people and scripts see it.

use crate::report::{self, FAULT, REFUSED};
use crate::terminal;
use sandbox::{Answer, Code, Failure, LogLine, Receipt};
use serde::Serialize;
use serde_json::value::RawValue;
use std::process::ExitCode;

/// A call's end and all that was said on the way.
pub struct Outcome {
    pub answer: Answer,
    pub logs: Vec<LogLine>,
    /// What the caller could do about a failure.
    pub hint: Option<String>,
}

/// The object of `--json`: a result or an error, never both.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ShownError<'a>>,
    receipt: &'a Receipt,
    logs: Vec<ShownLine<'a>>,
}

#[derive(Serialize)]
struct ShownError<'a> {
    #[serde(flatten)]
    failure: &'a Failure,
    hint: Option<&'a str>,
}

#[derive(Serialize)]
struct ShownLine<'a> {
    level: &'a str,
    text: &'a str,
}

impl Outcome {
    pub fn show(&self, as_json: bool) -> ExitCode {
        // The bytes come from inside the compartment; only its own code says that they are JSON.
        let result = self.answer.outcome.clone().and_then(|bytes| {
            let broken = |error| Failure::new(Code::ProtocolViolation, format!("the result is not JSON: {error}"));
            serde_json::from_slice::<Box<RawValue>>(&bytes).map_err(broken)
        });
        let exit = ExitCode::from(match &result {
            Ok(_) => 0,
            Err(failure) if failure.code == Code::WallUnavailable => FAULT,
            Err(_) => REFUSED,
        });
        if as_json { self.print_json(&result, exit) } else { self.print_text(&result, exit) }
    }

    fn print_json(&self, result: &Result<Box<RawValue>, Failure>, exit: ExitCode) -> ExitCode {
        let shown = Shown {
            result: result.as_ref().ok().map(|result| &**result),
            error: result.as_ref().err().map(|failure| ShownError { failure, hint: self.hint.as_deref() }),
            receipt: &self.answer.receipt,
            logs: self.logs.iter().map(|line| ShownLine { level: &line.level, text: &line.text }).collect(),
        };
        match serde_json::to_string(&shown) {
            Ok(text) => report::data(&terminal::json(&text), exit),
            Err(error) => report::fail(FAULT, "internal", &error, None, true),
        }
    }

    fn print_text(&self, result: &Result<Box<RawValue>, Failure>, exit: ExitCode) -> ExitCode {
        for line in &self.logs {
            report::talk(&format!("{}: {}", terminal::text(&line.level), terminal::text(&line.text)));
        }
        let exit = match result {
            Ok(result) => report::data(&terminal::json(result.get()), exit),
            Err(failure) => {
                report::talk(&format!("error: {}: {}", failure.code, terminal::text(&failure.message)));
                if let Some(hint) = &self.hint {
                    report::talk(&format!("hint: {}", terminal::text(hint)));
                }
                exit
            }
        };
        report::talk(&receipt_line(&self.answer.receipt));
        exit
    }
}

fn receipt_line(receipt: &Receipt) -> String {
    let boundary = serde_json::to_value(receipt.boundary).unwrap_or_default();
    format!(
        "receipt: wall {}, boundary {}, {}; {:.1} ms CPU of {}, {:.1} ms, {} KiB memory of {} MiB, {} host calls",
        receipt.wall,
        boundary.as_str().unwrap_or_default(),
        if receipt.jit { "jit" } else { "jitless" },
        receipt.cpu_us as f64 / 1000.0,
        receipt.limits.cpu_ms,
        receipt.time_us as f64 / 1000.0,
        receipt.peak_memory_kb,
        receipt.limits.memory_mb,
        receipt.host_calls,
    )
}
