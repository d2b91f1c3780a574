//! What this host can enforce, found by doing it in short-lived children.

use std::io;
use std::time::Duration;

use serde::Serialize;

use crate::confine::{Confinement, confine};
use crate::error::Error;
use crate::namespaces::{NAMESPACES, Plan, Side, enter, enter_identity, fork_init, unshare};
use crate::pidfd::PidFd;
use crate::process::{self, Fork, exit_now, fork_with_pidfd, set_no_new_privs};
use crate::seccomp::{Filter, PolicyName};
use crate::trial::{self, Finding};
use crate::{cgroup, landlock, limits, program, root, users};

/// The walls that stand on the jail.
const JAILED: &[&str] = &["isolate", "process"];
const ISOLATE: &[&str] = &["isolate"];
const PROCESS: &[&str] = &["process"];
/// Good to have; each start says in its receipt whether it was there.
const NONE: &[&str] = &[];

/// Figures that every host allows; a worker's own come from its permit.
const TRIAL: Confinement = Confinement {
    address_space: 1 << 36,
    data: 1 << 32,
    cpu_seconds: 5,
    open_files: 64,
    processes: 64,
    stack: 8 << 20,
};

/// Everything that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub checks: Vec<Check>,
}

/// One ability of this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: String,
    pub available: bool,
    /// What was found, or why it is not available.
    pub detail: String,
    /// The walls that refuse to start without it.
    pub needed_by: Vec<&'static str>,
}

impl Report {
    /// What keeps `wall` from starting on this host.
    pub fn missing_for(&self, wall: &str) -> Vec<&Check> {
        let missing = |check: &&Check| !check.available && check.needed_by.contains(&wall);
        self.checks.iter().filter(missing).collect()
    }
}

/// Tries everything, as this user. Takes some tens of milliseconds and leaves nothing behind.
pub fn probe() -> Report {
    let plan = Plan::for_this_process();
    let plan = match &plan {
        Ok(plan) => *plan,
        Err(_) => Plan { user_namespace: true, drop_to: None },
    };
    // Root can do without: it unshares as root and changes its user afterwards.
    let needs_user_namespace = if plan.drop_to.is_some() { NONE } else { JAILED };
    let mut checks = vec![check("user namespace", needs_user_namespace, || {
        enter_identity(&Plan { user_namespace: true, ..plan })?;
        Ok(match plan.drop_to {
            Some(uid) => format!("available to uid {uid}"),
            None => "available to this user".to_owned(),
        })
    })];
    for (name, flag) in NAMESPACES {
        checks.push(check(&format!("{name} namespace"), JAILED, || {
            if plan.user_namespace {
                enter_identity(&plan)?;
            }
            unshare(name, flag).map(|()| "can be entered".to_owned())
        }));
    }
    checks.extend([
        check("empty root", JAILED, || empty_root(&plan)),
        check("no_new_privs", JAILED, || set_no_new_privs().map(|()| "can be set".to_owned())),
        check("resource limits", JAILED, resource_limits),
        check("seccomp", JAILED, seccomp),
        check("landlock", NONE, landlock_version),
        check("process descriptors", ISOLATE, process_descriptors),
        check("list of processes", PROCESS, || list_of_processes(&plan)),
        check("whole jail", JAILED, || whole_jail(&plan)),
        uids(),
        control_groups(),
    ]);
    Report { checks }
}

