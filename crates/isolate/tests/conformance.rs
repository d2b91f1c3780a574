//! The suite that every wall passes, on the isolate wall.

#[path = "support/mod.rs"]
mod support;

use bytes::Bytes;
use libtest_mimic::{Arguments, Trial};
use sandbox::Program;
use sandbox::conformance::{Behaviour, Capability, Outside, Subject, cases};
use std::process::{Command, Stdio};
use std::sync::Arc;
use support::processes::below;

/// JavaScript cannot make V8 fault; that takes native code, and `native.rs` has it.
const LACKS: &[Capability] = &[Capability::Crash];

/// Depth of deployment zygotes and of tenants' processes in the tree, and of compartments.
const SEEDS: usize = 3;
const COMPARTMENTS: usize = 4;

fn main() {
    let mut arguments = Arguments::from_args();
    // Some cases look at, or kill, all processes of the wall.
    arguments.test_threads = Some(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = Arc::new(runtime.expect("a runtime"));
    let subject = Arc::new(Subject {
        wall: runtime.block_on(support::wall()),
        program: |behaviour| Program::Module { source: source(behaviour), file_name: "server.js".to_owned() },
        value: |bytes| String::from_utf8_lossy(bytes).into_owned(),
        lacks: LACKS,
        outside: Some(Outside { living, kill_seeds: || kill(SEEDS), kill_compartments }),
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

fn living() -> usize {
    below(std::process::id()).into_iter().filter(|(_, depth)| *depth >= SEEDS).count()
}

fn kill(depth: usize) {
    let victims = below(std::process::id()).into_iter().filter(|(_, d)| *d == depth).map(|(pid, _)| pid.to_string());
    // One that has ended by itself meanwhile is fine.
    let _ = Command::new("kill").arg("-9").args(victims).stderr(Stdio::null()).status();
}

/// A tenant's process is seed and compartment in one.
fn kill_compartments() {
    let zygotes = |pid: u32| below(pid).iter().any(|(_, depth)| *depth == 1);
    let me = std::process::id();
    let all = below(me).into_iter();
    let victims = all.filter(|(pid, depth)| *depth == COMPARTMENTS || (*depth == SEEDS && !zygotes(*pid)));
    let _ = Command::new("kill").arg("-9").args(victims.map(|(pid, _)| pid.to_string())).stderr(Stdio::null()).status();
}

fn source(behaviour: Behaviour) -> Bytes {
    let body = match behaviour {
        Behaviour::Echo => "(input) => input",
        Behaviour::Count => "() => ++n",
        Behaviour::Linger => {
            "async () => { (async () => { for (let i = 0; i < 20; i++) await 0; console.log('late'); \
               await fetch('https://example.com'); })().catch(() => {}); return ++n; }"
        }
        Behaviour::Spin => "() => { while (true); }",
        Behaviour::Hoard => "() => { const all = []; for (;;) all.push(new Array(4096).fill(0.5)); }",
        Behaviour::Sleep => "() => new Promise(() => {})",
        Behaviour::Shout => "() => { for (;;) console.log('listen to me'); }",
        Behaviour::Bulky => "() => 'x'.repeat(64 << 10)",
        Behaviour::Ask => "async () => { for (;;) await fetch('https://example.com').catch(() => {}); }",
        Behaviour::Fail => "() => { throw new Error('broken on purpose'); }",
        Behaviour::Crash => unreachable!("the subject lacks it"),
        Behaviour::FailToStart => return "throw new Error('broken on purpose'); export default {}".into(),
        Behaviour::SpinAtStart => return "for (;;); export default {}".into(),
        Behaviour::SleepAtStart => return "await new Promise((go) => setTimeout(go, 1e9)); export default {}".into(),
        Behaviour::HoardAtStart => return "const all = []; for (;;) all.push([all.length]); export default {}".into(),
        Behaviour::Obey => {
            "async (input) => { switch (input.do) { \
               case 'count': return ++n; \
               case 'spin': while (true); \
               case 'burn': for (let i = 0; i < 1e6; i++); return null; \
               case 'log': console.log('five!'); return null; \
               case 'ask': await fetch('https://example.com').catch(() => {}); return null; \
               case 'log_then_sleep': console.log('five!'); await new Promise(() => {}); \
               case 'ask_then_sleep': await fetch('https://example.com').catch(() => {}); \
               case 'sleep': await new Promise(() => {}); } }"
        }
    };
    format!("let n = 0; export default {{ tools: {{ run: {{ run: {body} }} }} }}").into()
}
