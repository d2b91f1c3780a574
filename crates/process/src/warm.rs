//! Programs that are started ahead of need, so that a first call does not wait for an interpreter.

use crate::instance::Instance;
use crate::launch::Launcher;
use crate::memory::{Memory, Share};
use crate::room::Need;
use crate::settings::ProcessSettings;
use policy::{Boundary, Limits};
use sandbox::{Code, Failure};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// How often those that wait are looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// The number of those that wait falls by one when nobody has missed one for so long.
const CALM: Duration = Duration::from_secs(30);

/// The pause after the first start that failed; each further one doubles it, up to a bound.
const PAUSE: Duration = Duration::from_millis(250);
const MOST_DOUBLINGS: u32 = 8;

/// Starts that may be lost one after the other before there is a pause: a program can make its end look like somebody else's
/// doing.
const MOST_LOST: u32 = 3;

/// A program that takes another's place begins so much later: starting is work, and whoever took the other one calls it now.
const HEAD_START: Duration = Duration::from_millis(20);

/// Programs of a wall that start at once, ahead of need: whoever needs one now comes first.
const STARTS: usize = 2;

/// What all that wait, and start to wait, may use together.
pub(crate) struct Budget {
    /// Of those that wait.
    memory: Memory,
    starts: Semaphore,
}

impl Budget {
    pub(crate) fn new(settings: &ProcessSettings) -> Budget {
        Budget { memory: Memory::new(settings.warm_mb << 20), starts: Semaphore::new(STARTS) }
    }
}

/// One that waits.
struct Waiting {
    instance: Instance,
    _share: Option<Share>,
}

/// The programs of one deployment that wait for their first call.
pub(crate) struct Warm {
    launcher: Launcher,
    budget: Arc<Budget>,
    state: Mutex<State>,
}

struct State {
    waiting: VecDeque<Waiting>,
    /// How many should wait.
    wanted: usize,
    starting: usize,
    last_taken: Instant,
    last_missed: Instant,
    /// What one holds when it waits.
    bytes: u64,
    /// Starts that were lost since the last one that was not.
    lost: u32,
    trouble: Option<Trouble>,
}

/// Starts that fail one after the other.
struct Trouble {
    /// None when it started and ended while it waited: whoever comes then may have better luck.
    failure: Option<Failure>,
    times: u32,
    until: Instant,
}

impl Warm {
    /// Begins with the one that has shown the surface. Must be called inside a tokio runtime.
    pub(crate) fn new(launcher: Launcher, budget: Arc<Budget>, first: Instance) -> Arc<Warm> {
        let now = Instant::now();
        let bytes = held(&first);
        let state = State {
            waiting: VecDeque::from([Waiting { instance: first, _share: None }]),
            wanted: 0,
            starting: 0,
            last_taken: now,
            last_missed: now,
            bytes,
            lost: 0,
            trouble: None,
        };
        let warm = Arc::new(Warm { launcher, budget, state: Mutex::new(state) });
        tokio::spawn(tend(Arc::downgrade(&warm)));
        warm
    }

    pub(crate) fn limits(&self) -> &Limits {
        self.launcher.limits()
    }

    /// One that waits, or one that is started now.
    pub(crate) async fn take(self: &Arc<Warm>, need: Need) -> Result<Instance, Failure> {
        let ready = {
            let mut state = self.state();
            self.drop_old(&mut state);
            let ready = state.waiting.pop_front();
            state.last_taken = Instant::now();
            if ready.is_none() {
                state.last_missed = state.last_taken;
            }
            state.wanted = self.wanted(state.wanted, ready.is_none());
            ready
        };
        self.replace();
        match ready {
            Some(ready) => Ok(ready.instance),
            None => self.start(need).await,
        }
    }

    /// Sessions come one after the other, and each wants one of its own. Single calls have spares in their pool, and a
    /// server that all share needs another one only when the first is lost.
    fn wanted(&self, now: usize, missed: bool) -> usize {
        let most = self.launcher.ground.settings.warm;
        match self.launcher.deployment.permit.boundary() {
            Boundary::Session if missed => (now * 2).clamp(1, most.max(1)).min(most),
            Boundary::Session => now.max(1).min(most),
            Boundary::Call | Boundary::Server | Boundary::Tenant => 0,
        }
    }

    async fn start(&self, need: Need) -> Result<Instance, Failure> {
        if let Some(trouble) = &self.state().trouble
            && let Some(failure) = &trouble.failure
            && Instant::now() < trouble.until
        {
            return Err(failure.clone());
        }
        let started = Instance::start(&self.launcher, need).await;
        let mut state = self.state();
        match &started {
            Ok(instance) => {
                state.trouble = None;
                state.lost = 0;
                state.bytes = held(instance);
            }
            Err(failure) => state.failed(failure),
        }
        started
    }

