//! One deployment's seed and the compartments grown from it.

use super::counts::Counts;
use super::fair::TURN;
use super::gate::{Gate, Hold, Seat, Stay};
use super::strikes::Strikes;
use super::{PoolSettings, lock};
use crate::{Code, Compartment, Deployment, Failure, Growth, Request, Seed, Wall};
use policy::Boundary;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// What all plots of a pool have in common.
pub(super) struct Ground {
    pub(super) wall: Arc<dyn Wall>,
    pub(super) settings: PoolSettings,
    /// The way in for calls, and for whatever else computes for a tenant.
    pub(super) calls: Arc<Gate>,
    /// Initialising is rare, long and heavy; it has a line of its own.
    pub(super) plants: Arc<Gate>,
    pub(super) counts: Counts,
}

pub(super) struct Plot {
    deployment: Arc<Deployment>,
    ground: Arc<Ground>,
    pub(super) tenant: Arc<str>,
    /// Its lane at the gate.
    pub(super) lane: u64,
    /// Calls that are under way or wait.
    callers: AtomicUsize,
    last_used: Mutex<Instant>,
    /// Held while planting, so that many first callers plant once.
    planted: tokio::sync::Mutex<Planted>,
    /// Oldest first: the one that has waited longest is the most ready.
    spares: Mutex<VecDeque<Arc<dyn Compartment>>>,
    /// How many spares are wanted now: rises when a caller finds none, falls when nobody calls.
    wanted: AtomicUsize,
    growing: AtomicUsize,
    /// How often the spares were doubted. It changes while they are locked only.
    doubts: AtomicU64,
    replanting: AtomicBool,
    shared: Mutex<HashMap<Sharer, Arc<Shared>>>,
    strikes: Mutex<Strikes>,
}

#[derive(Default)]
struct Planted {
    seed: Option<Arc<dyn Seed>>,
    /// What the seed takes.
    memory: Option<Hold>,
    /// A server that does not initialise is not tried again at once.
    trouble: Option<Trouble>,
}

struct Trouble {
    failure: Failure,
    times: u32,
    retry_at: Instant,
}

/// Who shares a compartment: a session, or everybody.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Sharer {
    Session(String),
    Everybody,
}

struct Shared {
    compartment: tokio::sync::Mutex<Option<Grown>>,
    last_used: Mutex<Instant>,
}

/// A compartment for many calls.
struct Grown {
    compartment: Arc<dyn Compartment>,
    /// All that it may take, also between calls.
    memory: Hold,
    /// Its seed cannot go before it.
    _seed: Stay,
}

impl Grown {
    /// `None` when it is dead or has given way.
    fn stay(&self) -> Option<Stay> {
        if self.compartment.alive() { self.memory.stay() } else { None }
    }
}

/// A compartment with a call in it, which keeps what the compartment needs from giving way.
pub(super) struct Taken {
    pub(super) compartment: Arc<dyn Compartment>,
    _stay: Stay,
}

/// What a process takes beside the memory that its limit is about, in MiB.
const BESIDE: u64 = 8;

/// Spares of one deployment that grow at once. Its zygote makes one at a time anyway.
const GROWERS: usize = 2;

/// Seeds that may be lost one after the other before a rest.
const MOST_LOST: u32 = 3;

