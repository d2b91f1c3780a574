//! A wall that passes everything on, results as plain values, and keeps count.

use crate::{Compartment, Deployment, Failure, Future, Growth, Host, Request, Seed, Usage, Wall};
use bytes::Bytes;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(super) struct Watched {
    wall: Arc<dyn Wall>,
    counts: Arc<Counts>,
}

/// What a tool gave, from the wall's answer.
type Value = fn(&[u8]) -> String;

struct Counts {
    value: Value,
    plants: AtomicUsize,
    calls: AtomicUsize,
    seeds: AtomicUsize,
    compartments: AtomicUsize,
    /// Seeds of an earlier generation say that they are dead.
    generation: AtomicUsize,
}

impl Watched {
    pub(super) fn new(wall: Arc<dyn Wall>, value: Value) -> Watched {
        let [plants, calls, seeds, compartments, generation] = [(); 5].map(|()| AtomicUsize::new(0));
        Watched { wall, counts: Arc::new(Counts { value, plants, calls, seeds, compartments, generation }) }
    }

    /// How often something was planted, or tried to be.
    pub(super) fn plants(&self) -> usize {
        self.counts.plants.load(Ordering::SeqCst)
    }

    /// How many calls came this far.
    pub(super) fn calls(&self) -> usize {
        self.counts.calls.load(Ordering::SeqCst)
    }

    /// How many seeds and compartments somebody still holds.
    pub(super) fn held(&self) -> (usize, usize) {
        (self.counts.seeds.load(Ordering::SeqCst), self.counts.compartments.load(Ordering::SeqCst))
    }

    /// From now on every seed there is says that it is dead.
    pub(super) fn condemn(&self) {
        self.counts.generation.fetch_add(1, Ordering::SeqCst);
    }
}

impl Wall for Watched {
    fn name(&self) -> &'static str {
        self.wall.name()
    }

    fn plant(&self, deployment: Arc<Deployment>) -> Future<'_, Result<Arc<dyn Seed>, Failure>> {
        Box::pin(async move {
            self.counts.plants.fetch_add(1, Ordering::SeqCst);
            let generation = self.counts.generation.load(Ordering::SeqCst);
            let seed = self.wall.plant(deployment).await?;
            self.counts.seeds.fetch_add(1, Ordering::SeqCst);
            Ok(Arc::new(WatchedSeed { seed, generation, counts: self.counts.clone() }) as Arc<dyn Seed>)
        })
    }
}

struct WatchedSeed {
    seed: Arc<dyn Seed>,
    generation: usize,
    counts: Arc<Counts>,
}

impl Seed for WatchedSeed {
    fn surface(&self) -> &RawValue {
        self.seed.surface()
    }

    fn grow(&self, growth: Growth) -> Future<'_, Result<Arc<dyn Compartment>, Failure>> {
        Box::pin(async move {
            let compartment = self.seed.grow(growth).await?;
            self.counts.compartments.fetch_add(1, Ordering::SeqCst);
            Ok(Arc::new(WatchedCompartment { compartment, counts: self.counts.clone() }) as Arc<dyn Compartment>)
        })
    }

    fn alive(&self) -> bool {
        self.generation == self.counts.generation.load(Ordering::SeqCst) && self.seed.alive()
    }

    fn worn(&self) -> bool {
        self.seed.worn()
    }
}

impl Drop for WatchedSeed {
    fn drop(&mut self) {
        self.counts.seeds.fetch_sub(1, Ordering::SeqCst);
    }
}

struct WatchedCompartment {
    compartment: Arc<dyn Compartment>,
    counts: Arc<Counts>,
}

impl Compartment for WatchedCompartment {
    fn call<'a>(
        &'a self,
        request: &'a Request,
        host: Arc<dyn Host>,
        within: Duration,
    ) -> Future<'a, (Result<Bytes, Failure>, Usage)> {
        self.counts.calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            let (outcome, usage) = self.compartment.call(request, host, within).await;
            (outcome.map(|bytes| (self.counts.value)(&bytes).into()), usage)
        })
    }

    fn alive(&self) -> bool {
        self.compartment.alive()
    }

    fn cpu_time(&self) -> Option<Duration> {
        self.compartment.cpu_time()
    }

    fn step_back(&self) {
        self.compartment.step_back();
    }
}

impl Drop for WatchedCompartment {
    fn drop(&mut self) {
        self.counts.compartments.fetch_sub(1, Ordering::SeqCst);
    }
}