    /// Starts what is missing, in the background.
    fn replace(self: &Arc<Warm>) {
        let mut state = self.state();
        let paused = state.trouble.as_ref().is_some_and(|trouble| Instant::now() < trouble.until);
        while !paused && state.waiting.len() + state.starting < state.wanted {
            let Some(share) = self.budget.memory.take(state.bytes) else { return };
            state.starting += 1;
            let warm = Arc::downgrade(self);
            let budget = self.budget.clone();
            tokio::spawn(async move {
                tokio::time::sleep(HEAD_START).await;
                // Nobody closes it.
                let _turn = budget.starts.acquire().await;
                let Some(warm) = warm.upgrade() else { return };
                let started = warm.start(Need::Later).await;
                let mut state = warm.state();
                state.starting -= 1;
                if let Ok(instance) = started {
                    state.waiting.push_back(Waiting { instance, _share: Some(share) });
                }
            });
        }
    }

    /// Lets go of those that have ended, or have waited too long.
    fn drop_old(&self, state: &mut State) {
        let age = self.launcher.ground.settings.warm_age;
        // One that gave way to another tenant has done nothing wrong.
        if state.waiting.iter().any(|waiting| !waiting.instance.peer.alive() && !waiting.instance.peer.gave_way()) {
            state.fail(None);
        }
        state.waiting.retain(|waiting| waiting.instance.peer.alive());
        state.waiting.retain(|waiting| waiting.instance.born.elapsed() < age);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// One that was lost through no fault of its own may be tried again at once, a few times.
    fn failed(&mut self, failure: &Failure) {
        let own_fault = matches!(failure.code, Code::InitFailed | Code::InitLimit | Code::SurfaceDrift);
        if failure.code == Code::CompartmentLost {
            self.lost += 1;
        }
        if own_fault || self.lost > MOST_LOST {
            self.fail(Some(failure.clone()));
        }
    }

    fn fail(&mut self, failure: Option<Failure>) {
        let times = self.trouble.as_ref().map_or(0, |trouble| trouble.times) + 1;
        let until = Instant::now() + PAUSE * 2u32.pow((times - 1).min(MOST_DOUBLINGS));
        self.trouble = Some(Trouble { failure, times, until });
    }
}

fn held(instance: &Instance) -> u64 {
    instance.peer.process().last().map_or(0, |used| used.memory)
}

/// As long as there is a seed: keeps as many waiting as are wanted.
async fn tend(warm: Weak<Warm>) {
    loop {
        tokio::time::sleep(PERIOD).await;
        let Some(warm) = warm.upgrade() else { return };
        {
            let mut state = warm.state();
            warm.drop_old(&mut state);
            if state.last_taken.elapsed() > warm.launcher.ground.settings.warm_idle {
                state.wanted = 0;
                state.waiting.clear();
            } else if state.last_missed.elapsed() > CALM && state.wanted > 1 {
                state.wanted -= 1;
                state.last_missed = Instant::now();
                let wanted = state.wanted;
                state.waiting.truncate(wanted);
            }
        }
        warm.replace();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> State {
        let now = Instant::now();
        State {
            waiting: VecDeque::new(),
            wanted: 0,
            starting: 0,
            last_taken: now,
            last_missed: now,
            bytes: 0,
            lost: 0,
            trouble: None,
        }
    }

    #[test]
    fn losses_are_believed_a_few_times() {
        let mut state = fresh();
        for _ in 0..MOST_LOST {
            state.failed(&Failure::new(Code::CompartmentLost, "gone"));
            state.failed(&Failure::new(Code::Busy, "no memory"));
            assert!(state.trouble.is_none());
        }
        state.failed(&Failure::new(Code::CompartmentLost, "gone"));
        assert!(state.trouble.is_some());
        let mut state = fresh();
        state.failed(&Failure::new(Code::InitFailed, "its own fault"));
        assert!(state.trouble.is_some());
    }

    #[test]
    fn pauses_double_up_to_a_bound() {
        let (now, mut state) = (Instant::now(), fresh());
        let mut pauses = Vec::new();
        for _ in 0..20 {
            state.fail(None);
            pauses.push(state.trouble.as_ref().unwrap().until.duration_since(now));
        }
        assert!(pauses[0] >= PAUSE && pauses[3] >= PAUSE * 8);
        assert!(pauses[19] < PAUSE * 2u32.pow(MOST_DOUBLINGS + 1));
    }
}
