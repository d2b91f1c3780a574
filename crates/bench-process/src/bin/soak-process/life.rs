//! The life of a host: sessions come and go, each in its own way, many at once.

use crate::chance::Chance;
use anyhow::{Context, Result, ensure};
use bench_process::host::{Deployed, Host};
use bench_process::processes::{self, INIT, OUTER, PROGRAM, Process};
use bench_process::server::{FOLDERS, Server};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use sandbox::PoolSettings;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::timeout;

/// Sessions at once.
const LANES: usize = 12;
const MOST_CALLS: u64 = 6;
/// Every call ends within this, whatever happens to its program.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a host holds after a third of its sessions, when none is left.
#[derive(Clone, Serialize, Deserialize)]
pub struct Third {
    pub resident_kb: u64,
    pub descriptors: usize,
    answered: u64,
    failed: u64,
    killed: u64,
}

impl fmt::Display for Third {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Third { resident_kb, descriptors, answered, failed, killed } = self;
        write!(f, "{resident_kb} KiB, {descriptors} descriptors")?;
        write!(f, " ({answered} calls answered and {failed} lost so far, {killed} processes killed)")
    }
}

#[derive(Default)]
struct Counts {
    answered: AtomicU64,
    failed: AtomicU64,
    killed: AtomicU64,
    next: AtomicU64,
}

struct Life {
    host: Host,
    servers: Vec<Deployed>,
    counts: Counts,
}

/// Three parts, each with a look at what this process holds when all of it is over.
pub async fn live(files: &Path, sessions: u64, mut chance: Chance) -> Result<()> {
    let settings = PoolSettings { session_idle: Duration::from_secs(1), patience: PATIENCE, ..PoolSettings::default() };
    let host = Host::start(files, settings)?;
    let node = FOLDERS.iter().any(|folder| Path::new(folder).join("node").exists());
    let kinds = if node { [Server::Python, Server::Node] } else { [Server::Python; 2] };
    let servers = kinds.iter().map(|server| host.deploy(*server)).collect::<Result<Vec<_>>>()?;
    let life = Arc::new(Life { host, servers, counts: Counts::default() });
    for end in [sessions / 3, sessions * 2 / 3, sessions] {
        let lanes: Vec<_> = (0..LANES)
            .map(|_| {
                let (life, chance) = (life.clone(), Chance::new(chance.next()));
                tokio::spawn(async move { life.lane(end, chance).await })
            })
            .collect();
        for lane in lanes {
            lane.await??;
        }
        let third = life.rest().await?;
        println!("third {}", serde_json::to_string(&third)?);
    }
    drop(life);
    ensure!(processes::until_none().await == 0, "a process is left");
    Ok(())
}

impl Life {
    async fn lane(&self, end: u64, mut chance: Chance) -> Result<()> {
        let next = || {
            let taken = |next| (next < end).then_some(next + 1);
            self.counts.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).ok()
        };
        while let Some(number) = next() {
            let server = &self.servers[number as usize % self.servers.len()];
            let session = number.to_string();
            for _ in 0..=chance.below(MOST_CALLS) {
                self.call(server, &session).await?;
            }
            match chance.below(6) {
                0 => self.strike(PROGRAM, &mut chance),
                1 => self.strike(INIT, &mut chance),
                2 => self.strike(OUTER, &mut chance),
                3 => self.abandon(server, &session, &mut chance).await,
                // Nobody comes back to it.
                4 => {}
                // All sessions of it end here.
                _ if chance.below(4) == 0 => self.host.release(server),
                _ => {}
            }
            if chance.below(2) == 0 {
                self.call(server, &session).await?;
            }
            println!("session {session}");
        }
        Ok(())
    }

    /// It may fail, since anything may be killed at any time, but it must be over.
    async fn call(&self, server: &Deployed, session: &str) -> Result<()> {
        let over = timeout(PATIENCE, self.host.try_call(server, session)).await.context("a call is never over")?;
        match over {
            Ok(result) => {
                server.server.check(&result)?;
                self.counts.answered.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => {
                self.counts.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Goes away while the call is on its way.
    async fn abandon(&self, server: &Deployed, session: &str, chance: &mut Chance) {
        let moment = Duration::from_micros(chance.below(3000));
        let _ = timeout(moment, self.host.try_call(server, session)).await;
    }

    /// Ends all of it, and looks at what is left.
    async fn rest(&self) -> Result<Third> {
        for server in &self.servers {
            // Who was killed last may have been the one that starts.
            let mut tries = 0;
            while self.host.call(server, "last").await.is_err() {
                tries += 1;
                ensure!(tries < 20, "it does not serve any more");
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            self.host.release(server);
        }
        let left = processes::until_none().await;
        ensure!(left == 0, "{left} processes are left: {:?}", processes::below());
        // What ends in the background, descriptors among it.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let third = Third {
            resident_kb: processes::resident_kb(std::process::id()).unwrap_or(0),
            descriptors: std::fs::read_dir("/proc/self/fd")?.count(),
            answered: count(&self.counts.answered),
            failed: count(&self.counts.failed),
            killed: count(&self.counts.killed),
        };
        ensure!(third.answered > third.failed, "most calls were lost: {third}");
        Ok(third)
    }

    /// Kills a process of this depth, any of them.
    fn strike(&self, depth: usize, chance: &mut Chance) {
        let of_depth = |process: &Process| process.depth == depth;
        let living = || processes::below().into_iter().filter(of_depth).map(|process| process.pid);
        let all: Vec<u32> = living().collect();
        let Some(victim) = all.get(chance.below(all.len().max(1) as u64) as usize).copied() else { return };
        let Some(pid) = i32::try_from(victim).ok().and_then(Pid::from_raw) else { return };
        // Held first and looked at again, so that a number that is somebody else's by now is never meant.
        let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        if living().any(|pid| pid == victim) && pidfd_send_signal(&held, Signal::KILL).is_ok() {
            self.counts.killed.fetch_add(1, Ordering::Relaxed);
        }
    }
}
