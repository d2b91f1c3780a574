//! `bulkhead doctor`: what this host offers and what each wall would run with.

use crate::config::Config;
use crate::report::{self, FAULT, REFUSED};
use ::process::{ProcessSettings, ProcessWall};
use isolate::{Carrier, IsolateSettings, IsolateWall};
use jail::doctor::{Report, probe};
use serde::Serialize;
use std::process::ExitCode;

/// Say what this host can enforce, and which walls it can therefore run.
///
/// Everything is tried in short-lived processes, as the user who asks. Exit status: 0 when the isolate wall starts,
/// 1 when it does not.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead doctor\n  \
    bulkhead doctor --json | jq '.walls[] | select(.available) | .name'")]
pub struct Doctor {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Findings {
    #[serde(flatten)]
    host: Report,
    walls: Vec<WallFinding>,
}

#[derive(Serialize)]
struct WallFinding {
    name: &'static str,
    available: bool,
    /// What it would run with, or why it would not start.
    detail: String,
}

impl Doctor {
    pub fn run(self) -> ExitCode {
        // Before there are other threads: the probes fork.
        let host = probe();
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                report::talk(&format!("error: the runtime cannot be started\n  caused by: {error}"));
                return ExitCode::from(FAULT);
            }
        };
        let walls = vec![
            isolate(&host, &runtime),
            process(&host),
            WallFinding { name: "microvm", available: false, detail: "not built yet".to_owned() },
        ];
        let exit = if walls[0].available { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) };
        let findings = Findings { host, walls };
        if !self.json {
            return report::data(&table(&findings), exit);
        }
        match serde_json::to_string_pretty(&findings) {
            Ok(text) => report::data(&text, exit),
            Err(error) => report::fail(FAULT, "internal", &error, None, true),
        }
    }
}

/// Really starts it: nothing else tells as well whether it starts.
fn isolate(host: &Report, runtime: &tokio::runtime::Runtime) -> WallFinding {
    let missing: Vec<_> = host.missing_for("isolate").iter().map(|check| check.name.clone()).collect();
    let started = runtime.block_on(async {
        let carrier = Carrier::find().map_err(isolate::WallError::from)?;
        // As a host would without a configuration, but for the slow start.
        let settings = IsolateSettings { quick_forks: false, ..Config::default().isolate(carrier) };
        IsolateWall::start(settings).await.map(|wall| wall.posture())
    });
    let (available, detail) = match started {
        Ok(posture) => (missing.is_empty(), posture),
        Err(error) => (false, report::chain(&error)),
    };
    let detail = if missing.is_empty() { detail } else { format!("missing: {}; {detail}", missing.join(", ")) };
    WallFinding { name: "isolate", available, detail }
}

fn process(host: &Report) -> WallFinding {
    let missing: Vec<_> = host.missing_for("process").iter().map(|check| check.name.clone()).collect();
    let detail = match (missing.is_empty(), ProcessWall::start(ProcessSettings::default())) {
        (true, Ok(wall)) => wall.posture(),
        (true, Err(error)) => {
            return WallFinding { name: "process", available: false, detail: report::chain(&error) };
        }
        (false, _) => format!("missing: {}", missing.join(", ")),
    };
    WallFinding { name: "process", available: missing.is_empty(), detail }
}

fn table(findings: &Findings) -> String {
    let width = findings.host.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut lines = vec!["this host".to_owned()];
    for check in &findings.host.checks {
        let mark = match (check.available, check.needed_by.is_empty()) {
            (true, _) => "ok",
            (false, true) => "--",
            (false, false) => "NO",
        };
        lines.push(format!("  {mark:2}  {:width$}  {}", check.name, check.detail));
    }
    lines.push("walls".to_owned());
    for wall in &findings.walls {
        lines.push(format!("  {:2}  {:width$}  {}", if wall.available { "ok" } else { "--" }, wall.name, wall.detail));
    }
    lines.join("\n")
}
