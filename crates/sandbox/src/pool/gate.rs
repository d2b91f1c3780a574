//! The way in: a place and a turn for everybody, in fair order; nobody waits for ever.

use super::fair::{Entered, Fair, FairLimits, Ticket, Want, Whose, Word};
use super::lock;
use crate::{Code, Failure};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

pub(super) struct Gate {
    fair: Mutex<Fair>,
}

/// How full a gate is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Crowd {
    pub(super) running: usize,
    pub(super) waiting: usize,
    /// The longest line of one tenant.
    pub(super) longest: usize,
}

impl Gate {
    pub(super) fn new(limits: FairLimits) -> Gate {
        Gate { fair: Mutex::new(Fair::new(limits)) }
    }

    /// A place with a turn and so many MiB, or "busy": at once when the line is full, after `patience` otherwise.
    pub(super) async fn enter(
        self: &Arc<Gate>,
        tenant: &Arc<str>,
        lane: u64,
        memory: u64,
        parts: usize,
        patience: Duration,
    ) -> Result<Seat, Failure> {
        let (ticket, charged) = self.stand_in_line(tenant, Want::Place { lane, memory }, parts, patience).await?;
        Ok(Seat::new(self.clone(), tenant.clone(), ticket, charged))
    }

    /// A turn without a place.
    pub(super) async fn turn(
        self: &Arc<Gate>,
        tenant: &Arc<str>,
        parts: usize,
        patience: Duration,
    ) -> Result<Seat, Failure> {
        let (ticket, charged) = self.stand_in_line(tenant, Want::Turn, parts, patience).await?;
        Ok(Seat::new(self.clone(), tenant.clone(), ticket, charged))
    }

    /// Memory for what outlives a call, in MiB; nothing where there is not so much left and not enough gives way.
    pub(super) fn hold(self: &Arc<Gate>, tenant: &str, memory: u64) -> Option<Hold> {
        let number = lock(&self.fair).hold(tenant, memory)?;
        Some(Hold { gate: self.clone(), number })
    }

    pub(super) fn crowd(&self) -> Crowd {
        let fair = lock(&self.fair);
        Crowd { running: fair.running(), waiting: fair.waiting(), longest: fair.longest() }
    }

    /// Whether somebody of this tenant waits for a place.
    pub(super) fn waits(&self, tenant: &str) -> bool {
        lock(&self.fair).waits(tenant)
    }

    pub(super) fn set_weight(&self, tenant: &str, weight: u32) {
        lock(&self.fair).set_weight(tenant, weight);
    }

    /// CPU time that a tenant used outside its calls.
    pub(super) fn charge(&self, tenant: &str, cpu: Duration) {
        lock(&self.fair).charge(tenant, micros(cpu));
    }

    pub(super) fn close(&self) {
        lock(&self.fair).close();
    }

    pub(super) fn sweep(&self) {
        lock(&self.fair).sweep();
    }

    async fn stand_in_line(
        &self,
        tenant: &str,
        want: Want,
        parts: usize,
        patience: Duration,
    ) -> Result<(Ticket, f64), Failure> {
        let entered = lock(&self.fair).enter(tenant, want, parts);
        let (ticket, heard) = match entered {
            Entered::Now(ticket, charged) => return Ok((ticket, charged)),
            Entered::Closed => return Err(closing()),
            Entered::Wait(ticket, heard) => (ticket, heard),
        };
        let mut standing = Standing { gate: self, ticket, heard: Some(heard) };
        let word = tokio::time::timeout(patience, standing.word()).await;
        match word {
            Ok(Ok(Word::Come(charged))) => Ok((ticket, charged)),
            Ok(Ok(Word::Go(whose))) => Err(busy(whose, "too many calls wait already")),
            Ok(Ok(Word::Closed) | Err(_)) => Err(closing()),
            Err(_) => Err(busy(Whose::Host, "no place, or not enough memory for it, became free in time")),
        }
    }
}

/// Memory that is held until this is dropped, or until it gives way.
pub(super) struct Hold {
    gate: Arc<Gate>,
    number: u64,
}

impl Hold {
    /// From now on it gives way while no stay lasts. The receiver hears of it, or that this was dropped before.
    pub(super) fn yields(&self) -> oneshot::Receiver<()> {
        lock(&self.gate.fair).yields(self.number)
    }

    /// Keeps it from giving way. `None` when it has given way already.
    pub(super) fn stay(&self) -> Option<Stay> {
        let there = lock(&self.gate.fair).stay(self.number);
        there.then(|| Stay { gate: self.gate.clone(), number: self.number })
    }

    /// Whether it has given way.
    pub(super) fn gone(&self) -> bool {
        !lock(&self.gate.fair).holds(self.number)
    }

    /// Whether a stay lasts.
    pub(super) fn in_use(&self) -> bool {
        lock(&self.gate.fair).in_use(self.number)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        lock(&self.gate.fair).let_go(self.number);
    }
}

/// As long as it lasts, what it was given for does not give way.
pub(super) struct Stay {
    gate: Arc<Gate>,
    number: u64,
}

impl Drop for Stay {
    fn drop(&mut self) {
        lock(&self.gate.fair).left(self.number);
    }
}

