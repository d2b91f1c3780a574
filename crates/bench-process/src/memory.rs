//! The measurement of memory: several servers of a kind at once, each called once, and nothing else.

use crate::peer::Peer;
use crate::rows::{Row, Way};
use anyhow::{Result, ensure};
use bench_process::host::{Deployed, Host};
use bench_process::processes::{self, INIT, OUTER, PROGRAM};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// Of one server, in KiB.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Memory {
    /// The whole tree of processes.
    pub tree_kb: u64,
    /// Of it, what whoever wraps the program has for itself.
    pub wrapper_kb: u64,
    /// What this process needs for it.
    pub host_kb: u64,
    /// What the kernel needs for it.
    pub kernel_kb: u64,
}

const SERVERS: u64 = 8;
const REST: Duration = Duration::from_millis(500);

/// What several servers need, of which one needs its part.
pub async fn measure(host: &Host, row: &Row, files: &Path) -> Result<Memory> {
    // Once before, so that what stays for the next is there already.
    let mut found = Memory::default();
    for _ in 0..2 {
        let (own, kernel) = (processes::own_kb(), processes::kernel_kb());
        let living = Living::start(host, row, files).await?;
        tokio::time::sleep(REST).await;
        let grown = |now: u64, before: u64, count: u64| now.saturating_sub(before) / count.max(1);
        let all = processes::below();
        let servers = all.iter().filter(|process| process.depth == OUTER).count() as u64;
        let sum = |depths: &[usize]| -> u64 {
            let counted = all.iter().filter(|process| depths.is_empty() || depths.contains(&process.depth));
            counted.filter_map(|process| processes::proportional_kb(process.pid)).sum::<u64>() / servers.max(1)
        };
        let wrapped = all.iter().any(|process| process.depth == PROGRAM) && row.way != Way::Npx;
        found = Memory {
            tree_kb: sum(&[]),
            wrapper_kb: if wrapped { sum(&[OUTER, INIT]) } else { 0 },
            host_kb: grown(processes::own_kb(), own, servers),
            kernel_kb: grown(processes::kernel_kb(), kernel, servers),
        };
        living.end(host).await?;
        ensure!(processes::until_none().await == 0, "{}: it does not end", row.name);
        tokio::time::sleep(REST).await;
    }
    Ok(found)
}

enum Living {
    Jailed(Deployed),
    Plain(Vec<Peer>),
}

impl Living {
    async fn start(host: &Host, row: &Row, files: &Path) -> Result<Living> {
        if row.way == Way::Jailed {
            let deployed = host.deploy(row.server)?;
            for session in 0..SERVERS {
                host.call(&deployed, &session.to_string()).await?;
            }
            return Ok(Living::Jailed(deployed));
        }
        let mut peers = Vec::new();
        for _ in 0..SERVERS {
            let mut peer = Peer::start(row.way, row.server, files).await?;
            peer.call().await?;
            peers.push(peer);
        }
        Ok(Living::Plain(peers))
    }

    async fn end(self, host: &Host) -> Result<()> {
        match self {
            Living::Jailed(deployed) => host.release(&deployed),
            Living::Plain(peers) => {
                for peer in peers {
                    peer.end().await?;
                }
            }
        }
        Ok(())
    }
}
