//! The line by itself, under random use: nothing beyond its bounds, nobody forgotten, nothing left over.

use crate::pool::fair::{Entered, Fair, FairLimits, TURN, Ticket, Want, Word};
use proptest::prelude::*;
use tokio::sync::oneshot::Receiver;
use tokio::sync::oneshot::error::TryRecvError;

#[derive(Clone, Debug)]
enum Step {
    /// A caller for a place.
    Come {
        tenant: usize,
        lane: u64,
        parts: usize,
        memory: u64,
    },
    /// Something that needs a turn alone.
    Grow {
        tenant: usize,
    },
    /// One of those in line goes away.
    Cancel(usize),
    /// One of those inside leaves, gives up its turn, or wants one again.
    Leave(usize),
    Pause(usize),
    Resume(usize),
    Weigh {
        tenant: usize,
        weight: u32,
    },
    /// One of those inside hands its memory on to something that stays.
    HandOn(usize),
    /// What stays is used, left alone, or let go.
    Use(usize),
    LeaveAlone(usize),
    LetGo(usize),
    Sweep,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4usize, 0..3u64, prop_oneof![Just(1), Just(TURN)], 0..20u64)
            .prop_map(|(tenant, lane, parts, memory)| Step::Come { tenant, lane, parts, memory }),
        1 => (0..4usize).prop_map(|tenant| Step::Grow { tenant }),
        2 => any::<usize>().prop_map(Step::Cancel),
        4 => any::<usize>().prop_map(Step::Leave),
        2 => any::<usize>().prop_map(Step::Pause),
        2 => any::<usize>().prop_map(Step::Resume),
        1 => (0..4usize, 0..9u32).prop_map(|(tenant, weight)| Step::Weigh { tenant, weight }),
        3 => any::<usize>().prop_map(Step::HandOn),
        2 => any::<usize>().prop_map(Step::Use),
        2 => any::<usize>().prop_map(Step::LeaveAlone),
        1 => any::<usize>().prop_map(Step::LetGo),
        1 => Just(Step::Sweep),
    ]
}

fn limits() -> impl Strategy<Value = FairLimits> {
    let small = || 1..6usize;
    let turns = (1..6 * TURN, 1..6 * TURN);
    ((small(), small(), small()), (0..8usize, 0..8usize, 0..8usize), turns, (1..60u64, 1..60u64)).prop_map(
        |(running, waiting, turns, memory)| FairLimits {
            running: running.0,
            running_per_tenant: running.1,
            running_per_lane: running.2,
            waiting: waiting.0,
            waiting_per_tenant: waiting.1,
            waiting_per_lane: waiting.2,
            turns: turns.0,
            turns_per_tenant: turns.1,
            memory: memory.0,
            memory_per_tenant: memory.1,
        },
    )
}

struct Standing {
    tenant: usize,
    ticket: Ticket,
    heard: Receiver<Word>,
    /// The place it already has, when it waits for a turn again.
    seat: Option<Ticket>,
}

struct Inside {
    tenant: usize,
    /// `None` for who came for a turn alone.
    place: Option<Ticket>,
    turn: Option<(Ticket, f64)>,
}

/// Something that stays.
struct Stays {
    tenant: usize,
    memory: u64,
    number: u64,
    used: usize,
    told: Receiver<()>,
}

struct World {
    stays: Vec<Stays>,
    fair: Fair,
    limits: FairLimits,
    line: Vec<Standing>,
    inside: Vec<Inside>,
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

impl World {
    fn new(limits: FairLimits) -> World {
        World { stays: Vec::new(), fair: Fair::new(limits), limits, line: Vec::new(), inside: Vec::new() }
    }

    fn enter(&mut self, tenant: usize, want: Want, parts: usize, seat: Option<Ticket>) {
        match self.fair.enter(NAMES[tenant], want, parts) {
            Entered::Now(ticket, charged) => self.come_in(tenant, ticket, charged, seat),
            Entered::Wait(ticket, heard) => self.line.push(Standing { tenant, ticket, heard, seat }),
            Entered::Closed => panic!("nobody closed it"),
        }
    }

    fn come_in(&mut self, tenant: usize, ticket: Ticket, charged: f64, seat: Option<Ticket>) {
        let place = seat.or(ticket.lane.is_some().then_some(ticket));
        self.inside.push(Inside { tenant, place, turn: Some((ticket, charged)) });
    }

