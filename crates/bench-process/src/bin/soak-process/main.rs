#![forbid(unsafe_code)]
//! 200 sessions behind the process wall, opened, used and killed at random, many at once; some of their hosts are killed,
//! too. At the end no process, mount, control group or file may be left, and the last host's memory and descriptors must
//! be what they were after two thirds of its sessions. `SOAK_SESSIONS` changes the number, `SOAK_SEED` what is done to them.

mod chance;
mod left;
mod life;

use anyhow::{Context, Result, bail, ensure};
use bench_process::processes;
use chance::Chance;
use life::Third;
use rustix::process::{WaitOptions, getpid, set_child_subreaper, wait};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

/// Hosts that are killed, each with this part of all sessions before it.
const KILLED: u64 = 3;
const PART: u64 = 8;

const HOST_GROWTH_KB: u64 = 1024;
const HOST_GROWTH_DESCRIPTORS: usize = 4;

fn main() -> ExitCode {
    let kept = match std::env::args().nth(1).as_deref() {
        None => watch(),
        Some("host") => host().map(|()| true),
        Some(other) => Err(anyhow::anyhow!("`{other}` is no part of a soak")),
    };
    bench_report::ended(kept)
}

/// The host: `soak-process host SESSIONS SEED`. What it has done it says in lines.
fn host() -> Result<()> {
    let mut numbers = std::env::args().skip(2).map(|text| text.parse::<u64>());
    let (Some(sessions), Some(seed)) = (numbers.next(), numbers.next()) else { bail!("a host needs two numbers") };
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    // Threads that have nothing to do go before memory is looked at.
    let runtime = runtime.worker_threads(2).thread_keep_alive(Duration::from_millis(500)).enable_all().build()?;
    runtime.block_on(life::live(&root()?.join("bench/process"), sessions?, Chance::new(seed?)))
}

/// Whoever starts the hosts and kills them. Whether nothing is left.
fn watch() -> Result<bool> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>()).transpose();
    let sessions = number("SOAK_SESSIONS")?.unwrap_or(200);
    let seed = number("SOAK_SEED")?.unwrap_or_else(|| u64::from(std::process::id()));
    println!("{sessions} sessions, seed {seed}");
    // Whatever a killed host leaves becomes a child of this process, and is seen.
    set_child_subreaper(Some(getpid()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let temporary = Temporary::new()?;
    let mounts = left::mounts();
    let mut chance = Chance::new(seed);
    let (mut done, mut hosts) = (0, Vec::new());
    for _ in 0..KILLED {
        let part = sessions / PART;
        let mut running = Running::start(sessions, chance.next(), &temporary.0)?;
        // In the middle of the next one.
        done += running.until(1 + chance.below(part.max(1)))?;
        hosts.push(running.kill()?);
        collect(&runtime)?;
    }
    let mut running = Running::start(sessions.saturating_sub(done).max(3), chance.next(), &temporary.0)?;
    done += running.until(u64::MAX)?;
    let thirds = running.thirds.clone();
    hosts.push(running.end()?);
    collect(&runtime)?;
    println!("{done} sessions in {} hosts, of which {KILLED} were killed", hosts.len());
    // In the first third it uses everything for the first time.
    let [_, before, after] = thirds.as_slice() else { bail!("the last host has told of {} thirds", thirds.len()) };
    println!("the last host after two thirds: {before}\nand at its end: {after}");
    let grown = after.resident_kb.saturating_sub(before.resident_kb);
    let checks = [
        ("no control group is left", left::groups(&hosts).is_empty()),
        ("no mount is left", left::mounts() == mounts),
        ("no file is left", left::files(&temporary.0).is_empty()),
        ("the last host's memory is flat", grown <= HOST_GROWTH_KB),
        ("its descriptors are the same", after.descriptors <= before.descriptors + HOST_GROWTH_DESCRIPTORS),
    ];
    println!("promise: no process is left: ok");
    for (what, kept) in &checks {
        println!("promise: {what}: {}", if *kept { "ok" } else { "MISSED" });
    }
    Ok(checks.iter().all(|(_, kept)| *kept))
}

/// Waits until nothing lives below this process, and collects what has ended.
fn collect(runtime: &tokio::runtime::Runtime) -> Result<()> {
    let left = runtime.block_on(processes::until_none());
    ensure!(left == 0, "{left} processes are left: {:?}", processes::below());
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
    Ok(())
}

/// A host at work.
struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    thirds: Vec<Third>,
}

impl Running {
    fn start(sessions: u64, seed: u64, temporary: &Path) -> Result<Running> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["host", &sessions.to_string(), &seed.to_string()]).env("TMPDIR", temporary);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("a host")?;
        let lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        Ok(Running { child, lines, thirds: Vec::new() })
    }

    /// Until it has had so many sessions, or ends. How many it has had.
    fn until(&mut self, sessions: u64) -> Result<u64> {
        let mut had = 0;
        while had < sessions
            && let Some(line) = self.lines.next()
        {
            match line?.split_once(' ') {
                Some(("third", third)) => self.thirds.push(serde_json::from_str(third)?),
                _ => had += 1,
            }
        }
        Ok(had)
    }

    fn kill(mut self) -> Result<u32> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(self.child.id())
    }

    fn end(mut self) -> Result<u32> {
        let status = self.child.wait()?;
        ensure!(status.success(), "the last host has failed ({status})");
        Ok(self.child.id())
    }
}

/// A folder for whatever hosts leave. It goes with this.
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> Result<Temporary> {
        let folder = std::env::temp_dir().join(format!("soak-process-{}", std::process::id()));
        std::fs::create_dir(&folder).with_context(|| format!("{}", folder.display()))?;
        Ok(Temporary(folder))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// This program is `target/release/soak-process`.
fn root() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let root = program.ancestors().nth(3).filter(|root| root.join("bench/process").is_dir());
    root.map(Path::to_owned).context("this program must stay in target/release of its repository")
}
