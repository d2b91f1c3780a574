//! The measurement: warm up, then rounds in which everybody has a turn, in another order each time; medians of the rounds.

use crate::load::{Load, Measured};
use crate::peers::{Peer, Peers};
use crate::wall::Wall;
use anyhow::{Context, Result};
use bench_report::rounded;
use serde::Serialize;
use std::time::Duration;

pub const CONNECTIONS: usize = 16;

pub struct Plan {
    pub rounds: usize,
    pub warm_up: Duration,
    pub turn: Duration,
    /// For the latency of one connection alone.
    pub alone: Duration,
}

impl Plan {
    pub fn new(quick: bool) -> Plan {
        match quick {
            true => Plan {
                rounds: 1,
                warm_up: Duration::from_millis(500),
                turn: Duration::from_millis(500),
                alone: Duration::from_millis(200),
            },
            false => Plan {
                rounds: 5,
                warm_up: Duration::from_secs(2),
                turn: Duration::from_millis(1500),
                alone: Duration::from_millis(500),
            },
        }
    }
}

/// A line of the result. Times and CPU are with [`CONNECTIONS`] busy connections, `alone_*` with one.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    pub name: String,
    pub calls_per_s: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Of the server and all processes below it, per call.
    pub cpu_us: f64,
    /// Of the gateway's own process, per call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_cpu_us: Option<f64>,
    pub alone_p50_ms: f64,
    pub alone_p99_ms: f64,
    pub calls: usize,
    pub era: String,
    pub note: String,
}

#[derive(Default)]
struct Turns {
    together: Vec<Measured>,
    alone: Vec<Measured>,
}

/// Measures the peers, and the wall without a gateway in front, if there is one.
pub async fn measure(peers: &Peers, wall: Option<&Wall>, plan: &Plan) -> Result<(Vec<Figures>, Option<Figures>)> {
    let count = peers.list.len();
    let mut loads = Vec::new();
    for peer in &peers.list {
        loads.push(opened(peer).await.with_context(|| peer.row.name)?);
    }
    let mut turns: Vec<Turns> = peers.list.iter().map(|_| Turns::default()).collect();
    let mut wall_turns = Turns::default();
    for round in 0..=plan.rounds {
        let warm_up = round == 0;
        eprintln!("{}", if warm_up { "warming up".to_owned() } else { format!("round {round} of {}", plan.rounds) });
        let (time, alone_time) = if warm_up { (plan.warm_up, plan.alone) } else { (plan.turn, plan.alone) };
        for step in 0..count {
            let index = (step + round) % count;
            let (peer, (together, alone)) = (&peers.list[index], &mut loads[index]);
            let both =
                async { anyhow::Ok((together.run(peer.pid, time).await?, alone.run(peer.pid, alone_time).await?)) };
            let (together, alone) = both.await.with_context(|| peer.row.name)?;
            if !warm_up {
                turns[index].together.push(together);
                turns[index].alone.push(alone);
            }
        }
        if let Some(wall) = wall {
            let (together, alone) = (wall.run(CONNECTIONS, time).await?, wall.run(1, alone_time).await?);
            if !warm_up {
                wall_turns.together.push(together);
                wall_turns.alone.push(alone);
            }
        }
    }
    let rows = peers.list.iter().zip(&turns).map(|(peer, turns)| {
        let row = peer.row;
        figures(row.name, row.form.era(), row.note, row.is_ours(), turns)
    });
    let wall =
        wall.map(|_| figures("wall/server", "none", "the pool called in-process, no gateway", true, &wall_turns));
    Ok((rows.collect(), wall))
}

async fn opened(peer: &Peer) -> Result<(Load, Load)> {
    Ok((Load::open(&peer.target, CONNECTIONS).await?, Load::open(&peer.target, 1).await?))
}

fn figures(name: &str, era: &str, note: &str, ours: bool, turns: &Turns) -> Figures {
    let of = |turns: &[Measured], figure: &dyn Fn(&Measured) -> f64| median(turns.iter().map(figure).collect());
    Figures {
        name: name.to_owned(),
        calls_per_s: rounded(of(&turns.together, &Measured::per_second), 1),
        p50_ms: rounded(of(&turns.together, &|m| m.percentile_ms(0.5)), 3),
        p99_ms: rounded(of(&turns.together, &|m| m.percentile_ms(0.99)), 3),
        cpu_us: rounded(of(&turns.together, &Measured::tree_us), 1),
        gateway_cpu_us: ours.then(|| rounded(of(&turns.together, &Measured::root_us), 1)),
        alone_p50_ms: rounded(of(&turns.alone, &|m| m.percentile_ms(0.5)), 3),
        alone_p99_ms: rounded(of(&turns.alone, &|m| m.percentile_ms(0.99)), 3),
        calls: turns.together.iter().map(|turn| turn.calls).sum(),
        era: era.to_owned(),
        note: note.to_owned(),
    }
}

/// The middle one; of two, their mean.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}