    fn take(&mut self, step: &Step) {
        let pick = |index: usize, len: usize| if len == 0 { None } else { Some(index % len) };
        match *step {
            Step::Come { tenant, lane, parts, memory } => {
                let lane = tenant as u64 * 10 + lane;
                self.enter(tenant, Want::Place { lane, memory }, parts, None);
            }
            Step::Grow { tenant } => self.enter(tenant, Want::Turn, TURN, None),
            Step::Cancel(index) => {
                if let Some(index) = pick(index, self.line.len()) {
                    let standing = self.line.swap_remove(index);
                    self.fair.cancel(&standing.ticket);
                    if let Some(place) = standing.seat {
                        self.fair.leave(&place, 0.0, 0.0, 0.0);
                    }
                }
            }
            Step::Leave(index) => {
                if let Some(index) = pick(index, self.inside.len()) {
                    let inside = self.inside.swap_remove(index);
                    if let Some((ticket, charged)) = inside.turn {
                        self.fair.end_turn(&ticket, charged, 1000.0);
                    }
                    if let Some(place) = inside.place {
                        self.fair.leave(&place, 1000.0, 2000.0, 5000.0);
                    }
                }
            }
            Step::Pause(index) => {
                let callers: Vec<usize> = (0..self.inside.len()).filter(|n| self.inside[*n].place.is_some()).collect();
                if let Some(index) = pick(index, callers.len())
                    && let Some((ticket, charged)) = self.inside[callers[index]].turn.take()
                {
                    self.fair.end_turn(&ticket, charged, 300.0);
                }
            }
            Step::Resume(index) => {
                let without: Vec<usize> = (0..self.inside.len()).filter(|n| self.inside[*n].turn.is_none()).collect();
                if let Some(index) = pick(index, without.len()) {
                    let Inside { tenant, place, .. } = self.inside.swap_remove(without[index]);
                    let place = place.expect("who came for a turn alone does not pause");
                    self.enter(tenant, Want::Again { number: place.number }, place.parts, Some(place));
                }
            }
            Step::Weigh { tenant, weight } => self.fair.set_weight(NAMES[tenant], weight),
            Step::HandOn(index) => {
                let rich = |inside: &Inside| inside.place.is_some_and(|place| place.memory > 0);
                let rich: Vec<usize> = (0..self.inside.len()).filter(|n| rich(&self.inside[*n])).collect();
                if let Some(index) = pick(index, rich.len())
                    && let Inside { tenant, place: Some(place), .. } = &mut self.inside[rich[index]]
                {
                    let memory = std::mem::take(&mut place.memory);
                    let number = self.fair.keep(place.tenant, memory);
                    let told = self.fair.yields(number);
                    self.stays.push(Stays { tenant: *tenant, memory, number, used: 0, told });
                }
            }
            Step::Use(index) => {
                self.gone();
                if let Some(index) = pick(index, self.stays.len()) {
                    assert!(self.fair.stay(self.stays[index].number), "nobody was told that it is gone");
                    self.stays[index].used += 1;
                }
            }
            Step::LeaveAlone(index) => {
                let used: Vec<usize> = (0..self.stays.len()).filter(|n| self.stays[*n].used > 0).collect();
                if let Some(index) = pick(index, used.len()) {
                    self.stays[used[index]].used -= 1;
                    self.fair.left(self.stays[used[index]].number);
                }
            }
            Step::LetGo(index) => {
                if let Some(index) = pick(index, self.stays.len()) {
                    self.fair.let_go(self.stays.swap_remove(index).number);
                }
            }
            Step::Sweep => self.fair.sweep(),
        }
        self.gone();
        self.listen();
    }

    /// What has given way is gone, and nobody used it.
    fn gone(&mut self) {
        self.stays.retain_mut(|stays| {
            let gave_way = stays.told.try_recv().is_ok();
            assert!(!gave_way || stays.used == 0, "it was in use");
            !gave_way
        });
    }

    /// Everybody in line listens.
    fn listen(&mut self) {
        for mut standing in std::mem::take(&mut self.line) {
            match standing.heard.try_recv() {
                Ok(Word::Come(charged)) => self.come_in(standing.tenant, standing.ticket, charged, standing.seat),
                Ok(Word::Go(_)) => assert!(standing.ticket.lane.is_some(), "only who wants a place is sent away"),
                Ok(Word::Closed) | Err(TryRecvError::Closed) => panic!("dropped without a word"),
                Err(TryRecvError::Empty) => self.line.push(standing),
            }
        }
    }

