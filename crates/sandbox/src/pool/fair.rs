//! Who is next: weighted fair queueing over tenants. No clock, no tasks, no locks of its own.
//!
//! Three things are scarce. A **place** is held by a call from its admission to its answer. **Memory** is held with it: all
//! that its compartment may take, or by a compartment that outlives its call. A **turn** is held by whatever may use the CPU
//! just now: a call that computes, a compartment that grows. Each tenant has a virtual time:
//! what it has used so far, divided by its weight. The tenant with the least is next; within a tenant, who came first.

mod holds;

use holds::Hold;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A whole turn in its parts. A call that shares a process with others holds a part, since only one of them can run.
pub(super) const TURN: usize = 8;

/// How much of what was used last counts for what is expected next.
const LEARNING: f64 = 0.125;

/// What a tenant is expected to use that nobody knows yet, in microseconds: nothing at all would let it have every turn
/// before it has paid for the first.
const FIRST_GUESS: f64 = 1000.0;

/// An idle tenant is forgotten after this many sweeps.
const FORGET: u32 = 60;

#[derive(Clone, Copy, Debug)]
pub(super) struct FairLimits {
    pub(super) running: usize,
    pub(super) running_per_tenant: usize,
    pub(super) running_per_lane: usize,
    pub(super) waiting: usize,
    pub(super) waiting_per_tenant: usize,
    pub(super) waiting_per_lane: usize,
    /// In parts.
    pub(super) turns: usize,
    pub(super) turns_per_tenant: usize,
    /// In MiB.
    pub(super) memory: u64,
    pub(super) memory_per_tenant: u64,
}

/// What somebody stands in line for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// A place with so many MiB, and a turn with it.
    Place { lane: u64, memory: u64 },
    /// A turn alone.
    Turn,
    /// A turn again, for a call that has its place and came with this number.
    Again { number: u64 },
}

/// Names somebody who stands in line or has been let in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    pub(super) tenant: usize,
    pub(super) lane: Option<u64>,
    pub(super) number: u64,
    pub(super) parts: usize,
    pub(super) memory: u64,
}

/// What somebody in line hears.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Word {
    /// Come in; this much was charged beforehand.
    Come(f64),
    /// The line is too long, and this was its last place.
    Go(Whose),
    Closed,
}

/// Whose bound it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Server,
    Tenant,
    Host,
}

pub(super) enum Entered {
    Now(Ticket, f64),
    Wait(Ticket, oneshot::Receiver<Word>),
    Closed,
}

struct Waiter {
    parts: usize,
    memory: u64,
    word: oneshot::Sender<Word>,
}

/// The calls of one deployment.
struct Lane {
    id: u64,
    running: usize,
    line: BTreeMap<u64, Waiter>,
}

struct Tenant {
    /// False once it is forgotten and its entry may be used again.
    known: bool,
    name: Arc<str>,
    weight: f64,
    /// What it has used, divided by its weight.
    time: f64,
    /// What it is expected to use in one turn.
    expected: f64,
    running: usize,
    turns: usize,
    memory: u64,
    waiting: usize,
    lanes: Vec<Lane>,
    /// Those who wait for a turn alone.
    turn_line: BTreeMap<u64, Waiter>,
    idle_sweeps: u32,
}

pub(super) struct Fair {
    limits: FairLimits,
    tenants: Vec<Tenant>,
    /// Entries of `tenants` that nobody has.
    free: Vec<usize>,
    names: HashMap<Arc<str>, usize>,
    /// Weights other than 1.
    weights: HashMap<String, u32>,
    /// Tenants with somebody in line.
    backlog: Vec<usize>,
    running: usize,
    turns: usize,
    memory: u64,
    /// What of the memory is held beyond calls, in the order in which it was taken.
    holds: BTreeMap<u64, Hold>,
    waiting: usize,
    /// The greatest virtual time of anybody who was let in.
    clock: f64,
    next_number: u64,
    closed: bool,
}

