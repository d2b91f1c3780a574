//! `bulkhead exec`: one call of one tool behind the wall, without any server.

use crate::report::{self, FAULT, REFUSED, USAGE};
use bytes::Bytes;
use isolate::{Carrier, IsolateSettings, IsolateWall};
use policy::{Allowance, Ask, Boundary, LimitName, Limits, permit};
use sandbox::{Answer, Deployment, LogLine, NoNetwork, Operation, Pool, PoolSettings, Request};
use serde_json::{json, value::RawValue};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Run one tool of a server behind the isolate wall.
///
/// FILE is an ES module whose default export is a server, or a bare script body that uses `input` and returns a value.
/// The result goes to stdout, the receipt and what the tool logged to stderr; with --json both are one object on stdout.
///
/// Exit status: 0 the tool answered, 1 the call was refused or failed, 2 this host cannot run it, 64 bad usage.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead exec examples/prices.js double_price '{\"price\": 45}'\n  \
    bulkhead exec examples/prices.js double_price '{\"price\": 45}' --limit cpu_ms=20 --json\n  \
    bulkhead exec hostile.js run '{}' --boundary call --limit memory_mb=32")]
pub struct Exec {
    /// The server: a JavaScript file
    file: PathBuf,
    /// The tool to call (a bare script answers to any name)
    tool: String,
    /// The tool's input as JSON; `-` reads it from stdin
    #[arg(default_value = "{}")]
    input: String,
    /// Change a limit; may be repeated.
    #[arg(long = "limit", value_name = "NAME=VALUE", value_parser = parse_limit)]
    limits: Vec<(LimitName, u64)>,
    /// CPU time of the call in milliseconds
    #[arg(long, value_name = "MS")]
    cpu_ms: Option<u64>,
    /// Wall-clock time of the call in milliseconds
    #[arg(long, value_name = "MS")]
    time_ms: Option<u64>,
    /// Memory of the compartment in MiB
    #[arg(long, value_name = "MIB")]
    memory_mb: Option<u64>,
    /// Run with V8's compilers: faster loops, but the compartment has writable and executable memory
    #[arg(long)]
    jit: bool,
    /// How much shares one compartment; with --repeat this shows
    #[arg(long, default_value = "call", value_parser = |text: &str| text.parse::<Boundary>())]
    boundary: Boundary,
    /// Make the same call so often, one after the other; the last answer is printed
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Print result and receipt as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, thiserror::Error)]
enum ExecError {
    #[error("`{}` cannot be read", .0.display())]
    File(PathBuf, #[source] std::io::Error),
    #[error("`{}` is TypeScript, which is not built yet; give JavaScript", .0.display())]
    TypeScript(PathBuf),
    #[error("stdin cannot be read")]
    Stdin(#[source] std::io::Error),
    #[error("the input is not JSON")]
    Input(#[source] serde_json::Error),
    #[error(transparent)]
    Refusal(#[from] policy::Refusal),
    #[error("the wall cannot be started")]
    Wall(#[from] isolate::WallError),
    #[error("the runtime cannot be started")]
    Runtime(#[source] std::io::Error),
}

impl Exec {
    pub fn run(self) -> ExitCode {
        let as_json = self.json;
        match self.call() {
            Ok((answer, logs)) => show(answer, &logs, as_json),
            Err(error) => explain(&error, as_json),
        }
    }

    fn call(self) -> Result<(Answer, Vec<LogLine>), ExecError> {
        let deployment = Arc::new(self.deployment()?);
        let input = read_input(&self.input)?;
        let carrier = Carrier::find().map_err(isolate::WallError::from)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ExecError::Runtime)?;
        runtime.block_on(async {
            let quick_forks = self.repeat > 100;
            let wall = IsolateWall::start(IsolateSettings { quick_forks, ..IsolateSettings::new(carrier) }).await?;
            let spares = if self.repeat > 1 { 2 } else { 0 };
            let pool = Pool::new(Arc::new(wall), PoolSettings { spares, ..PoolSettings::default() });
            let request =
                Request { operation: Operation::Tool, name: self.tool, input, session: Some("exec".to_owned()) };
            let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
            let host = Arc::new(NoNetwork(move |line: LogLine| {
                // Bounded by the call's log limit.
                let _ = tell.send(line);
            }));
            let mut answer = pool.call(&deployment, &request, host.clone()).await;
            for _ in 1..self.repeat {
                answer = pool.call(&deployment, &request, host.clone()).await;
            }
            let mut logs = Vec::new();
            while let Ok(line) = told.try_recv() {
                logs.push(line);
            }
            Ok((answer, logs))
        })
    }

    fn deployment(&self) -> Result<Deployment, ExecError> {
        if self.file.extension().is_some_and(|ext| ext == "ts" || ext == "mts" || ext == "tsx") {
            return Err(ExecError::TypeScript(self.file.clone()));
        }
        let source = std::fs::read(&self.file).map_err(|source| ExecError::File(self.file.clone(), source))?;
        let mut limits = Limits::default();
        for (name, value) in &self.limits {
            limits.set(*name, *value);
        }
        limits.cpu_ms = self.cpu_ms.unwrap_or(limits.cpu_ms);
        limits.time_ms = self.time_ms.unwrap_or(limits.time_ms);
        limits.memory_mb = self.memory_mb.unwrap_or(limits.memory_mb);
        let ask = Ask { limits, boundary: self.boundary, jit: self.jit };
        Ok(Deployment {
            tenant: "local".to_owned(),
            server: "exec".to_owned(),
            id: "exec".to_owned(),
            source: Bytes::from(source),
            file_name: file_name(&self.file),
            permit: permit(&ask, &Allowance::default())?,
        })
    }
}

/// What stack traces say: the name, never the path.
fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| "server.js".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn read_input(input: &str) -> Result<Bytes, ExecError> {
    let text = match input {
        "-" => std::io::read_to_string(std::io::stdin()).map_err(ExecError::Stdin)?,
        text => text.to_owned(),
    };
    serde_json::from_str::<&RawValue>(&text).map_err(ExecError::Input)?;
    Ok(Bytes::from(text))
}

fn parse_limit(text: &str) -> Result<(LimitName, u64), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not NAME=VALUE"))?;
    let name = name.parse::<LimitName>().map_err(|e| e.to_string())?;
    let value = value.parse().map_err(|_| format!("`{value}` is not a whole number"))?;
    Ok((name, value))
}

fn show(answer: Answer, logs: &[LogLine], as_json: bool) -> ExitCode {
    let receipt = &answer.receipt;
    let exit = if answer.outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) };
    let result = answer.outcome.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    if as_json {
        let logs: Vec<_> = logs.iter().map(|line| json!({ "level": line.level, "text": line.text })).collect();
        let object = match result {
            Ok(text) => match RawValue::from_string(text) {
                Ok(result) => serde_json::to_string(&Shown { result: &result, receipt, logs }),
                Err(error) => Ok(json!({ "error": { "code": "protocol_violation",
                    "message": format!("the result is not JSON: {error}") }, "receipt": receipt })
                .to_string()),
            },
            Err(failure) => Ok(json!({ "error": failure, "receipt": receipt, "logs": logs }).to_string()),
        };
        println!("{}", object.unwrap_or_else(|error| json!({ "error": error.to_string() }).to_string()));
        return exit;
    }
    for line in logs {
        eprintln!("{}: {}", line.level, printable(&line.text));
    }
    match result {
        Ok(text) => println!("{text}"),
        Err(failure) => eprintln!("error: {}: {}", failure.code, printable(&failure.message)),
    }
    eprintln!(
        "receipt: wall {}, boundary {}, {}; {:.1} ms CPU of {}, {:.1} ms, {} KiB memory of {} MiB, {} host calls",
        receipt.wall,
        json!(receipt.boundary).as_str().unwrap_or_default(),
        if receipt.jit { "jit" } else { "jitless" },
        receipt.cpu_us as f64 / 1000.0,
        receipt.limits.cpu_ms,
        receipt.time_us as f64 / 1000.0,
        receipt.peak_memory_kb,
        receipt.limits.memory_mb,
        receipt.host_calls,
    );
    exit
}

#[derive(serde::Serialize)]
struct Shown<'a> {
    result: &'a RawValue,
    receipt: &'a sandbox::Receipt,
    logs: Vec<serde_json::Value>,
}

/// What untrusted code says must not steer the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect()
}

fn explain(error: &ExecError, as_json: bool) -> ExitCode {
    let (exit, code, hint) = match error {
        ExecError::File(..) | ExecError::TypeScript(_) | ExecError::Stdin(_) => (USAGE, "bad_file", None),
        ExecError::Input(_) => (USAGE, "bad_arguments", Some("quote it for the shell: '{\"price\": 45}'")),
        ExecError::Refusal(_) => (REFUSED, "refused", None),
        ExecError::Wall(_) => {
            (FAULT, "wall_unavailable", Some("`bulkhead doctor` says what this host offers and what is missing"))
        }
        ExecError::Runtime(_) => (FAULT, "internal", None),
    };
    report::fail(exit, code, error, hint, as_json)
}
