//! Runs each case in a process of its own: single-threaded, and with a wall-clock limit.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use jail::pidfd::PidFd;

use crate::compartment::children;

/// Tells a process of this binary which case it is, and as whom.
const CASE: &str = "JAIL_TEST_CASE";
const WHO: &str = "JAIL_TEST_WHO";

const LIMIT: Duration = Duration::from_secs(60);

/// Status of a case that found nothing to test on this host, and has printed why.
const SKIPPED: i32 = 77;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Root,
    Nobody,
}

pub struct Case {
    pub name: &'static str,
    pub who: &'static [Who],
    pub run: fn(),
}

pub const BOTH: &[Who] = &[Who::Root, Who::Nobody];
pub const ROOT: &[Who] = &[Who::Root];
pub const NOBODY: &[Who] = &[Who::Nobody];

pub fn main(cases: &[Case]) -> ExitCode {
    match std::env::var(CASE) {
        Ok(name) => run_here(cases, &name),
        Err(_) => run_all(cases),
    }
}

pub fn skip(reason: &str) -> ! {
    eprintln!("skipped: {reason}");
    std::process::exit(SKIPPED)
}

fn run_here(cases: &[Case], name: &str) -> ExitCode {
    let case = cases.iter().find(|case| case.name == name);
    let case = case.expect("the runner names a case that exists");
    if std::env::var(WHO).as_deref() == Ok("nobody") {
        become_nobody();
    }
    (case.run)();
    ExitCode::SUCCESS
}

/// As a host that was started by an ordinary user: dumpable, as such a process is.
fn become_nobody() {
    // SAFETY: takes numbers only, in a process without threads.
    let results = unsafe {
        [
            libc::setgroups(0, std::ptr::null()),
            libc::setresgid(65534, 65534, 65534),
            libc::setresuid(65534, 65534, 65534),
            libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0),
        ]
    };
    assert_eq!(results, [0; 4], "cannot become nobody");
}

fn run_all(cases: &[Case]) -> ExitCode {
    // SAFETY: geteuid has no arguments and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let (mut passed, mut skipped, mut failed) = (0, 0, Vec::new());
    let begun = Instant::now();
    println!("\nrunning the cases of the jail");
    for case in cases {
        for who in case.who {
            let label = format!("{} ({who:?})", case.name).to_lowercase();
            if !wanted.is_empty() && !wanted.iter().any(|filter| label.contains(filter)) {
                continue;
            }
            match verdict(case, *who, root) {
                Verdict::Passed(took) => {
                    println!("test {label} ... ok ({} ms)", took.as_millis());
                    passed += 1;
                }
                Verdict::Skipped(why) if std::env::var_os(skips::FORBIDDEN).is_none() => {
                    println!("test {label} ... skipped: {why}");
                    skipped += 1;
                }
                Verdict::Skipped(why) => {
                    println!("test {label} ... FAILED: skipped, and {} forbids that: {why}", skips::FORBIDDEN);
                    failed.push(label);
                }
                Verdict::Failed(why) => {
                    println!("test {label} ... FAILED: {why}");
                    failed.push(label);
                }
            }
        }
    }
    if !failed.is_empty() {
        println!("\nfailures:\n    {}", failed.join("\n    "));
    }
    // The line that closes every other test program, so that whoever adds them up finds these cases too.
    println!(
        "\ntest result: {}. {passed} passed; {} failed; {skipped} ignored; 0 measured; 0 filtered out; finished in {:.2}s\n",
        if failed.is_empty() { "ok" } else { "FAILED" },
        failed.len(),
        begun.elapsed().as_secs_f64()
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

enum Verdict {
    Passed(Duration),
    Skipped(&'static str),
    Failed(String),
}

fn verdict(case: &Case, who: Who, root: bool) -> Verdict {
    if who == Who::Root && !root {
        return Verdict::Skipped("not root");
    }
    let started = Instant::now();
    match run_apart(case, who, root) {
        Ok(status) if status.success() => Verdict::Passed(started.elapsed()),
        Ok(status) if status.code() == Some(SKIPPED) => Verdict::Skipped("see above"),
        Ok(status) => Verdict::Failed(match status.signal() {
            Some(signal) => format!("killed by signal {signal}"),
            None => format!("exit status {:?}", status.code()),
        }),
        Err(why) => Verdict::Failed(why),
    }
}

/// Kills the case and all that came of it. A jail leaves the case's process group, so the group is not enough.
fn kill_tree(pid: i32) {
    let held = PidFd::open(pid);
    for child in children(pid) {
        kill_tree(child);
    }
    if let Ok(process) = held {
        process.kill().expect("a kill");
    }
}

fn run_apart(case: &Case, who: Who, root: bool) -> Result<ExitStatus, String> {
    let itself = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(itself);
    command.env(CASE, case.name);
    if who == Who::Nobody && root {
        command.env(WHO, "nobody");
    }
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status);
        }
        if Instant::now() > deadline {
            kill_tree(child.id() as i32);
            child.wait().map_err(|error| error.to_string())?;
            return Err(format!("took longer than {LIMIT:?}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