/// Somebody in line. Who goes away leaves it, and gives back what it was given at that very moment.
struct Standing<'a> {
    gate: &'a Gate,
    ticket: Ticket,
    heard: Option<oneshot::Receiver<Word>>,
}

impl Standing<'_> {
    async fn word(&mut self) -> Result<Word, oneshot::error::RecvError> {
        let Some(heard) = &mut self.heard else { return Ok(Word::Closed) };
        let word = heard.await;
        self.heard = None;
        word
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        let Some(mut heard) = self.heard.take() else { return };
        let mut fair = lock(&self.gate.fair);
        match heard.try_recv() {
            Ok(Word::Come(charged)) => {
                fair.end_turn(&self.ticket, charged, 0.0);
                if self.ticket.lane.is_some() {
                    fair.leave(&self.ticket, 0.0, 0.0, 0.0);
                }
            }
            Ok(Word::Go(_) | Word::Closed) => {}
            Err(_) => fair.cancel(&self.ticket),
        }
    }
}

/// What somebody inside holds: a place (unless it came for a turn alone) and, most of the time, a turn.
/// Dropping it gives back both.
pub(super) struct Seat {
    gate: Arc<Gate>,
    tenant: Arc<str>,
    ticket: Ticket,
    since: Instant,
    held: Mutex<Held>,
    /// Held by whoever stands in line for this seat's next turn.
    resuming: tokio::sync::Mutex<()>,
}

struct Held {
    turn: Option<Turn>,
    /// Turns that are over, together.
    turns: Duration,
    cpu: Duration,
    left: bool,
    /// What came with the place and is not handed on, in MiB.
    memory: u64,
}

struct Turn {
    ticket: Ticket,
    charged: f64,
    since: Instant,
}

impl Seat {
    fn new(gate: Arc<Gate>, tenant: Arc<str>, ticket: Ticket, charged: f64) -> Seat {
        let since = Instant::now();
        let turn = Some(Turn { ticket, charged, since });
        let held =
            Mutex::new(Held { turn, turns: Duration::ZERO, cpu: Duration::ZERO, left: false, memory: ticket.memory });
        Seat { gate, tenant, ticket, since, held, resuming: tokio::sync::Mutex::default() }
    }

    /// Hands the memory of this place on to something that outlives the call; nothing if it has none (any more).
    pub(super) fn hand_on(&self) -> Option<Hold> {
        let mut held = lock(&self.held);
        let memory = std::mem::take(&mut held.memory);
        let has_some = memory > 0 && !held.left;
        has_some.then(|| {
            let number = lock(&self.gate.fair).keep(self.ticket.tenant, memory);
            Hold { gate: self.gate.clone(), number }
        })
    }

    /// Gives up the turn, keeps the place.
    pub(super) fn pause(&self) {
        self.end_turn(&mut lock(&self.held));
    }

    /// Waits for a turn again. Who has waited too long, or has left meanwhile, goes on without.
    pub(super) async fn resume(&self, patience: Duration) {
        let _one = self.resuming.lock().await;
        if !self.wants_turn() {
            return;
        }
        let want = Want::Again { number: self.ticket.number };
        let Ok((ticket, charged)) = self.gate.stand_in_line(&self.tenant, want, self.ticket.parts, patience).await
        else {
            return;
        };
        let mut held = lock(&self.held);
        held.turn = Some(Turn { ticket, charged, since: Instant::now() });
        if held.left {
            self.end_turn(&mut held);
        }
    }

    fn wants_turn(&self) -> bool {
        let held = lock(&self.held);
        held.turn.is_none() && !held.left
    }

    /// How long it has had its turn; `None` without one.
    pub(super) fn turn_age(&self) -> Option<Duration> {
        lock(&self.held).turn.as_ref().map(|turn| turn.since.elapsed())
    }

    /// What an attempt at a call used of the CPU; who used more than its turns pays for that.
    pub(super) fn used(&self, cpu: Duration) {
        let mut held = lock(&self.held);
        held.cpu = held.cpu.saturating_add(cpu);
    }

    /// Leaves for good, also while something still holds the seat.
    pub(super) fn leave(&self) {
        let mut held = lock(&self.held);
        if std::mem::replace(&mut held.left, true) {
            return;
        }
        self.end_turn(&mut held);
        if self.ticket.lane.is_some() {
            let (turns, cpu, place) = (micros(held.turns), micros(held.cpu), micros(self.since.elapsed()));
            let ticket = Ticket { memory: held.memory, ..self.ticket };
            lock(&self.gate.fair).leave(&ticket, turns, cpu, place);
        }
    }

    fn end_turn(&self, held: &mut Held) {
        if let Some(turn) = held.turn.take() {
            let used = turn.since.elapsed();
            held.turns += used;
            lock(&self.gate.fair).end_turn(&turn.ticket, turn.charged, micros(used));
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.leave();
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn busy(whose: Whose, why: &str) -> Failure {
    let whose = match whose {
        Whose::Server => "this server",
        Whose::Tenant => "this tenant",
        Whose::Host => "this host",
    };
    Failure::new(Code::Busy, format!("{whose} is busy: {why}; try again later"))
}

fn closing() -> Failure {
    Failure::new(Code::Busy, "this host is busy: it is closing; try again later")
}