fn check(name: &str, needed_by: &[&'static str], attempt: impl FnOnce() -> Finding) -> Check {
    let (available, detail) = match trial::attempt(attempt) {
        Ok(Ok(remark)) => (true, remark),
        Ok(Err(why)) => (false, why),
        Err(error) => (false, trial::with_causes(&error)),
    };
    Check { name: name.to_owned(), available, detail, needed_by: needed_by.to_vec() }
}

fn empty_root(plan: &Plan) -> Finding {
    enter(plan)?;
    root::replace_with_empty()?;
    Ok("pivot_root into an empty read-only tmpfs".to_owned())
}

/// The data limit bounds every heap, and the only one that a boot parameter can switch off.
fn resource_limits() -> Finding {
    limits::data_in_use()?;
    Ok("RLIMIT_DATA is enforced".to_owned())
}

/// Does what the filter forbids, and expects to be killed for it.
fn seccomp() -> Finding {
    let filter = Filter::load(PolicyName::IsolateCall, false)?;
    set_no_new_privs()?;
    let Fork::Parent(child) = fork_with_pidfd()? else {
        let installed = filter.install().is_ok();
        // SAFETY: getppid has no arguments and cannot fail; here it is the forbidden call.
        unsafe { libc::getppid() };
        exit_now(i32::from(installed))
    };
    let exit = process::wait(child.pid)?;
    if exit.signal != Some(libc::SIGSYS) {
        return Err(Error::Filter {
            policy: PolicyName::IsolateCall.as_str(),
            source: io::Error::other("a forbidden call did not kill"),
        });
    }
    Ok(format!("filters of {} instructions", filter.len()))
}

fn landlock_version() -> Finding {
    set_no_new_privs()?;
    match landlock::deny_all()? {
        0 => Err(Error::LandlockNotEnforced),
        abi => Ok(format!("interface version {abi}")),
    }
}

fn process_descriptors() -> Finding {
    let Fork::Parent(child) = fork_with_pidfd()? else {
        std::thread::sleep(Duration::from_secs(60));
        exit_now(0)
    };
    let (pidfd, _) = PidFd::from_untrusted(child.pidfd)?;
    pidfd.cpu_time(pidfd.pid()?)?;
    pidfd.kill()?;
    process::wait(child.pid)?;
    Ok("fork, name, clock and kill by descriptor".to_owned())
}

/// A new `/proc`, which many containers do not allow inside of them.
fn list_of_processes(plan: &Plan) -> Finding {
    enter(plan)?;
    if let Side::Outer { init } = fork_init()? {
        // Init answers; this process only has to live as long.
        process::wait(init)?;
        exit_now(0)
    }
    program::try_list()?;
    Ok("a new /proc can be mounted".to_owned())
}

/// All of it together, as a worker starts.
fn whole_jail(plan: &Plan) -> Finding {
    let started = std::time::Instant::now();
    enter(plan)?;
    if let Side::Outer { init } = fork_init()? {
        // Init answers; this process only has to live as long.
        process::wait(init)?;
        exit_now(0)
    }
    let enforced = confine(plan, &TRIAL)?;
    Filter::load(PolicyName::IsolateZygote, false)?.install()?;
    let how = if enforced.user_namespace { "user namespace" } else { "root that drops its identity" };
    Ok(format!("through a {how}, as uid {}, in {} µs", enforced.uid, started.elapsed().as_micros()))
}

/// What is worse without them.
const UNHELD: &str = "the process wall measures memory and CPU of programs instead, and kills: a burst between two looks, and the \
                      kernel's own lists of mappings and open files, are not held";

fn uids() -> Check {
    let (available, detail) = match users::survey() {
        Ok(detail) => (true, detail),
        Err(why) => (false, why),
    };
    Check { name: "uid for each jail".to_owned(), available, detail, needed_by: NONE.to_vec() }
}

/// Looked at, not tried: trying would move this process.
fn control_groups() -> Check {
    let (available, detail) = match cgroup::survey() {
        Ok(survey) => match survey.kind {
            Some(kind) => (true, format!("{kind:?} with {}; {}", survey.controllers.join(", "), survey.detail)),
            None => (false, format!("{}; {UNHELD}", survey.detail)),
        },
        Err(error) => (false, trial::with_causes(&error)),
    };
    Check { name: "control groups".to_owned(), available, detail, needed_by: NONE.to_vec() }
}
