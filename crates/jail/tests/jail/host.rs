//! What a host can and cannot do, and that a jail which cannot be built is not built.

use std::fs;
use std::io::Write;

use jail::confine::confine;
use jail::doctor;
use jail::namespaces::{NOBODY, Plan, Side, enter, fork_init};
use jail::process::{self, Fork, fork_with_pidfd};
use jail::seccomp::{Filter, PolicyName};
use jail::{Error, Result};

use crate::compartment::{CONFINEMENT, ask, chain, say};

/// In a program with threads, as the host is.
pub fn the_doctor_finds_this_host_fit() {
    let threads = [(); 4].map(|()| std::thread::spawn(|| std::thread::sleep(std::time::Duration::from_millis(300))));
    let before = descriptors();
    let report = doctor::probe();
    assert_eq!(descriptors(), before, "descriptors were left open");
    for wall in ["isolate", "process"] {
        assert!(report.missing_for(wall).is_empty(), "{report:#?}");
    }
    assert!(report.checks.len() >= 14);
    let text = serde_json::to_value(&report).expect("a report as data");
    assert_eq!(text["checks"][0]["name"], "user namespace");
    assert_eq!(text["checks"][0]["available"], true);
    threads.into_iter().for_each(|thread| thread.join().expect("a thread"));
}

/// Where no user namespace may be made, root does without and nobody is refused by name. The kernel counts them per
/// user namespace, so the case forbids them in one of its own.
pub fn without_user_namespaces_root_falls_back_and_nobody_is_refused() {
    forbid_user_namespaces();
    let report = doctor::probe();
    let first = &report.checks[0];
    assert!(!first.available && first.detail.contains("user namespace"), "{first:?}");
    assert!(report.missing_for("isolate").is_empty(), "{report:#?}");

    let plan = Plan::for_this_process().expect("a plan");
    assert_eq!(plan, Plan { user_namespace: false, drop_to: Some(NOBODY) });
    let said = ask(Some(plan), |enforced| say(&format!("{} {}", enforced.user_namespace, enforced.uid)));
    assert_eq!(said, format!("false {NOBODY}"));

    refused(|| enter(&Plan { user_namespace: true, drop_to: Some(NOBODY) }), "cannot enter a new user namespace: ");
}

pub fn what_is_not_enforced_is_an_error_that_names_it() {
    let plan = Plan::for_this_process().expect("a plan");
    // A process that would outlive its parent.
    refused(
        move || {
            // SAFETY: takes numbers only.
            assert_eq!(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, 0) }, 0);
            enter(&plan)?;
            confine(&plan, &CONFINEMENT).map(drop)
        },
        "the process attribute parent-death signal is `0` after it was set to `9`",
    );
    // A process that may still gain privileges (root may filter itself nevertheless).
    refused(
        || {
            become_nobody();
            Filter::load(PolicyName::IsolateCall, false)?.install()
        },
        "cannot install the system call filter `isolate-call`: Permission denied",
    );
}

/// A plan that would leave root inside is never carried out.
pub fn root_is_never_jailed_as_root() {
    for drop_to in [None, Some(0)] {
        let plan = Plan { user_namespace: false, drop_to };
        refused(|| enter(&plan), "the plan would leave the process with root's identity");
    }
    // Nor is one that was not carried out.
    let plan = Plan { user_namespace: false, drop_to: Some(NOBODY) };
    refused(
        || {
            enter(&Plan { drop_to: Some(1), ..plan })?;
            match fork_init()? {
                Side::Outer { init } => process::exit_now(process::wait(init)?.code.unwrap_or(1)),
                Side::Init => confine(&plan, &CONFINEMENT).map(drop),
            }
        },
        "the process has the uid or gid `1` and not `65534`",
    );
}

/// Runs `attempt` in a child and expects its error to begin so.
fn refused(attempt: impl FnOnce() -> Result<()>, expected: &str) {
    let Fork::Parent(child) = fork_with_pidfd().expect("a child") else {
        let error: Option<Error> = attempt().err();
        let text = error.as_ref().map(|error| chain(error)).unwrap_or_default();
        if !text.starts_with(expected) {
            eprintln!("wanted {expected:?}, got {text:?}");
        }
        process::exit_now(i32::from(!text.starts_with(expected)))
    };
    assert_eq!(process::wait(child.pid).expect("the child").code, Some(0), "{expected}");
}

pub fn become_nobody() {
    // SAFETY: takes numbers only, in a process without threads.
    assert_eq!(unsafe { libc::setresuid(NOBODY, NOBODY, NOBODY) }, 0);
}

/// Makes this process root of a user namespace that has the users 0 and 65534 and allows no further one below it.
pub fn forbid_user_namespaces() {
    let parent = std::process::id();
    let (mut entered, tell) = std::io::pipe().expect("a pipe");
    // A helper outside writes the map: only it may map more than one user.
    let Fork::Parent(helper) = fork_with_pidfd().expect("a child") else {
        drop(tell);
        std::io::Read::read_exact(&mut entered, &mut [0]).expect("a word");
        for map in ["uid_map", "gid_map"] {
            fs::write(format!("/proc/{parent}/{map}"), format!("0 0 1\n{NOBODY} {NOBODY} 1\n")).expect("a map");
        }
        process::exit_now(0)
    };
    // SAFETY: takes a number only.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWUSER) }, 0);
    (&tell).write_all(b".").expect("a word");
    assert_eq!(process::wait(helper.pid).expect("the helper").code, Some(0));
    fs::write("/proc/sys/user/max_user_namespaces", "0").expect("no more user namespaces");
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("descriptors").count()
}
