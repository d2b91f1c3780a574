//! `bulkhead exec`: one call of one tool behind the wall, without any server.

use crate::outcome::Outcome;
use crate::report::{self, FAULT, REFUSED, USAGE};
use crate::source::{Source, SourceError, read_at_most};
use bytes::Bytes;
use isolate::{Carrier, IsolateSettings, IsolateWall};
use policy::{Allowance, Ask, Boundary, LimitName, Limits, permit};
use sandbox::{Answer, Code, Deployment, LogLine, NoNetwork, Operation, Pool, PoolSettings, Program, Request};
use serde_json::value::RawValue;
use std::path::PathBuf;
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
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("stdin cannot be read")]
    Stdin(#[source] std::io::Error),
    #[error("the input on stdin is larger than {most} KiB (`argument_kb`)")]
    StdinTooLarge { most: u64 },
    #[error("the input is not JSON")]
    Input(#[source] serde_json::Error),
    #[error(transparent)]
    Refusal(#[from] policy::Refusal),
    #[error(transparent)]
    Hidden(bundle::Hidden),
    #[error("the wall cannot be started")]
    Wall(#[from] isolate::WallError),
    #[error("the runtime cannot be started")]
    Runtime(#[source] std::io::Error),
}

impl Exec {
    pub fn run(self) -> ExitCode {
        let as_json = self.json;
        match self.call() {
            Ok(outcome) => outcome.show(as_json),
            Err(error) => explain(&error, as_json),
        }
    }

    fn call(self) -> Result<Outcome, ExecError> {
        let (deployment, source) = self.deployment()?;
        let deployment = Arc::new(deployment);
        let input = read_input(&self.input, deployment.permit.limits())?;
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
            // A host would not take a server that hides something from people who look at it.
            if let Ok(seed) = pool.seed(&deployment).await
                && let Some(hidden) = hidden(seed.surface())
            {
                return Err(ExecError::Hidden(hidden));
            }
            let mut answer = pool.call(&deployment, &request, host.clone()).await;
            for _ in 1..self.repeat {
                answer = pool.call(&deployment, &request, host.clone()).await;
            }
            let mut logs = Vec::new();
            while let Ok(line) = told.try_recv() {
                logs.push(line);
            }
            let hint = hint(&pool, &deployment, &answer).await;
            if let Err(failure) = &mut answer.outcome {
                failure.message = source.trace(&failure.message);
            }
            Ok(Outcome { answer, logs, hint })
        })
    }

    fn deployment(&self) -> Result<(Deployment, Source), ExecError> {
        let mut limits = Limits::default();
        for (name, value) in &self.limits {
            limits.set(*name, *value);
        }
        limits.cpu_ms = self.cpu_ms.unwrap_or(limits.cpu_ms);
        limits.time_ms = self.time_ms.unwrap_or(limits.time_ms);
        limits.memory_mb = self.memory_mb.unwrap_or(limits.memory_mb);
        let ask = Ask { limits, boundary: self.boundary, jit: self.jit };
        let permit = permit(&ask, &Allowance::default())?;
        let source = Source::of_file(&self.file, permit.limits().source_kb)?;
        source.warnings.iter().for_each(|warning| report::talk(warning));
        let deployment = Deployment {
            tenant: "local".to_owned(),
            server: "exec".to_owned(),
            id: "exec".to_owned(),
            program: Program::Module { source: Bytes::from(source.code.clone()), file_name: source.name.clone() },
            permit,
            shows: sandbox::Shows::default(),
        };
        Ok((deployment, source))
    }
}

fn read_input(input: &str, limits: &Limits) -> Result<Bytes, ExecError> {
    let text = match input {
        "-" => {
            let most = limits.argument_kb;
            let read = read_at_most(std::io::stdin(), most).map_err(ExecError::Stdin)?;
            read.ok_or(ExecError::StdinTooLarge { most })?
        }
        text => text.as_bytes().to_vec(),
    };
    serde_json::from_slice::<&RawValue>(&text).map_err(ExecError::Input)?;
    Ok(Bytes::from(text))
}

fn hidden(surface: &RawValue) -> Option<bundle::Hidden> {
    bundle::Surface::new(serde_json::from_str(surface.get()).ok()?).ok()?.hidden()
}

/// What the server has, for a caller who asked for what it has not.
async fn hint(pool: &Pool, deployment: &Arc<Deployment>, answer: &Answer) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Surface {
        tools: Vec<Tool>,
    }
    #[derive(serde::Deserialize)]
    struct Tool {
        name: String,
    }
    const MOST: usize = 20;
    if answer.outcome.as_ref().err()?.code != Code::UnknownTool {
        return None;
    }
    let seed = pool.seed(deployment).await.ok()?;
    let surface: Surface = serde_json::from_str(seed.surface().get()).ok()?;
    let mut names: Vec<_> = surface.tools.iter().take(MOST).map(|tool| format!("`{}`", tool.name)).collect();
    if surface.tools.len() > MOST {
        names.push(format!("{} more", surface.tools.len() - MOST));
    }
    Some(if names.is_empty() {
        "the server has no tools".to_owned()
    } else {
        format!("the server has {}", names.join(", "))
    })
}

pub fn parse_limit(text: &str) -> Result<(LimitName, u64), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not NAME=VALUE"))?;
    let name = name.parse::<LimitName>().map_err(|e| e.to_string())?;
    let value = value.parse().map_err(|_| format!("`{value}` is not a whole number"))?;
    Ok((name, value))
}

fn explain(error: &ExecError, as_json: bool) -> ExitCode {
    let (exit, code, hint) = match error {
        ExecError::Source(SourceError::File(..)) | ExecError::Stdin(_) => (USAGE, "bad_file", None),
        ExecError::Source(SourceError::Build(error)) => (REFUSED, error.code(), None),
        // The codes that the wall has for the same.
        ExecError::Source(SourceError::TooLarge { .. }) => (REFUSED, "init_failed", None),
        ExecError::StdinTooLarge { .. } => (REFUSED, "argument_limit", None),
        ExecError::Input(_) => (USAGE, "bad_arguments", Some("quote it for the shell: '{\"price\": 45}'")),
        ExecError::Refusal(_) => (REFUSED, "refused", None),
        ExecError::Hidden(_) => (REFUSED, "init_failed", None),
        ExecError::Wall(_) => {
            (FAULT, "wall_unavailable", Some("`bulkhead doctor` says what this host offers and what is missing"))
        }
        ExecError::Runtime(_) => (FAULT, "internal", None),
    };
    report::fail(exit, code, error, hint, as_json)
}
