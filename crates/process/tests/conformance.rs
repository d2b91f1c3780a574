//! The suite that every wall passes, on the process wall, with servers in Python.

#[path = "support/processes.rs"]
mod processes;

use libtest_mimic::{Arguments, Trial};
use process::{ProcessSettings, ProcessWall};
use processes::below;
use sandbox::conformance::{Behaviour, Capability, Outside, Subject, cases};
use sandbox::{Program, Speaks};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// A program is no module whose length could be measured.
const LACKS: &[Capability] = &[Capability::Module];

/// Depth of programs in the tree of processes: below the one that waits outside and the first one inside.
const PROGRAMS: usize = 3;

fn main() {
    let mut arguments = Arguments::from_args();
    // Some cases look at, or kill, all processes of the wall.
    arguments.test_threads = Some(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = Arc::new(runtime.expect("a runtime"));
    let wall = ProcessWall::start(ProcessSettings::default()).expect("a wall");
    let subject = Arc::new(Subject {
        wall: Arc::new(wall),
        program,
        value,
        lacks: LACKS,
        outside: Some(Outside { living, kill_seeds: kill, kill_compartments: kill }),
    });
    let trials = cases().into_iter().map(|case| {
        let (runtime, subject) = (runtime.clone(), subject.clone());
        let lacks = case.lacks(&subject);
        let trial = Trial::test(case.name, move || {
            runtime.block_on(case.run(subject));
            Ok(())
        });
        trial
            .with_ignored_flag(lacks.is_some())
            .with_kind(lacks.map(|lacks| format!("lacks {lacks:?}")).unwrap_or_default())
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

fn programs() -> Vec<String> {
    let all = below(std::process::id()).into_iter();
    all.filter(|(_, depth)| *depth == PROGRAMS).map(|(pid, _)| pid.to_string()).collect()
}

fn living() -> usize {
    programs().len()
}

/// What waits for a call and what serves one looks the same from outside.
fn kill() {
    // One that has ended by itself meanwhile is fine.
    let _ = Command::new("kill").arg("-9").args(programs()).stderr(Stdio::null()).status();
}

fn program(behaviour: Behaviour) -> Program {
    let name = match behaviour {
        Behaviour::Echo => "echo",
        Behaviour::Count => "count",
        Behaviour::Linger => "linger",
        Behaviour::Spin => "spin",
        Behaviour::Hoard => "hoard",
        Behaviour::Sleep => "sleep",
        Behaviour::Shout => "shout",
        Behaviour::Bulky => "bulky",
        Behaviour::Ask => "ask",
        Behaviour::Fail => "fail",
        Behaviour::Crash => "crash",
        Behaviour::FailToStart => "fail_to_start",
        Behaviour::SpinAtStart => "spin_at_start",
        Behaviour::SleepAtStart => "sleep_at_start",
        Behaviour::HoardAtStart => "hoard_at_start",
        Behaviour::Obey => "obey",
    };
    let command = ["python3", "-I", "/app/behave.py", name].map(str::to_owned).to_vec();
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers");
    Program::Command { files, command, environment: BTreeMap::new(), network: false, speaks: Speaks::Stdio }
}

/// The tools of these servers give their value as structured content.
fn value(result: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Given {
        structured_content: Option<Box<RawValue>>,
    }
    let given: Given = serde_json::from_slice(result).expect("a result of the protocol");
    given.structured_content.map_or_else(|| "null".to_owned(), |value| value.get().to_owned())
}