/// A tenant's next, as far as its own bounds go.
struct Candidate {
    tenant: usize,
    /// Index of the lane, or the line for a turn alone.
    lane: Option<usize>,
    number: u64,
    parts: usize,
    memory: u64,
}

impl Fair {
    pub(super) fn new(limits: FairLimits) -> Fair {
        Fair {
            limits,
            tenants: Vec::new(),
            free: Vec::new(),
            names: HashMap::new(),
            weights: HashMap::new(),
            backlog: Vec::new(),
            running: 0,
            turns: 0,
            memory: 0,
            holds: BTreeMap::new(),
            waiting: 0,
            clock: 0.0,
            next_number: 0,
            closed: false,
        }
    }

    pub(super) fn running(&self) -> usize {
        self.running
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The longest line of a tenant.
    pub(super) fn longest(&self) -> usize {
        self.backlog.iter().map(|tenant| self.tenants[*tenant].waiting).max().unwrap_or(0)
    }

    /// Whether somebody of this tenant waits for a place.
    pub(super) fn waits(&self, tenant: &str) -> bool {
        self.names.get(tenant).is_some_and(|index| self.tenants[*index].waiting > 0)
    }

    /// 0 counts as 1.
    pub(super) fn set_weight(&mut self, tenant: &str, weight: u32) {
        let weight = weight.max(1);
        if weight == 1 {
            self.weights.remove(tenant);
        } else {
            self.weights.insert(tenant.to_owned(), weight);
        }
        if let Some(index) = self.names.get(tenant) {
            self.tenants[*index].weight = f64::from(weight);
            self.dispatch();
        }
    }

    /// Lets in, or puts in line.
    pub(super) fn enter(&mut self, tenant: &str, want: Want, parts: usize) -> Entered {
        // Who has a place may finish.
        if self.closed && !matches!(want, Want::Again { .. }) {
            return Entered::Closed;
        }
        let index = self.tenant(tenant);
        let (lane, number, memory) = match want {
            Want::Place { lane, memory } => (Some(lane), self.number(), memory),
            Want::Turn => (None, self.number(), 0),
            Want::Again { number } => (None, number, 0),
        };
        let ticket = Ticket { tenant: index, lane, number, parts, memory };
        let position = lane.map(|id| self.tenants[index].lane(id));
        // With nobody in line there is nobody to overtake.
        if self.backlog.is_empty() {
            let candidate = Candidate { tenant: index, lane: position, number, parts, memory };
            if self.allowed(&candidate) && self.fits(&candidate) && self.room(index, memory).is_some() {
                self.tenants[index].time = self.tenants[index].time.max(self.clock);
                let charged = self.let_in(&candidate);
                return Entered::Now(ticket, charged);
            }
        }
        let (word, heard) = oneshot::channel();
        self.line_up(index, position, number, Waiter { parts, memory, word });
        self.dispatch();
        if let Some(lane) = lane {
            self.shorten(index, lane);
        }
        Entered::Wait(ticket, heard)
    }

    /// Somebody in line went away.
    pub(super) fn cancel(&mut self, ticket: &Ticket) {
        if self.take_out(ticket.tenant, ticket.lane, ticket.number).is_some() {
            // It may have been the one that all others waited behind.
            self.dispatch();
        }
    }

    /// A turn is over. `charged` is what was charged when it began, `used` the microseconds it lasted.
    pub(super) fn end_turn(&mut self, ticket: &Ticket, charged: f64, used: f64) {
        let cost = self.turn_cost(ticket.parts, used);
        let tenant = &mut self.tenants[ticket.tenant];
        tenant.time += (cost - charged) / tenant.weight;
        tenant.expected += (cost - tenant.expected) * LEARNING;
        tenant.turns -= ticket.parts;
        self.turns -= ticket.parts;
        self.dispatch();
    }

    /// A call is over and leaves its place with the memory of its ticket. `turns` are the microseconds of its turns, `cpu` its CPU time, `place`
    /// how long it held its place: it pays for what it had most of.
    pub(super) fn leave(&mut self, ticket: &Ticket, turns: f64, cpu: f64, place: f64) {
        let paid = self.turn_cost(ticket.parts, turns);
        let owed = self.turn_cost(ticket.parts, cpu).max(place / self.limits.running as f64);
        let tenant = &mut self.tenants[ticket.tenant];
        tenant.time += (owed - paid).max(0.0) / tenant.weight;
        tenant.running -= 1;
        self.running -= 1;
        tenant.memory -= ticket.memory;
        self.memory -= ticket.memory;
        if let Some(lane) = tenant.lanes.iter_mut().find(|lane| Some(lane.id) == ticket.lane) {
            lane.running -= 1;
        }
        tenant.lanes.retain(Lane::in_use);
        self.dispatch();
    }

    /// The tenant used `cpu` microseconds outside its calls: its next ones come later.
    pub(super) fn charge(&mut self, tenant: &str, cpu: f64) {
        let cost = self.turn_cost(TURN, cpu);
        let index = self.tenant(tenant);
        let tenant = &mut self.tenants[index];
        tenant.time = tenant.time.max(self.clock) + cost / tenant.weight;
    }

    /// Nobody new; who waits for a place is sent away.
    pub(super) fn close(&mut self) {
        self.closed = true;
        for tenant in &mut self.tenants {
            for lane in &mut tenant.lanes {
                for (_, waiter) in std::mem::take(&mut lane.line) {
                    // Who is gone already needs no word.
                    let _ = waiter.word.send(Word::Closed);
                }
            }
            tenant.lanes.retain(Lane::in_use);
            tenant.waiting = 0;
        }
        self.waiting = 0;
        self.backlog.retain(|tenant| !self.tenants[*tenant].turn_line.is_empty());
        self.dispatch();
    }

    /// Forgets tenants that have long been idle.
    pub(super) fn sweep(&mut self) {
        for (index, tenant) in self.tenants.iter_mut().enumerate() {
            if !tenant.known || tenant.running > 0 || tenant.turns > 0 || tenant.memory > 0 || tenant.in_line() {
                continue;
            }
            tenant.idle_sweeps += 1;
            if tenant.idle_sweeps > FORGET {
                self.names.remove(&tenant.name);
                tenant.known = false;
                self.free.push(index);
            }
        }
    }

    /// A share of the whole host, in microseconds.
    fn turn_cost(&self, parts: usize, used: f64) -> f64 {
        used * parts as f64 / self.limits.turns as f64
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn tenant(&mut self, name: &str) -> usize {
        if let Some(index) = self.names.get(name) {
            return *index;
        }
        let name: Arc<str> = name.into();
        let weight = self.weights.get(&*name).copied().unwrap_or(1);
        let expected = self.turn_cost(TURN, FIRST_GUESS);
        let tenant = Tenant::new(name.clone(), f64::from(weight), 0.0, expected);
        let index = match self.free.pop() {
            Some(index) => {
                self.tenants[index] = tenant;
                index
            }
            None => {
                self.tenants.push(tenant);
                self.tenants.len() - 1
            }
        };
        self.names.insert(name, index);
        index
    }

    fn line_up(&mut self, index: usize, lane: Option<usize>, number: u64, waiter: Waiter) {
        if !self.tenants[index].in_line() {
            let least = self.least();
            self.tenants[index].time = self.tenants[index].time.max(least);
            self.backlog.push(index);
        }
        let tenant = &mut self.tenants[index];
        match lane {
            Some(lane) => {
                tenant.lanes[lane].line.insert(number, waiter);
                tenant.waiting += 1;
                self.waiting += 1;
            }
            None => {
                tenant.turn_line.insert(number, waiter);
            }
        }
    }

    fn take_out(&mut self, index: usize, lane: Option<u64>, number: u64) -> Option<Waiter> {
        let tenant = &mut self.tenants[index];
        let waiter = match lane {
            Some(id) => {
                let lane = tenant.lanes.iter_mut().find(|lane| lane.id == id)?;
                let waiter = lane.line.remove(&number)?;
                tenant.lanes.retain(Lane::in_use);
                tenant.waiting -= 1;
                self.waiting -= 1;
                waiter
            }
            None => tenant.turn_line.remove(&number)?,
        };
        if !tenant.in_line() {
            self.backlog.retain(|other| *other != index);
        }
        Some(waiter)
    }

    /// Lets in whoever may come in now, the tenant that had least first.
    fn dispatch(&mut self) {
        while let Some(next) = self.next() {
            let lane = next.lane.map(|lane| self.tenants[next.tenant].lanes[lane].id);
            let charged = self.let_in(&next);
            if let Some(waiter) = self.take_out(next.tenant, lane, next.number) {
                // Who has gone meanwhile gives back what it was given when it takes its ticket back.
                let _ = waiter.word.send(Word::Come(charged));
            }
        }
    }

    /// Who may come in now. If there is not enough for the next, nobody who needs less goes first: it would never be
    /// its turn.
    fn next(&self) -> Option<Candidate> {
        let candidates = self.backlog.iter().filter_map(|tenant| self.candidate(*tenant));
        let least = |a: &Candidate, b: &Candidate| {
            let (x, y) = (&self.tenants[a.tenant], &self.tenants[b.tenant]);
            x.time.total_cmp(&y.time).then(x.turns.cmp(&y.turns)).then(a.number.cmp(&b.number))
        };
        candidates.min_by(least).filter(|next| self.fits(next))
    }

    /// The virtual time of whoever is next: a tenant that comes back does not bring along its idle time, and is not put
    /// behind those who wait already either. Who is held up by its own bounds alone is no measure.
    fn least(&self) -> f64 {
        let ready = |tenant: &&usize| self.candidate(**tenant).is_some();
        let times = self.backlog.iter().filter(ready).map(|tenant| self.tenants[*tenant].time);
        times.fold(self.clock, f64::min)
    }

    /// The tenant's next that its own bounds and the memory that is left, or that others give way with, allow. Who waits for
    /// memory holds nobody up: it may be long until there is as much as it wants, and others could wait for that only. With no
    /// place left, it is somebody who needs none: those who have one must be able to leave it.
    fn candidate(&self, index: usize) -> Option<Candidate> {
        let tenant = &self.tenants[index];
        let turn = tenant.turn_line.first_key_value().map(|(number, waiter)| (*number, None, waiter.parts, 0));
        let lanes = tenant.lanes.iter().enumerate().filter(|(_, lane)| lane.running < self.limits.running_per_lane);
        let places = lanes.filter_map(|(lane, Lane { line, .. })| {
            line.first_key_value().map(|(number, waiter)| (*number, Some(lane), waiter.parts, waiter.memory))
        });
        let places = places.filter(|(.., memory)| self.room(index, *memory).is_some());
        let full = self.running >= self.limits.running || tenant.running >= self.limits.running_per_tenant;
        let next = turn.into_iter().chain(places.filter(|_| !full)).min_by_key(|(number, ..)| *number);
        let (number, lane, parts, memory) = next?;
        let candidate = Candidate { tenant: index, lane, number, parts, memory };
        self.allowed(&candidate).then_some(candidate)
    }

    /// Whether the tenant's own bounds of places and turns allow it.
    fn allowed(&self, candidate: &Candidate) -> bool {
        let tenant = &self.tenants[candidate.tenant];
        let place = candidate.lane.is_none_or(|lane| {
            tenant.running < self.limits.running_per_tenant && tenant.lanes[lane].running < self.limits.running_per_lane
        });
        // Whatever the bounds, one at a time goes.
        place && (tenant.turns == 0 || tenant.turns + candidate.parts <= self.limits.turns_per_tenant)
    }

    /// Whether there is enough left for it.
    fn fits(&self, candidate: &Candidate) -> bool {
        let place = candidate.lane.is_none() || self.running < self.limits.running;
        place && (self.turns == 0 || self.turns + candidate.parts <= self.limits.turns)
    }

    /// Takes what it wants, with what gives way for it, and charges what it is expected to use; that is put right when its
    /// turn is over.
    fn let_in(&mut self, candidate: &Candidate) -> f64 {
        let victims = self.room(candidate.tenant, candidate.memory).unwrap_or_default();
        self.give_way(victims);
        let tenant = &mut self.tenants[candidate.tenant];
        tenant.idle_sweeps = 0;
        self.clock = self.clock.max(tenant.time);
        tenant.turns += candidate.parts;
        self.turns += candidate.parts;
        tenant.memory += candidate.memory;
        self.memory += candidate.memory;
        if let Some(lane) = candidate.lane {
            tenant.lanes[lane].running += 1;
            tenant.running += 1;
            self.running += 1;
        }
        tenant.time += tenant.expected / tenant.weight;
        tenant.expected
    }

    /// After somebody lined up: holds the bounds of the lines. The host's is held by the tenant whose line is the
    /// longest for its weight, so that a quiet tenant's caller may wait however loud others are.
    fn shorten(&mut self, index: usize, lane: u64) {
        let tenant = &self.tenants[index];
        let lane = tenant.lanes.iter().find(|other| other.id == lane);
        let (loser, whose) = if lane.is_some_and(|lane| lane.line.len() > self.limits.waiting_per_lane) {
            (lane.and_then(Lane::newest).map(|newest| (index, newest)), Whose::Server)
        } else if tenant.waiting > self.limits.waiting_per_tenant {
            (tenant.newest().map(|newest| (index, newest)), Whose::Tenant)
        } else if self.waiting > self.limits.waiting {
            let relative = |tenant: &usize| self.tenants[*tenant].waiting as f64 / self.tenants[*tenant].weight;
            let longest = self.backlog.iter().copied().max_by(|a, b| relative(a).total_cmp(&relative(b)));
            (longest.and_then(|longest| Some((longest, self.tenants[longest].newest()?))), Whose::Host)
        } else {
            return;
        };
        if let Some((tenant, (lane, number))) = loser
            && let Some(waiter) = self.take_out(tenant, Some(lane), number)
        {
            let _ = waiter.word.send(Word::Go(whose));
            // It may have been the one that all others waited behind.
            self.dispatch();
        }
    }
}

impl Tenant {
    fn new(name: Arc<str>, weight: f64, time: f64, expected: f64) -> Tenant {
        Tenant {
            known: true,
            name,
            weight,
            time,
            expected,
            running: 0,
            turns: 0,
            memory: 0,
            waiting: 0,
            lanes: Vec::new(),
            turn_line: BTreeMap::new(),
            idle_sweeps: 0,
        }
    }

    fn in_line(&self) -> bool {
        self.waiting > 0 || !self.turn_line.is_empty()
    }

    fn lane(&mut self, id: u64) -> usize {
        if let Some(index) = self.lanes.iter().position(|lane| lane.id == id) {
            return index;
        }
        self.lanes.push(Lane { id, running: 0, line: BTreeMap::new() });
        self.lanes.len() - 1
    }

    /// Lane and number of the last who came for a place.
    fn newest(&self) -> Option<(u64, u64)> {
        self.lanes.iter().filter_map(Lane::newest).max_by_key(|(_, number)| *number)
    }
}

impl Lane {
    fn in_use(&self) -> bool {
        self.running > 0 || !self.line.is_empty()
    }

    fn newest(&self) -> Option<(u64, u64)> {
        self.line.last_key_value().map(|(number, _)| (self.id, *number))
    }
}

#[cfg(test)]
impl Fair {
    /// Whether somebody is in line who could come in. Between two calls that is a lost wake-up.
    pub(super) fn could_go_on(&self) -> bool {
        self.next().is_some()
    }

    /// MiB that somebody holds.
    pub(super) fn memory(&self) -> u64 {
        self.memory
    }

    /// Places, parts of turns, and lanes that somebody holds.
    pub(super) fn held(&self) -> (usize, usize, usize) {
        (self.running, self.turns, self.tenants.iter().map(|tenant| tenant.lanes.len()).sum())
    }
}
