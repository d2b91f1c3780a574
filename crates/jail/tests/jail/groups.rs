//! Control groups, on the hierarchies of this very host.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use jail::Error;
use jail::cgroup::{Availability, Limits, Manager, survey};
use jail::pidfd;
use jail::process::{self, Fork, Forked, fork_with_pidfd};

use crate::compartment::MIB;
use crate::harness::skip;

const LIMITS: Limits = Limits { memory_bytes: 16 * MIB, processes: 8, cpu_percent: None };

pub fn are_not_to_be_had_by_nobody_and_the_reason_says_so() {
    let found = survey().expect("a survey");
    match Manager::open().expect("an answer") {
        Availability::Available(_) => skip("a group is delegated to nobody"),
        Availability::Unavailable { reason } => {
            assert!(found.kind.is_none() && found.detail == reason && reason.contains('`'), "{reason}");
        }
    }
}

pub fn refuse_names_that_are_paths() {
    let manager = manager();
    for name in ["", "..", "a/b", "a.b", "ä", &"x".repeat(65)] {
        assert!(matches!(manager.create(name, &LIMITS), Err(Error::GroupName { .. })), "{name}");
    }
    clean_up();
}

pub fn kill_for_memory() {
    let manager = manager();
    let group = manager.create("memory", &LIMITS).expect("a group");
    let child = gated(|| {
        let block = vec![1_u8; 64 * MIB as usize];
        std::hint::black_box(&block);
    });
    group.add(child.forked.pid).expect("a member");
    let exit = child.open_gate();
    assert_eq!(exit.signal, Some(libc::SIGKILL), "{exit:?}");
    assert!(group.oom_kills().expect("a count") >= 1);
    group.remove().expect("removed");
    clean_up();
}

pub fn limit_processes() {
    let manager = manager();
    let group = manager.create("processes", &Limits { processes: 3, ..LIMITS }).expect("a group");
    let child = gated(|| {
        let made = (0..10).filter(|_| {
            // SAFETY: the child has no threads; its children end at once and stay uncollected, so they count.
            match unsafe { libc::fork() } {
                0 => process::exit_now(0),
                pid => pid > 0,
            }
        });
        process::exit_now(made.count() as i32)
    });
    group.add(child.forked.pid).expect("a member");
    assert_eq!(child.open_gate().code, Some(2));
    group.remove().expect("removed");
    clean_up();
}

pub fn limit_cpu() {
    let manager = manager();
    if !manager.limits_cpu() {
        assert!(matches!(manager.create("cpu", &Limits { cpu_percent: Some(10), ..LIMITS }), Err(Error::GroupCpu)));
        skip("no cpu controller");
    }
    let group = manager.create("cpu", &Limits { cpu_percent: Some(10), ..LIMITS }).expect("a group");
    let child = gated(|| {
        let end = Instant::now() + Duration::from_millis(500);
        while Instant::now() < end {}
    });
    group.add(child.forked.pid).expect("a member");
    let exit = child.open_gate();
    // A tenth of half a second, and one period of grace.
    assert!(exit.cpu < Duration::from_millis(200), "{exit:?}");
    group.remove().expect("removed");
    clean_up();
}

pub fn kill_their_members_when_dropped() {
    let manager = manager();
    let group = manager.create("dropped", &LIMITS).expect("a group");
    let mut sleeper = sleeper();
    group.add(sleeper.id() as i32).expect("a member");
    drop(group);
    assert_eq!(sleeper.wait().expect("an end").signal(), Some(libc::SIGKILL));
    // The name is free again.
    manager.create("dropped", &LIMITS).expect("a group").remove().expect("removed");
    clean_up();
}

/// A host is killed and leaves a group with a process in it; the next host removes both, and nothing else.
pub fn of_a_dead_host_are_swept_and_of_a_living_one_not() {
    let manager = manager();
    let ours = manager.create("living", &LIMITS).expect("a group");
    let mut our_sleeper = sleeper();
    ours.add(our_sleeper.id() as i32).expect("a member");
    let mut their_sleeper = sleeper();
    let orphan = their_sleeper.id() as i32;
    let host = gated(move || {
        let theirs = self::manager().create("dead", &LIMITS).expect("a group");
        theirs.add(orphan).expect("a member");
        process::exit_now(0)
    });
    assert_eq!(host.open_gate().code, Some(0));
    assert!(manager.sweep_stale().expect("a sweep") >= 1);
    assert_eq!(their_sleeper.wait().expect("an end").signal(), Some(libc::SIGKILL));
    assert!(pidfd::cpu_time(our_sleeper.id() as i32).is_ok(), "a living host's process was killed");
    ours.remove().expect("removed");
    our_sleeper.wait().expect("an end");
    clean_up();
}

fn manager() -> Manager {
    match Manager::open().expect("an answer") {
        Availability::Available(manager) => manager,
        Availability::Unavailable { reason } => skip(&reason),
    }
}

fn sleeper() -> Child {
    Command::new("sleep").arg("60").spawn().expect("a sleeping process")
}

/// A child that does nothing until it is told to.
struct Gated {
    forked: Forked,
    gate: std::io::PipeWriter,
}

impl Gated {
    fn open_gate(self) -> process::Exit {
        drop(self.gate);
        process::wait(self.forked.pid).expect("the child")
    }
}

fn gated(then: impl FnOnce()) -> Gated {
    let (mut wait, gate) = std::io::pipe().expect("a pipe");
    match fork_with_pidfd().expect("a child") {
        Fork::Parent(forked) => Gated { forked, gate },
        Fork::Child => {
            drop(gate);
            wait.read_exact(&mut [0]).expect_err("the end of the pipe");
            then();
            process::exit_now(0)
        }
    }
}

/// Removes the parent groups, unless another host on this machine has groups in them.
fn clean_up() {
    let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
    for mount in mounts.lines().filter(|line| line.starts_with("cgroup")) {
        let point = mount.split(' ').nth(1).expect("a mount point");
        match fs::remove_dir(format!("{point}/bulkhead")) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EBUSY), "{point}: {error}"),
        }
    }
}
