//! Every forbidden call, made from inside, kills.

use jail::process::{self, Fork, fork_with_pidfd};
use jail::seccomp::{Filter, PolicyName};

use crate::attempts::{ALLOWED, ATTEMPTS, Attempt, FOREIGN, Spared};
use crate::compartment::{ask, say};

pub fn on_a_sealed_child() {
    expect(&ask(None, |_| attack(PolicyName::IsolateCall, false)), PolicyName::IsolateCall, false);
}

pub fn on_a_sealed_child_with_jit() {
    expect(&ask(None, |_| attack(PolicyName::IsolateCall, true)), PolicyName::IsolateCall, true);
}

pub fn on_a_zygote() {
    expect(&ask(None, |_| attack(PolicyName::IsolateZygote, false)), PolicyName::IsolateZygote, false);
}

fn all() -> impl Iterator<Item = &'static Attempt> {
    ATTEMPTS.iter().chain(FOREIGN).chain(ALLOWED)
}

/// Runs as init of a jail and becomes a zygote: one child for each attempt, one line for each child.
fn attack(policy: PolicyName, jit: bool) {
    let zygote = Filter::load(PolicyName::IsolateZygote, jit).expect("the zygote's policy");
    // As the worker makes it.
    let child = Filter::load_on_top(policy, PolicyName::IsolateZygote, jit).expect("the child's policy");
    zygote.install().expect("the zygote's filter");
    for attempt in all() {
        let exit = match fork_with_pidfd().expect("a child") {
            Fork::Child => {
                if policy != PolicyName::IsolateZygote {
                    child.install().expect("the child's filter");
                }
                (attempt.run)();
                process::exit_now(0)
            }
            Fork::Parent(forked) => process::wait(forked.pid).expect("the child's end"),
        };
        say(&format!("{}\t{:?}\t{:?}\n", attempt.name, exit.code, exit.signal));
    }
}

fn expect(said: &str, policy: PolicyName, jit: bool) {
    let mut lines = said.lines();
    let mut surprises = Vec::new();
    for attempt in all() {
        let line = lines.next().unwrap_or_default();
        let outcome = if spared(attempt, policy, jit) {
            "Some(0)\tNone".to_owned()
        } else {
            format!("None\tSome({})", libc::SIGSYS)
        };
        if line != format!("{}\t{outcome}", attempt.name) {
            surprises.push(format!("{}: wanted {outcome:?}, got {line:?}", attempt.name));
        }
    }
    assert!(surprises.is_empty(), "{policy:?}, jit {jit}: {surprises:#?}");
    assert!(ATTEMPTS.len() >= 38, "only {} attempts", ATTEMPTS.len());
}

fn spared(attempt: &Attempt, policy: PolicyName, jit: bool) -> bool {
    match attempt.spared {
        Spared::Never => false,
        Spared::Always => true,
        Spared::WithJit => jit,
        Spared::Zygote => policy == PolicyName::IsolateZygote,
    }
}
