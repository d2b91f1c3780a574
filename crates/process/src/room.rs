//! Memory of all programs together, and who gives way to whom when there is no more of it.
//!
//! One tenant may have all of it while nobody else wants any. When another tenant wants some, programs give way by the rule
//! of [`sandbox::way`]. Those with calls in flight take no further call then, and end with the last one: calls in flight are
//! never ended for another tenant.
//!
//! A tenant that had to wait has a claim for a while: the room that others leave is not theirs to take back.

use sandbox::way::{self, Holding, Stage};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a start waits for programs that give way.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a claim lasts after its tenant last asked.
const CLAIM: Duration = Duration::from_secs(60);

/// What a start is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// A caller waits: others give way.
    Now,
    /// A spare, for which nobody gives way.
    Later,
}

pub(crate) struct Room {
    most: u64,
    state: Mutex<State>,
    /// Something has become free, or may be pushed out now.
    changed: Notify,
}

#[derive(Default)]
struct State {
    last: u64,
    holds: BTreeMap<u64, Hold>,
    weights: HashMap<String, u32>,
    claims: HashMap<Arc<str>, Claim>,
}

/// One program's part.
struct Hold {
    tenant: Arc<str>,
    bytes: u64,
    stage: Stage,
    since: Instant,
    /// It was told to give way.
    leaving: bool,
    told: Arc<Notify>,
}

struct Levels<'a> {
    held: HashMap<&'a str, u64>,
    weights: &'a HashMap<String, u32>,
}

impl Levels<'_> {
    /// What a tenant would hold for its weight with so much more.
    fn of(&self, tenant: &str, more: u64) -> f64 {
        let held = self.held.get(tenant).copied().unwrap_or(0).saturating_add(more);
        held as f64 / f64::from(self.weights.get(tenant).copied().unwrap_or(1))
    }
}

struct Claim {
    bytes: u64,
    asked: Instant,
}

/// A program's part of the room, given back when dropped: so whoever drives the program has it until the program is gone.
pub(crate) struct Place {
    room: Arc<Room>,
    number: u64,
    told: Arc<Notify>,
}

impl Room {
    pub(crate) fn new(most: u64) -> Arc<Room> {
        Arc::new(Room { most, state: Mutex::default(), changed: Notify::new() })
    }

    /// A tenant's share relative to others'; 0 counts as 1.
    pub(crate) fn set_weight(&self, tenant: &str, weight: u32) {
        let mut state = self.state();
        match weight {
            0 | 1 => state.weights.remove(tenant),
            weight => state.weights.insert(tenant.to_owned(), weight),
        };
    }

    /// A part for one program, made free by others if need be; none when there is none for this tenant.
    pub(crate) async fn enter(self: &Arc<Room>, tenant: &str, bytes: u64, need: Need) -> Option<Place> {
        let tenant: Arc<str> = tenant.into();
        let deadline = Instant::now() + PATIENCE;
        loop {
            // From before the look, so that no change after it is missed.
            let changed = self.changed.notified();
            {
                let mut state = self.state();
                if let Some(place) = self.take(&mut state, &tenant, bytes, need) {
                    return Some(place);
                }
                if need == Need::Later || bytes > self.most {
                    return None;
                }
                if !state.push_out(&tenant, bytes, self.most) {
                    return None;
                }
                state.claims.insert(tenant.clone(), Claim { bytes, asked: Instant::now() });
            }
            tokio::time::timeout_at(deadline, changed).await.ok()?;
        }
    }

    fn take(self: &Arc<Room>, state: &mut State, tenant: &Arc<str>, bytes: u64, need: Need) -> Option<Place> {
        let all = state.used().checked_add(state.claimed(tenant, bytes, need))?.checked_add(bytes)?;
        if all > self.most {
            return None;
        }
        state.claims.remove(tenant);
        state.last += 1;
        let (number, told) = (state.last, Arc::new(Notify::new()));
        let hold = Hold {
            tenant: tenant.clone(),
            bytes,
            stage: if need == Need::Later { Stage::Spare } else { Stage::Starting },
            since: Instant::now(),
            leaving: false,
            told: told.clone(),
        };
        state.holds.insert(number, hold);
        Some(Place { room: self.clone(), number, told })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn used(&self) -> u64 {
        self.holds.values().map(|hold| hold.bytes).sum()
    }

    /// What each tenant holds. What is about to leave is not held any more.
    fn levels(&self) -> Levels<'_> {
        let mut held = HashMap::new();
        for hold in self.holds.values().filter(|hold| !hold.leaving) {
            *held.entry(&*hold.tenant).or_default() += hold.bytes;
        }
        Levels { held, weights: &self.weights }
    }

    /// What this tenant may not take because others claim it, who hold less for their weight.
    fn claimed(&mut self, tenant: &str, bytes: u64, need: Need) -> u64 {
        self.claims.retain(|_, claim| claim.asked.elapsed() < CLAIM);
        if self.claims.is_empty() {
            return 0;
        }
        let levels = self.levels();
        let own = levels.of(tenant, bytes);
        let before = |(claimant, claim): &(&Arc<str>, &Claim)| {
            &***claimant != tenant && (need == Need::Later || levels.of(claimant, claim.bytes) < own)
        };
        self.claims.iter().filter(before).map(|(_, claim)| claim.bytes).sum()
    }