    fn check(&self) {
        let places = |tenant: Option<usize>| {
            let mine = |t: usize| tenant.is_none_or(|tenant| tenant == t);
            let inside = self.inside.iter().filter(|inside| mine(inside.tenant) && inside.place.is_some()).count();
            inside + self.line.iter().filter(|standing| mine(standing.tenant) && standing.seat.is_some()).count()
        };
        let turns = |tenant: Option<usize>| -> (usize, usize) {
            let theirs = self.inside.iter().filter(|inside| tenant.is_none_or(|tenant| tenant == inside.tenant));
            let parts: Vec<usize> = theirs.filter_map(|inside| inside.turn.as_ref().map(|(t, _)| t.parts)).collect();
            (parts.iter().sum(), parts.len())
        };
        let memory = |tenant: Option<usize>| -> (u64, usize) {
            let inside = self.inside.iter().filter_map(|inside| Some((inside.tenant, inside.place?.memory)));
            let again = self.line.iter().filter_map(|standing| Some((standing.tenant, standing.seat?.memory)));
            let stays = self.stays.iter().map(|stays| (stays.tenant, stays.memory));
            let theirs = inside
                .chain(again)
                .chain(stays)
                .filter(|(t, memory)| *memory > 0 && tenant.is_none_or(|tenant| tenant == *t));
            theirs.fold((0, 0), |(sum, holders), (_, memory)| (sum + memory, holders + 1))
        };
        let in_line = self.line.iter().filter(|standing| standing.ticket.lane.is_some());
        assert_eq!(self.fair.running(), places(None));
        assert_eq!(self.fair.waiting(), in_line.clone().count());
        assert!(places(None) <= self.limits.running);
        assert!(self.fair.waiting() <= self.limits.waiting);
        let (parts, holders) = turns(None);
        assert!(parts <= self.limits.turns || holders == 1, "{parts} parts of turns");
        let (mib, holders) = memory(None);
        assert_eq!(self.fair.memory(), mib);
        assert!(mib <= self.limits.memory || holders == 1, "{mib} MiB");
        for tenant in 0..NAMES.len() {
            let (mib, holders) = memory(Some(tenant));
            assert!(mib <= self.limits.memory_per_tenant || holders == 1, "{mib} MiB of one tenant");
            assert!(places(Some(tenant)) <= self.limits.running_per_tenant);
            assert!(in_line.clone().filter(|s| s.tenant == tenant).count() <= self.limits.waiting_per_tenant);
            let (parts, holders) = turns(Some(tenant));
            assert!(parts <= self.limits.turns_per_tenant || holders == 1, "{parts} parts of one tenant");
        }
        assert!(!self.fair.could_go_on(), "somebody waits for what is there");
    }

    /// All inside leave, one after the other: then all in line come in, and leave, too.
    fn empty(&mut self) {
        let mut left = 10_000;
        while !self.stays.is_empty() {
            self.take(&Step::LetGo(0));
            self.check();
        }
        while !self.inside.is_empty() {
            self.take(&Step::Leave(0));
            self.check();
            left -= 1;
            assert!(left > 0, "it never ends");
        }
        assert_eq!(self.line.len(), 0, "nobody is inside, and yet somebody waits");
        assert_eq!(self.fair.held(), (0, 0, 0));
        assert_eq!(self.fair.memory(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_and_nothing_is_exceeded(limits in limits(), steps in proptest::collection::vec(step(), 1..150)) {
        let mut world = World::new(limits);
        for step in &steps {
            world.take(step);
            world.check();
        }
        world.empty();
    }
}

/// Who goes away at the very moment it is let in gives back what it got: a task that is dropped while its word waits.
#[tokio::test(start_paused = true)]
async fn who_goes_away_when_called_gives_its_turn_back() {
    use crate::pool::gate::Gate;
    use std::sync::Arc;
    use std::time::Duration;
    let limits = FairLimits {
        running: 1,
        running_per_tenant: 1,
        running_per_lane: 1,
        waiting: 9,
        waiting_per_tenant: 9,
        waiting_per_lane: 9,
        turns: 4,
        turns_per_tenant: 4,
        memory: 9,
        memory_per_tenant: 9,
    };
    let (gate, tenant): (_, Arc<str>) = (Arc::new(Gate::new(limits)), "a".into());
    let hour = Duration::from_secs(3600);
    let inside = gate.enter(&tenant, 0, 5, 4, hour).await.unwrap();
    let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(gate.enter(&tenant, 0, 5, 4, hour))).collect();
    for caller in &mut waiting {
        assert!(tokio::time::timeout(Duration::from_millis(1), caller).await.is_err());
    }
    assert_eq!(gate.crowd().waiting, 3);
    let (third, second, first) = (waiting.pop().unwrap(), waiting.pop().unwrap(), waiting.pop().unwrap());
    drop(second);
    assert_eq!(gate.crowd().waiting, 2);
    drop(inside);
    assert_eq!((gate.crowd().running, gate.crowd().waiting), (1, 1), "the first is called, and does not know yet");
    drop(first);
    let third = third.await.expect("it was passed on");
    assert_eq!((gate.crowd().running, gate.crowd().waiting), (1, 0));
    drop(third);
    assert_eq!(gate.crowd().running, 0);
}
