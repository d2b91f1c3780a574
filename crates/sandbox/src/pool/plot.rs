//! One deployment's seed and the compartments grown from it.

use super::gate::Gate;
use super::{PoolSettings, lock};
use crate::{Code, Compartment, Deployment, Failure, Growth, Request, Seed, Wall};
use policy::Boundary;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(super) struct Plot {
    deployment: Arc<Deployment>,
    settings: PoolSettings,
    pub(super) gate: Gate,
    last_used: Mutex<Instant>,
    /// Held while planting, so that many first callers plant once.
    planted: tokio::sync::Mutex<Planted>,
    /// Oldest first: the one that has waited longest is the most ready.
    spares: Mutex<VecDeque<Arc<dyn Compartment>>>,
    /// How many spares are wanted now: rises when a caller finds none, falls when nobody calls.
    wanted: AtomicUsize,
    growing: AtomicUsize,
    shared: Mutex<HashMap<Sharer, Arc<Shared>>>,
}

#[derive(Default)]
struct Planted {
    seed: Option<Arc<dyn Seed>>,
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
    compartment: tokio::sync::Mutex<Option<Arc<dyn Compartment>>>,
    last_used: Mutex<Instant>,
}

impl Plot {
    pub(super) fn new(deployment: Arc<Deployment>, settings: PoolSettings) -> Plot {
        Plot {
            deployment,
            gate: Gate::new(settings.running_per_deployment, settings.waiting_per_deployment),
            last_used: Mutex::new(Instant::now()),
            planted: tokio::sync::Mutex::default(),
            spares: Mutex::default(),
            wanted: AtomicUsize::new(settings.spares.min(2)),
            growing: AtomicUsize::new(0),
            shared: Mutex::default(),
            settings,
        }
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

    /// The compartment for this request.
    pub(super) async fn take(
        self: &Arc<Plot>,
        wall: &dyn Wall,
        request: &Request,
    ) -> Result<Arc<dyn Compartment>, Failure> {
        match (self.deployment.permit.boundary(), &request.session) {
            (Boundary::Call, _) | (Boundary::Session, None) => self.take_spare(wall).await,
            (Boundary::Session, Some(session)) => self.join(wall, Sharer::Session(session.clone())).await,
            (Boundary::Server | Boundary::Tenant, _) => self.join(wall, Sharer::Everybody).await,
        }
    }

    async fn take_spare(self: &Arc<Plot>, wall: &dyn Wall) -> Result<Arc<dyn Compartment>, Failure> {
        // Asked first, because spares die with their seed.
        let seed = self.seed(wall).await?;
        let spare = lock(&self.spares).pop_front();
        if let Some(spare) = spare {
            return Ok(spare);
        }
        let wanted = self.wanted.load(Ordering::Relaxed);
        self.wanted.store((wanted * 2).min(self.settings.spares), Ordering::Relaxed);
        seed.grow(Growth::OneCall).await
    }

    async fn join(&self, wall: &dyn Wall, sharer: Sharer) -> Result<Arc<dyn Compartment>, Failure> {
        let shared = {
            let mut all = lock(&self.shared);
            if !all.contains_key(&sharer) && all.len() >= self.settings.sessions {
                return Err(Failure::new(Code::Busy, "this server has too many sessions; try again later"));
            }
            let fresh = || Arc::new(Shared { compartment: Default::default(), last_used: Mutex::new(Instant::now()) });
            all.entry(sharer).or_insert_with(fresh).clone()
        };
        *lock(&shared.last_used) = Instant::now();
        let mut held = shared.compartment.lock().await;
        match &*held {
            Some(compartment) if compartment.alive() => Ok(compartment.clone()),
            _ => {
                let compartment = self.seed(wall).await?.grow(Growth::ManyCalls).await?;
                *held = Some(compartment.clone());
                Ok(compartment)
            }
        }
    }

    /// What took one compartment may have taken all that waited beside it, and a caller must not try them one by one.
    pub(super) fn doubt_spares(&self) {
        lock(&self.spares).clear();
    }

    /// After a call: the used compartment goes, and spares are grown for the next callers, off the path of this one.
    pub(super) fn give_back(self: &Arc<Plot>, used: Arc<dyn Compartment>) {
        drop(used);
        if self.deployment.permit.boundary() != Boundary::Call {
            return;
        }
        let missing = self.wanted.load(Ordering::Relaxed).saturating_sub(lock(&self.spares).len());
        if self.growing.load(Ordering::Relaxed) >= missing {
            return;
        }
        self.growing.fetch_add(1, Ordering::Relaxed);
        let plot = self.clone();
        tokio::spawn(async move {
            let seed = plot.planted.lock().await.seed.clone();
            if let Some(seed) = seed {
                while lock(&plot.spares).len() < plot.wanted.load(Ordering::Relaxed) {
                    // The next caller grows its own and hears the reason if it is still there.
                    let Ok(spare) = seed.grow(Growth::OneCall).await else { break };
                    plot.keep(spare);
                }
            }
            plot.growing.fetch_sub(1, Ordering::Relaxed);
        });
    }

    /// Keeps a spare unless others who grew meanwhile were enough.
    fn keep(&self, spare: Arc<dyn Compartment>) {
        let mut spares = lock(&self.spares);
        if spares.len() < self.wanted.load(Ordering::Relaxed) {
            spares.push_back(spare);
        }
    }

    /// The living seed, planted if need be.
    pub(super) async fn seed(&self, wall: &dyn Wall) -> Result<Arc<dyn Seed>, Failure> {
        let mut planted = self.planted.lock().await;
        if let Some(seed) = &planted.seed
            && seed.alive()
        {
            return Ok(seed.clone());
        }
        if let Some(trouble) = &planted.trouble
            && Instant::now() < trouble.retry_at
        {
            return Err(trouble.failure.clone());
        }
        lock(&self.spares).clear();
        match wall.plant(self.deployment.clone()).await {
            Ok(seed) => {
                *planted = Planted { seed: Some(seed.clone()), trouble: None };
                Ok(seed)
            }
            Err(failure) => {
                let times = planted.trouble.as_ref().map_or(0, |t| t.times) + 1;
                let pause = Duration::from_millis(250 << times.min(8));
                let own_fault = matches!(failure.code, Code::InitFailed | Code::InitLimit);
                planted.trouble =
                    own_fault.then(|| Trouble { failure: failure.clone(), times, retry_at: Instant::now() + pause });
                planted.seed = None;
                Err(failure)
            }
        }
    }

    /// Lets go what is not used and plants a worn seed anew, beside the old one until it is ready.
    pub(super) async fn sweep(&self, wall: &Arc<dyn Wall>) {
        lock(&self.shared).retain(|sharer, shared| {
            let idle = match sharer {
                Sharer::Session(_) => self.settings.session_idle,
                Sharer::Everybody => self.settings.idle,
            };
            Arc::strong_count(shared) > 1 || lock(&shared.last_used).elapsed() < idle
        });
        if self.last_used().elapsed() > Duration::from_secs(5) {
            let wanted = self.wanted.load(Ordering::Relaxed).div_ceil(2).max(self.settings.spares.min(1));
            self.wanted.store(wanted, Ordering::Relaxed);
            lock(&self.spares).truncate(wanted);
        }
        let Ok(planted) = self.planted.try_lock() else { return };
        let worn = planted.seed.as_ref().is_some_and(|seed| seed.alive() && seed.worn());
        drop(planted);
        if worn && let Ok(seed) = wall.plant(self.deployment.clone()).await {
            // Spares of the old one are as good as ever; they go first, and it goes with the last of them.
            self.planted.lock().await.seed = Some(seed);
        }
    }
}