    /// Tells programs to give way until there will be room. Whether there is something to wait for.
    fn push_out(&mut self, tenant: &str, bytes: u64, most: u64) -> bool {
        let wanted = bytes.saturating_add(self.claimed(tenant, bytes, Need::Now));
        loop {
            let staying: u64 = self.holds.values().filter(|hold| !hold.leaving).map(|hold| hold.bytes).sum();
            if staying.saturating_add(wanted) <= most {
                return true;
            }
            let Some(victim) = self.victim(tenant, bytes) else {
                return self.holds.values().any(|hold| hold.leaving);
            };
            if let Some(hold) = self.holds.get_mut(&victim) {
                hold.leaving = true;
                hold.told.notify_one();
            }
        }
    }

    /// Idle programs of the tenant itself stay: its next session does not end another of its own.
    fn victim(&self, tenant: &str, bytes: u64) -> Option<u64> {
        let levels = self.levels();
        let staying = self.holds.iter().filter(|(_, hold)| !hold.leaving);
        let holdings = staying.map(|(number, hold)| {
            let (level, own) = (levels.of(&hold.tenant, 0), &*hold.tenant == tenant);
            (*number, Holding { stage: hold.stage, level, own, since: hold.since })
        });
        let offered = holdings.filter(|(_, holding)| !(holding.own && holding.stage == Stage::Idle));
        way::first(levels.of(tenant, bytes), offered)
    }
}

impl Place {
    /// Returns when the program has to give way.
    pub(crate) async fn told(&self) {
        self.told.notified().await;
    }

    /// It has initialised, and waits for its first call.
    pub(crate) fn ready(&self) {
        self.enter(Stage::Spare);
    }

    pub(crate) fn busy(&self) {
        self.enter(Stage::Busy);
    }

    pub(crate) fn idle(&self) {
        self.enter(Stage::Idle);
    }

    fn enter(&self, stage: Stage) {
        if let Some(hold) = self.room.state().holds.get_mut(&self.number) {
            (hold.stage, hold.since) = (stage, Instant::now());
        }
        if stage != Stage::Busy {
            self.room.changed.notify_waiters();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.state().holds.remove(&self.number);
        self.room.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn enter(room: &Arc<Room>, tenant: &str, bytes: u64) -> Option<Place> {
        room.enter(tenant, bytes, Need::Now).await
    }

    fn leaves(place: &Place) -> bool {
        place.room.state().holds[&place.number].leaving
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_never_overdrawn_and_comes_back() {
        let room = Room::new(100);
        let first = enter(&room, "a", 60).await.unwrap();
        assert!(enter(&room, "a", 60).await.is_none());
        let second = enter(&room, "a", 40).await.unwrap();
        assert!(enter(&room, "a", u64::MAX).await.is_none());
        drop(first);
        assert!(enter(&room, "a", 60).await.is_some());
        drop(second);
        assert_eq!(room.state().used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn spares_go_before_idle_ones_and_those_before_busy_ones() {
        let room = Room::new(100);
        let mut places = Vec::new();
        for stage in [Stage::Busy, Stage::Starting, Stage::Idle, Stage::Spare] {
            let place = enter(&room, "a", 25).await.unwrap();
            place.enter(stage);
            places.push(place);
        }
        let mut others = Vec::new();
        for gone in [3, 2] {
            let waiting = enter(&room, "b", 25);
            let leaving = async {
                places[gone].told().await;
                assert!(places[..gone].iter().all(|place| !leaves(place)));
                places.pop();
            };
            let (other, ()) = tokio::join!(waiting, leaving);
            others.push(other.unwrap());
        }
        assert!(enter(&room, "b", 25).await.is_none(), "both have their share");
        assert!(places.iter().all(|place| !leaves(place)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_claimed_is_not_taken_back() {
        let room = Room::new(100);
        let mut places = Vec::new();
        for _ in 0..4 {
            places.push(enter(&room, "a", 25).await.unwrap());
            places.last().unwrap().busy();
        }
        assert!(enter(&room, "b", 25).await.is_none(), "nothing became free in time");
        let leaving: Vec<_> = places.iter().map(leaves).collect();
        assert_eq!(leaving, [true, false, false, false], "one is enough");
        places.remove(0);
        assert!(enter(&room, "a", 25).await.is_none(), "the room is for whoever waited");
        assert!(room.enter("c", 25, Need::Later).await.is_none());
        let other = enter(&room, "b", 25).await.unwrap();
        other.idle();
        drop(other);
        assert!(enter(&room, "a", 25).await.is_some(), "the claim is gone");
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_is_forgotten_after_a_while() {
        let room = Room::new(50);
        let first = enter(&room, "a", 25).await.unwrap();
        let second = enter(&room, "a", 25).await.unwrap();
        first.busy();
        second.busy();
        assert!(enter(&room, "b", 25).await.is_none());
        drop(first);
        assert!(enter(&room, "a", 25).await.is_none());
        tokio::time::advance(CLAIM).await;
        assert!(enter(&room, "a", 25).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn between_equals_only_idle_ones_give_way() {
        let room = Room::new(50);
        let one = enter(&room, "a", 25).await.unwrap();
        let other = enter(&room, "b", 25).await.unwrap();
        one.busy();
        other.busy();
        assert!(enter(&room, "c", 25).await.is_none());
        assert!(!leaves(&one) && !leaves(&other));
        other.idle();
        let (third, ()) = tokio::join!(enter(&room, "c", 25), async {
            other.told().await;
            drop(other);
        });
        assert!(third.is_some());
    }
}
