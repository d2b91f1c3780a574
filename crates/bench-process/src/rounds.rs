//! The measurement of time: rounds in which everybody has a turn, in another order each time.
//!
//! A turn is a life: started when nothing of it runs, called, called again, ended; and the life of a second one, whose first
//! call comes when it has had time to get ready. Behind the wall that is a second session, for which a program waits.

use crate::peer::Peer;
use crate::rows::{Row, Way};
use anyhow::{Context, Result, ensure};
use bench_process::host::Host;
use bench_process::processes;
use std::path::Path;
use std::time::{Duration, Instant};

/// What turns of one row have shown, in milliseconds.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// From nothing to the answer of the first call.
    pub cold: Vec<f64>,
    /// The first call of a program that is ready.
    pub warm: Vec<f64>,
    /// Calls in a session.
    pub call: Vec<f64>,
}

struct Plan {
    rounds: usize,
    calls: usize,
}

impl Plan {
    fn new(quick: bool) -> Plan {
        if quick { Plan { rounds: 3, calls: 20 } } else { Plan { rounds: 30, calls: 40 } }
    }
}

/// Long enough for a program to start that took so long before.
const REST: u32 = 3;
const LEAST_REST: Duration = Duration::from_millis(100);

pub async fn measure(host: &Host, rows: &[Row], files: &Path, quick: bool) -> Result<Vec<Times>> {
    let plan = Plan::new(quick);
    let mut times = vec![Times::default(); rows.len()];
    for round in 0..=plan.rounds {
        let warm_up = round == 0;
        eprintln!("{}", if warm_up { "warming up".to_owned() } else { format!("round {round} of {}", plan.rounds) });
        for step in 0..rows.len() {
            let index = (step + round) % rows.len();
            let row = &rows[index];
            let mut turn = Times::default();
            match row.way {
                Way::Jailed => jailed(host, row, &plan, &mut turn).await,
                _ => plain(row, files, &plan, &mut turn).await,
            }
            .with_context(|| row.name)?;
            ensure!(processes::until_none().await == 0, "{}: it does not end", row.name);
            if !warm_up {
                let Times { cold, warm, call } = &mut times[index];
                cold.extend(turn.cold);
                warm.extend(turn.warm);
                call.extend(turn.call);
            }
        }
    }
    Ok(times)
}

async fn jailed(host: &Host, row: &Row, plan: &Plan, turn: &mut Times) -> Result<()> {
    let deployed = host.deploy(row.server)?;
    turn.cold.push(timed(host.call(&deployed, "first")).await?);
    rest(turn.cold[0]).await;
    turn.warm.push(timed(host.call(&deployed, "second")).await?);
    rest(turn.cold[0]).await;
    for _ in 0..plan.calls {
        turn.call.push(timed(host.call(&deployed, "second")).await?);
    }
    host.release(&deployed);
    Ok(())
}

async fn plain(row: &Row, files: &Path, plan: &Plan, turn: &mut Times) -> Result<()> {
    let begin = Instant::now();
    let mut peer = Peer::start(row.way, row.server, files).await?;
    peer.call().await?;
    turn.cold.push(begin.elapsed().as_secs_f64() * 1e3);
    let mut second = Peer::start(row.way, row.server, files).await?;
    rest(turn.cold[0]).await;
    turn.warm.push(timed(second.call()).await?);
    rest(turn.cold[0]).await;
    for _ in 0..plan.calls {
        turn.call.push(timed(second.call()).await?);
    }
    peer.end().await?;
    second.end().await
}

async fn rest(cold_ms: f64) {
    tokio::time::sleep(LEAST_REST.max(Duration::from_secs_f64(cold_ms / 1e3) * REST)).await;
}

async fn timed(work: impl Future<Output = Result<()>>) -> Result<f64> {
    let begin = Instant::now();
    work.await?;
    Ok(begin.elapsed().as_secs_f64() * 1e3)
}
