//! The measurement: warm up, then rounds in which everybody has a turn, in another order each time; medians of the rounds.

use crate::clients::{Desk, Lane, Way};
use crate::node::Node;
use crate::upstream::{OPEN, Upstream};
use anyhow::{Context, Result};
use bench_report::rounded;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

pub const LANES: usize = 16;

pub struct Row {
    pub name: &'static str,
    client: Client,
    note: &'static str,
}

enum Client {
    Own(Way),
    Node(&'static str),
}

const fn row(name: &'static str, client: Client, note: &'static str) -> Row {
    Row { name, client, note }
}

/// The first is what the others are held against.
const ROWS: [Row; 7] = [
    row("hyper", Client::Own(Way::Straight), "straight to the server"),
    row("door/visit", Client::Own(Way::Door), "one visit, many requests"),
    row("door/call", Client::Own(Way::DoorEach), "a visit for each request"),
    row("door/secret", Client::Own(Way::DoorSecret), "as door/visit; a secret in a header, answers masked"),
    row("proxy", Client::Own(Way::Proxy), "hyper, and the door as a proxy on a thread of its own"),
    row("undici/request", Client::Node("request"), "Node, straight to the server"),
    row("undici/fetch", Client::Node("fetch"), "the same with `fetch`"),
];

/// One after another for a while: how long each took.
#[derive(Deserialize)]
pub struct Turn {
    pub elapsed_us: f64,
    pub times_us: Vec<f64>,
    /// Connections that the server accepted meanwhile.
    #[serde(skip)]
    opened: u64,
}

impl Turn {
    /// Nearest rank.
    fn percentile(&self, rank: f64) -> f64 {
        let mut times = self.times_us.clone();
        times.sort_by(f64::total_cmp);
        let place = (times.len() as f64 * rank).ceil() as usize;
        times.get(place.max(1) - 1).copied().unwrap_or(f64::NAN)
    }

    fn per_second(&self) -> f64 {
        self.times_us.len() as f64 / self.elapsed_us * 1e6
    }
}

/// A line of the result. Times are of one lane alone.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    pub name: String,
    pub p50_us: f64,
    pub p99_us: f64,
    /// Median of the rounds' differences from the first row.
    pub added_p50_us: f64,
    /// With [`LANES`] lanes.
    pub per_second: f64,
    /// New connections per request, in percent, of one lane and of all.
    pub alone_opened_percent: f64,
    pub opened_percent: f64,
    pub requests: usize,
    pub note: String,
}

struct Plan {
    rounds: usize,
    alone: Duration,
    together: Duration,
}

impl Plan {
    fn new(quick: bool) -> Plan {
        let (rounds, alone, together) = if quick { (3, 100, 100) } else { (15, 200, 300) };
        Plan { rounds, alone: Duration::from_millis(alone), together: Duration::from_millis(together) }
    }
}

#[derive(Default)]
struct Turns {
    alone: Vec<Turn>,
    together: Vec<Turn>,
}

pub async fn measure(root: &Path, quick: bool) -> Result<Vec<Figures>> {
    let plan = Plan::new(quick);
    let upstream = Upstream::start()?;
    let desk = Desk::new(&upstream)?;
    let mut node = Node::start(root, &upstream.url(OPEN)).context("cannot start Node")?;
    let mut lanes: Vec<Vec<Lane>> = Vec::new();
    for row in &ROWS {
        lanes.push(open(&desk, row).await.with_context(|| row.name)?);
    }
    let mut turns: Vec<Turns> = ROWS.iter().map(|_| Turns::default()).collect();
    for round in 0..=plan.rounds {
        let warm_up = round == 0;
        eprintln!("{}", if warm_up { "warming up".to_owned() } else { format!("round {round} of {}", plan.rounds) });
        for step in 0..ROWS.len() {
            let index = (step + round) % ROWS.len();
            for (count, time) in [(LANES, plan.together), (1, plan.alone)] {
                let before = upstream.opened();
                let turn = match ROWS[index].client {
                    Client::Own(_) => run(&mut lanes[index], count, time).await,
                    Client::Node(how) => node.turn(how, count, time).await,
                };
                let mut turn = turn.with_context(|| ROWS[index].name)?;
                turn.opened = upstream.opened() - before;
                if !warm_up {
                    let turns = &mut turns[index];
                    if count == 1 { &mut turns.alone } else { &mut turns.together }.push(turn);
                }
            }
        }
    }
    Ok(ROWS.iter().zip(&turns).map(|(row, own)| figures(row, own, &turns[0])).collect())
}

async fn open(desk: &Desk, row: &Row) -> Result<Vec<Lane>> {
    let mut lanes = Vec::new();
    if let Client::Own(way) = row.client {
        for _ in 0..LANES {
            lanes.push(desk.lane(way).await?);
        }
    }
    Ok(lanes)
}

/// So many lanes ask, each as soon as it has its answer.
async fn run(lanes: &mut Vec<Lane>, count: usize, time: Duration) -> Result<Turn> {
    let begin = Instant::now();
    let mut running = JoinSet::new();
    for mut lane in lanes.drain(..count) {
        running.spawn(async move {
            let mut times = Vec::new();
            let mut now = begin;
            while now < begin + time {
                lane.ask().await?;
                let then = std::mem::replace(&mut now, Instant::now());
                times.push((now - then).as_secs_f64() * 1e6);
            }
            anyhow::Ok((lane, times))
        });
    }
    let mut times_us = Vec::new();
    while let Some(done) = running.join_next().await {
        let (lane, times) = done??;
        lanes.push(lane);
        times_us.extend(times);
    }
    Ok(Turn { elapsed_us: begin.elapsed().as_secs_f64() * 1e6, times_us, opened: 0 })
}

fn figures(row: &Row, own: &Turns, first: &Turns) -> Figures {
    let of = |turns: &[Turn], figure: &dyn Fn(&Turn) -> f64| median(turns.iter().map(figure).collect());
    let added = own.alone.iter().zip(&first.alone).map(|(own, first)| own.percentile(0.5) - first.percentile(0.5));
    let count = |turns: &[Turn]| turns.iter().map(|turn| turn.times_us.len()).sum::<usize>();
    let opened = |turns: &[Turn]| {
        let opened: u64 = turns.iter().map(|turn| turn.opened).sum();
        rounded(opened as f64 * 100.0 / count(turns).max(1) as f64, 2)
    };
    Figures {
        name: row.name.to_owned(),
        p50_us: rounded(of(&own.alone, &|turn| turn.percentile(0.5)), 1),
        p99_us: rounded(of(&own.alone, &|turn| turn.percentile(0.99)), 1),
        added_p50_us: rounded(median(added.collect()), 1),
        per_second: rounded(of(&own.together, &Turn::per_second), 0),
        alone_opened_percent: opened(&own.alone),
        opened_percent: opened(&own.together),
        requests: count(&own.alone) + count(&own.together),
        note: row.note.to_owned(),
    }
}

/// The middle one; of two, their mean.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}