/// A call on its way through a plot; as long as there is one, the plot is in use.
pub(super) struct Visit<'a>(&'a Plot);

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0.callers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Plot {
    pub(super) fn new(deployment: Arc<Deployment>, ground: Arc<Ground>) -> Plot {
        static LANES: AtomicU64 = AtomicU64::new(0);
        Plot {
            tenant: deployment.tenant.as_str().into(),
            lane: LANES.fetch_add(1, Ordering::Relaxed),
            callers: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
            planted: tokio::sync::Mutex::default(),
            spares: Mutex::default(),
            wanted: AtomicUsize::new(ground.settings.spares.min(2)),
            growing: AtomicUsize::new(0),
            doubts: AtomicU64::new(0),
            replanting: AtomicBool::new(false),
            shared: Mutex::default(),
            strikes: Mutex::default(),
            deployment,
            ground,
        }
    }

    pub(super) fn visit(&self) -> Visit<'_> {
        self.callers.fetch_add(1, Ordering::Relaxed);
        Visit(self)
    }

    pub(super) fn in_use(&self) -> bool {
        self.callers.load(Ordering::Relaxed) > 0
    }

    /// The part of a turn a call of this deployment needs. Calls that share a process take turns in there.
    pub(super) fn parts(&self) -> usize {
        match self.deployment.permit.boundary() {
            Boundary::Call | Boundary::Session => TURN,
            Boundary::Server | Boundary::Tenant => 1,
        }
    }

    /// The memory that a call has to have before it starts, in MiB: all that its compartment may take, unless that is there.
    /// Then it stays there for the call.
    pub(super) fn memory(&self, request: &Request) -> (u64, Option<Stay>) {
        let Some(sharer) = self.sharer(request) else { return (self.need(), None) };
        let shared = lock(&self.shared).get(&sharer).cloned();
        let Some(shared) = shared else { return (self.need(), None) };
        // While somebody grows it, it has its memory.
        let Ok(held) = shared.compartment.try_lock() else { return (0, None) };
        match held.as_ref().and_then(Grown::stay) {
            Some(stay) => (0, Some(stay)),
            None => (self.need(), None),
        }
    }

    /// With whom this request shares its compartment; `None`: with nobody.
    fn sharer(&self, request: &Request) -> Option<Sharer> {
        match (self.deployment.permit.boundary(), &request.session) {
            (Boundary::Call, _) | (Boundary::Session, None) => None,
            (Boundary::Session, Some(session)) => Some(Sharer::Session(session.clone())),
            (Boundary::Server | Boundary::Tenant, _) => Some(Sharer::Everybody),
        }
    }

    fn need(&self) -> u64 {
        self.ground.wall.memory_mb().map_or(0, |_| self.deployment.permit.limits().memory_mb + BESIDE)
    }

    pub(super) fn touch(&self) {
        *lock(&self.last_used) = Instant::now();
    }

    pub(super) fn last_used(&self) -> Instant {
        *lock(&self.last_used)
    }

    /// Spares and shared compartments held.
    pub(super) fn holds(&self) -> (usize, usize) {
        (lock(&self.spares).len(), lock(&self.shared).len())
    }

    /// The compartment for this request. Who waits for others on the way does so without a turn.
    pub(super) async fn take(self: &Arc<Plot>, request: &Request, seat: &Seat) -> Result<Taken, Failure> {
        match self.sharer(request) {
            Some(sharer) => self.join(sharer, seat).await,
            None => self.take_spare(seat).await,
        }
    }

    async fn take_spare(self: &Arc<Plot>, seat: &Seat) -> Result<Taken, Failure> {
        // Asked first, because spares die with their seed.
        let (seed, stay) = self.seed(Some(seat)).await?;
        while let Some(spare) = self.next_spare() {
            if spare.alive() {
                return Ok(Taken { compartment: spare, _stay: stay });
            }
        }
        let wanted = self.wanted.load(Ordering::Relaxed);
        self.wanted.store((wanted * 2).min(self.ground.settings.spares), Ordering::Relaxed);
        Ok(Taken { compartment: self.grow(&*seed, Growth::OneCall).await?, _stay: stay })
    }

    fn next_spare(&self) -> Option<Arc<dyn Compartment>> {
        lock(&self.spares).pop_front()
    }

    async fn join(self: &Arc<Plot>, sharer: Sharer, seat: &Seat) -> Result<Taken, Failure> {
        let shared = {
            let mut all = lock(&self.shared);
            if !all.contains_key(&sharer) && all.len() >= self.ground.settings.sessions {
                return Err(Failure::new(Code::Busy, "this server has too many sessions; try again later"));
            }
            let fresh = || Arc::new(Shared { compartment: Default::default(), last_used: Mutex::new(Instant::now()) });
            all.entry(sharer.clone()).or_insert_with(fresh).clone()
        };
        *lock(&shared.last_used) = Instant::now();
        let mut held = match shared.compartment.try_lock() {
            Ok(held) => held,
            Err(_) => self.meanwhile(Some(seat), shared.compartment.lock()).await,
        };
        if let Some(grown) = &*held
            && let Some(stay) = grown.stay()
        {
            return Ok(Taken { compartment: grown.compartment.clone(), _stay: stay });
        }
        self.bury(&mut held);
        *held = None;
        let (grown, taken) = self.grow_shared(seat).await?;
        self.heed(&grown.memory, |plot| plot.give_up(sharer));
        *held = Some(grown);
        Ok(taken)
    }

    async fn grow_shared(self: &Arc<Plot>, seat: &Seat) -> Result<(Grown, Taken), Failure> {
        let (seed, of_seed) = self.seed(Some(seat)).await?;
        let memory = seat.hand_on().or_else(|| self.ground.calls.hold(&self.tenant, self.need()));
        let memory = memory.ok_or_else(full)?;
        let stay = memory.stay().ok_or_else(full)?;
        let compartment = self.grow(&*seed, Growth::ManyCalls).await?;
        let grown = Grown { compartment: compartment.clone(), memory, _seed: of_seed };
        Ok((grown, Taken { compartment, _stay: stay }))
    }

    /// From now on this gives way while no call needs it, and then is let go in this manner.
    fn heed<F: Future<Output = ()> + Send>(
        self: &Arc<Plot>,
        memory: &Hold,
        let_go: impl FnOnce(Arc<Plot>) -> F + Send + 'static,
    ) {
        let (plot, told) = (Arc::downgrade(self), memory.yields());
        tokio::spawn(async move {
            // Who lets go of it before says nothing.
            if told.await.is_ok()
                && let Some(plot) = plot.upgrade()
            {
                let_go(plot).await;
            }
        });
    }

    /// An idle compartment gave way. Its sharers get a new one at their next call.
    async fn give_up(self: Arc<Plot>, sharer: Sharer) {
        self.gave_way();
        // There the seed is in the process.
        if self.forget(&sharer) && self.deployment.permit.boundary() == Boundary::Tenant {
            self.planted.lock().await.seed = None;
        }
    }

    /// False when somebody has grown another meanwhile, or is about to.
    fn forget(&self, sharer: &Sharer) -> bool {
        let mut all = lock(&self.shared);
        let gone = all.get(sharer).is_some_and(|shared| {
            let held = shared.compartment.try_lock();
            held.is_ok_and(|held| held.as_ref().is_none_or(|grown| grown.memory.gone()))
        });
        gone && all.remove(sharer).is_some()
    }

    /// The seed gave way, and its spares go with it. The next call plants anew.
    async fn give_up_seed(self: Arc<Plot>) {
        self.gave_way();
        let mut planted = self.planted.lock().await;
        if planted.memory.as_ref().is_some_and(Hold::gone) {
            (planted.seed, planted.memory) = (None, None);
            self.doubt_spares();
        }
    }

    fn gave_way(&self) {
        self.ground.counts.killed(Code::Busy);
        let (tenant, server) = (&*self.tenant, &*self.deployment.server);
        tracing::info!(tenant, server, "a process without a call gave way: its memory was needed");
    }

    /// Lets go of a compartment that was ended between calls, and says so: no caller hears of it.
    fn bury(&self, held: &mut Option<Grown>) {
        let Some(grown) = held else { return };
        let cpu = grown.compartment.cpu_time();
        if let Some(code) = grown.compartment.ended() {
            *held = None;
            match code {
                // It has done nothing wrong.
                Code::Busy => self.gave_way(),
                code => self.strike(code, cpu),
            }
        }
    }

    /// Something of this deployment was ended while no call was in it. The tenant pays for the CPU time, and a
    /// deployment to which it happens again rests.
    fn strike(&self, code: Code, cpu: Option<Duration>) {
        self.ground.counts.killed(code);
        let cpu = cpu.unwrap_or(Duration::from_millis(self.deployment.permit.limits().cpu_ms));
        self.ground.calls.charge(&self.tenant, cpu);
        let pause = lock(&self.strikes).add(code, Instant::now());
        let (tenant, server, pause_ms) = (&*self.tenant, &*self.deployment.server, pause.as_millis() as u64);
        tracing::warn!(tenant, server, reason = code.as_str(), pause_ms, "a process was ended while no call was in it");
    }

    /// Ends spares, and the seed, that compute although no call is in them. What is found at once counts once.
    fn watch(&self) {
        let mut found: Option<(Code, Option<Duration>)> = None;
        lock(&self.spares).retain(|spare| {
            let cpu = spare.cpu_time();
            let Some(code) = spare.ended() else { return true };
            found = Some((
                code,
                found.and_then(|(_, before)| before).unwrap_or_default().checked_add(cpu.unwrap_or_default()),
            ));
            false
        });
        if let Ok(planted) = self.planted.try_lock()
            && let Some(code) = planted.seed.as_ref().and_then(|seed| seed.ended())
        {
            found = found.or(Some((code, None)));
        }
        if let Some((code, cpu)) = found {
            self.strike(code, cpu);
        }
    }

    async fn grow(&self, seed: &dyn Seed, growth: Growth) -> Result<Arc<dyn Compartment>, Failure> {
        let compartment = seed.grow(growth).await?;
        self.ground.counts.grown();
        Ok(compartment)
    }

    /// Waits for something that others do, without a turn.
    async fn meanwhile<T>(&self, seat: Option<&Seat>, what: impl Future<Output = T>) -> T {
        let Some(seat) = seat else { return what.await };
        seat.pause();
        let done = what.await;
        seat.resume(self.ground.settings.patience).await;
        done
    }

    /// What took one compartment may have taken all that waited or grew beside it, and a caller must not try them one by
    /// one.
    pub(super) fn doubt_spares(&self) {
        let mut spares = lock(&self.spares);
        self.doubts.fetch_add(1, Ordering::Relaxed);
        spares.clear();
    }

    /// After a call: the used compartment goes, and spares are grown for the next callers, off the path of this one.
    pub(super) fn give_back(self: &Arc<Plot>, used: Taken) {
        drop(used);
        if self.deployment.permit.boundary() != Boundary::Call {
            return;
        }
        let missing = self.wanted.load(Ordering::Relaxed).saturating_sub(lock(&self.spares).len());
        if self.growing.load(Ordering::Relaxed) >= missing.min(GROWERS) {
            return;
        }
        self.growing.fetch_add(1, Ordering::Relaxed);
        let plot = self.clone();
        tokio::spawn(async move {
            plot.grow_spares().await;
            plot.growing.fetch_sub(1, Ordering::Relaxed);
        });
    }

    /// Each spare takes a turn, as calls do. While callers of the tenant wait, they come first and grow their own.
    async fn grow_spares(&self) {
        let Some(seed) = self.planted.lock().await.seed.clone() else { return };
        let missing = || lock(&self.spares).len() < self.wanted.load(Ordering::Relaxed);
        let (calls, patience) = (&self.ground.calls, self.ground.settings.patience);
        while missing() && !calls.waits(&self.tenant) {
            let Ok(_turn) = calls.turn(&self.tenant, TURN, patience).await else { return };
            if !missing() {
                return;
            }
            let doubts = self.doubts.load(Ordering::Relaxed);
            // The next caller grows its own and hears the reason if it is still there.
            let Ok(spare) = self.grow(&*seed, Growth::Spare).await else { return };
            self.keep(spare, doubts);
        }
    }

    /// Keeps a spare unless others who grew meanwhile were enough, or spares were doubted since it began to grow.
    fn keep(&self, spare: Arc<dyn Compartment>, doubts: u64) {
        let mut spares = lock(&self.spares);
        let trusted = self.doubts.load(Ordering::Relaxed) == doubts;
        if trusted && spares.len() < self.wanted.load(Ordering::Relaxed) {
            spares.push_back(spare);
        }
    }

    /// The living seed, planted if need be. It does not give way while the stay lasts.
    pub(super) async fn seed(self: &Arc<Plot>, seat: Option<&Seat>) -> Result<(Arc<dyn Seed>, Stay), Failure> {
        let mut planted = match self.planted.try_lock() {
            Ok(planted) => planted,
            Err(_) => self.meanwhile(seat, self.planted.lock()).await,
        };
        if let Some(failure) = lock(&self.strikes).pause(Instant::now()) {
            return Err(failure);
        }
        if let Some(seed) = &planted.seed
            && seed.alive()
            && let Some(stay) = planted.memory.as_ref().and_then(Hold::stay)
        {
            return Ok((seed.clone(), stay));
        }
        if let Some(trouble) = &planted.trouble
            && Instant::now() < trouble.retry_at
        {
            return Err(trouble.failure.clone());
        }
        self.doubt_spares();
        match self.meanwhile(seat, self.plant(seat.is_some())).await {
            Ok((seed, memory)) => {
                let stay = memory.stay().ok_or_else(full)?;
                self.heed(&memory, Plot::give_up_seed);
                *planted = Planted { seed: Some(seed.clone()), memory: Some(memory), trouble: None };
                Ok((seed, stay))
            }
            Err(failure) => {
                let times = planted.trouble.as_ref().map_or(0, |t| t.times) + 1;
                let pause = Duration::from_millis(250 << times.min(8));
                let own_fault = matches!(failure.code, Code::InitFailed | Code::InitLimit | Code::SurfaceDrift);
                let lost = failure.code == Code::CompartmentLost;
                // A server can make its end look like somebody else's doing, so that is believed a few times only.
                let pause = if own_fault || times > MOST_LOST { pause } else { Duration::ZERO };
                let retry_at = Instant::now() + pause;
                planted.trouble = (own_fault || lost).then(|| Trouble { failure: failure.clone(), times, retry_at });
                (planted.seed, planted.memory) = (None, None);
                Err(failure)
            }
        }
    }

    /// Initialises the deployment when the tenant's turn comes. One that is at it for longer than its CPU budget needs
    /// waits for something, and holds nobody up.
    /// A caller has the memory for it: its own compartment grows afterwards.
    async fn plant(&self, for_caller: bool) -> Result<(Arc<dyn Seed>, Hold), Failure> {
        let settings = &self.ground.settings;
        let need = if for_caller { 0 } else { self.need() };
        let meanwhile = self.ground.calls.hold(&self.tenant, need).ok_or_else(full)?;
        let turn = self.ground.plants.turn(&self.tenant, TURN, settings.patience).await?;
        let mut planting = self.ground.wall.plant(self.deployment.clone());
        let longest = settings.turn(self.deployment.permit.limits().init_cpu_ms);
        let planted = match tokio::time::timeout(longest, &mut planting).await {
            Ok(planted) => planted,
            Err(_) => {
                turn.pause();
                planting.await
            }
        };
        let planted = planted.and_then(|seed| self.deployment.shows.check(seed.surface()).map(|()| seed));
        self.ground.counts.planted(planted.is_ok());
        let seed = planted?;
        drop(meanwhile);
        let memory = self.ground.calls.hold(&self.tenant, seed.memory_mb()).ok_or_else(full)?;
        Ok((seed, memory))
    }

    /// Lets go what is not used and plants a worn seed anew, beside the old one until it is ready.
    pub(super) fn sweep(self: &Arc<Plot>) {
        let settings = &self.ground.settings;
        self.watch();
        lock(&self.shared).retain(|sharer, shared| {
            let mut in_use = Arc::strong_count(shared) > 1;
            if let Ok(mut held) = shared.compartment.try_lock() {
                self.bury(&mut held);
                in_use |= held.as_ref().is_some_and(|grown| grown.memory.in_use());
            }
            let idle = match sharer {
                Sharer::Session(_) => settings.session_idle,
                Sharer::Everybody => settings.idle,
            };
            in_use || lock(&shared.last_used).elapsed() < idle
        });
        if self.last_used().elapsed() > Duration::from_secs(5) {
            let wanted = self.wanted.load(Ordering::Relaxed).div_ceil(2).max(settings.spares.min(1));
            self.wanted.store(wanted, Ordering::Relaxed);
            lock(&self.spares).truncate(wanted);
        }
        let Ok(planted) = self.planted.try_lock() else { return };
        let worn = planted.seed.as_ref().is_some_and(|seed| seed.alive() && seed.worn());
        drop(planted);
        if worn && !self.replanting.swap(true, Ordering::Relaxed) {
            let plot = self.clone();
            tokio::spawn(async move {
                match plot.plant(false).await {
                    // Spares of the old one are as good as ever; they go first, and it goes with the last of them.
                    Ok((seed, memory)) => {
                        plot.heed(&memory, Plot::give_up_seed);
                        let mut planted = plot.planted.lock().await;
                        (planted.seed, planted.memory) = (Some(seed), Some(memory));
                    }
                    // The next caller hears of it.
                    Err(failure) if failure.code == Code::SurfaceDrift => plot.planted.lock().await.seed = None,
                    Err(_) => {}
                }
                plot.replanting.store(false, Ordering::Relaxed);
            });
        }
    }
}

fn full() -> Failure {
    let why = "its servers and sessions hold all the memory it may have";
    Failure::new(Code::Busy, format!("this tenant is busy: {why}; try again later"))
}
