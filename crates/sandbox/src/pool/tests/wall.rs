//! A wall whose calls only take time.

use crate::{
    Answer, Code, Compartment, Deployment, Failure, Future, Growth, Host, HostCall, HostRefusal, HostReply, LogLine,
    Operation, Pool, PoolSettings, Program, Request, Seed, Usage, Wall,
};
use bytes::Bytes;
use policy::{Allowance, Ask, Boundary, permit};
use serde_json::value::RawValue;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// What the calls of a wall do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Computes for this long.
    Compute(Duration),
    /// Waits for a timer.
    Sleep(Duration),
    /// Waits for the host.
    Ask(Duration),
    /// Waits for a timer, then computes.
    SleepThenCompute(Duration, Duration),
    /// Computes, and is lost.
    Lose(Duration),
    /// Makes a connection before that.
    ConnectAndLose(Duration),
}

#[derive(Default)]
pub(super) struct Seen {
    /// Calls in a compartment, now and at most.
    pub(super) inside: AtomicUsize,
    pub(super) most_inside: AtomicUsize,
    /// Compartments that grow, now and at most.
    pub(super) growing: AtomicUsize,
    pub(super) most_growing: AtomicUsize,
    pub(super) stepped_back: AtomicUsize,
    pub(super) planting: AtomicUsize,
    pub(super) most_planting: AtomicUsize,
    pub(super) planted: AtomicUsize,
    /// Each took all compartments there were.
    pub(super) blows: AtomicUsize,
    /// Compartments that are there.
    pub(super) standing: AtomicUsize,
    /// Why those that are found ended were ended: not because they computed, but because they gave way.
    pub(super) gave_way: AtomicBool,
    /// Compartments that are to be found ended when they are next looked at.
    pub(super) to_end: AtomicUsize,
}

fn rise(now: &AtomicUsize, most: &AtomicUsize) {
    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
}

/// Lowers the count also when whoever holds it goes away.
struct Lowered<'a>(&'a AtomicUsize);

impl Drop for Lowered<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(super) struct Cardboard {
    pub(super) seen: Arc<Seen>,
    pub(super) plant: Duration,
    pub(super) grow: Duration,
    /// Whatever is planted is lost.
    pub(super) loses_seeds: bool,
    pub(super) memory_mb: Option<u64>,
    /// What each seed holds.
    pub(super) seed_mb: u64,
}

impl Cardboard {
    pub(super) fn new() -> Cardboard {
        let (plant, grow) = (Duration::ZERO, Duration::ZERO);
        Cardboard { seen: Arc::default(), plant, grow, loses_seeds: false, memory_mb: None, seed_mb: 0 }
    }

    pub(super) fn pool(self, settings: PoolSettings) -> (Arc<Pool>, Arc<Seen>) {
        let seen = self.seen.clone();
        (Arc::new(Pool::new(Arc::new(self), settings)), seen)
    }
}

impl Wall for Cardboard {
    fn name(&self) -> &'static str {
        "cardboard"
    }

    fn memory_mb(&self) -> Option<u64> {
        self.memory_mb
    }

    fn plant(&self, deployment: Arc<Deployment>) -> Future<'_, Result<Arc<dyn Seed>, Failure>> {
        Box::pin(async move {
            rise(&self.seen.planting, &self.seen.most_planting);
            let _lowered = Lowered(&self.seen.planting);
            tokio::time::sleep(self.plant).await;
            self.seen.planted.fetch_add(1, Ordering::SeqCst);
            if self.loses_seeds {
                return Err(Failure::new(Code::CompartmentLost, "lost"));
            }
            let Program::Module { source, .. } = &deployment.program else { panic!("the test's own") };
            let works: Vec<u64> = serde_json::from_slice(source).expect("the test's own");
            let time = |index: usize| Duration::from_micros(works[index]);
            let work = match works[0] {
                0 => Work::Compute(time(1)),
                1 => Work::Sleep(time(1)),
                2 => Work::Ask(time(1)),
                4 => Work::Lose(time(1)),
                5 => Work::ConnectAndLose(time(1)),
                _ => Work::SleepThenCompute(time(1), time(2)),
            };
            let surface = RawValue::from_string("{}".to_owned()).expect("JSON");
            let (seen, memory_mb) = (self.seen.clone(), self.seed_mb);
            Ok(Arc::new(Bed { work, grow: self.grow, seen, surface, memory_mb }) as Arc<dyn Seed>)
        })
    }
}

struct Bed {
    work: Work,
    grow: Duration,
    seen: Arc<Seen>,
    surface: Box<RawValue>,
    memory_mb: u64,
}

impl Seed for Bed {
    fn surface(&self) -> &RawValue {
        &self.surface
    }

    fn grow(&self, _growth: Growth) -> Future<'_, Result<Arc<dyn Compartment>, Failure>> {
        Box::pin(async move {
            rise(&self.seen.growing, &self.seen.most_growing);
            let _lowered = Lowered(&self.seen.growing);
            let (work, seen) = (self.work, self.seen.clone());
            let blows = seen.blows.load(Ordering::SeqCst);
            tokio::time::sleep(self.grow).await;
            seen.standing.fetch_add(1, Ordering::SeqCst);
            Ok(Arc::new(Carton { work, seen, blows, began: Mutex::default(), over: AtomicBool::new(false) })
                as Arc<dyn Compartment>)
        })
    }

    fn memory_mb(&self) -> u64 {
        self.memory_mb
    }

    fn alive(&self) -> bool {
        true
    }

    fn worn(&self) -> bool {
        false
    }
}

struct Carton {
    work: Work,
    seen: Arc<Seen>,
    /// How many there had been when it began to grow.
    blows: usize,
    began: Mutex<Option<Instant>>,
    over: AtomicBool,
}

impl Carton {
    fn stands(&self) -> bool {
        self.seen.blows.load(Ordering::SeqCst) == self.blows
    }
}

impl Drop for Carton {
    fn drop(&mut self) {
        self.seen.standing.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Compartment for Carton {
    fn call<'a>(
        &'a self,
        _request: &'a Request,
        host: Arc<dyn Host>,
        _within: Duration,
    ) -> Future<'a, (Result<Bytes, Failure>, Usage)> {
        Box::pin(async move {
            *self.began.lock().expect("no panic under it") = Some(Instant::now());
            rise(&self.seen.inside, &self.seen.most_inside);
            let _lowered = Lowered(&self.seen.inside);
            let mut usage = Usage::default();
            match self.work {
                Work::Compute(time) | Work::Sleep(time) => tokio::time::sleep(time).await,
                Work::Ask(time) => {
                    usage.host_calls = 1;
                    let meta = time.as_micros().to_string();
                    let call = HostCall { operation: "wait".to_owned(), meta, body: Bytes::new() };
                    host.call(call).await.expect("a patient host");
                }
                Work::SleepThenCompute(sleep, compute) => tokio::time::sleep(sleep + compute).await,
                Work::Lose(time) => tokio::time::sleep(time).await,
                Work::ConnectAndLose(time) => {
                    host.connection(Box::new(tokio::io::empty())).await;
                    tokio::time::sleep(time).await;
                }
            }
            usage.cpu_us = self.cpu_time().unwrap_or_default().as_micros() as u64;
            usage.log_bytes = 1;
            if matches!(self.work, Work::Lose(_) | Work::ConnectAndLose(_)) || !self.stands() {
                return (Err(Failure::new(Code::CompartmentLost, "lost")), usage);
            }
            (Ok(Bytes::from_static(b"1")), usage)
        })
    }

    fn alive(&self) -> bool {
        let one_less = |left: usize| left.checked_sub(1);
        if self.seen.to_end.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            self.over.store(true, Ordering::SeqCst);
        }
        self.stands() && !self.over.load(Ordering::SeqCst)
    }

    fn ended(&self) -> Option<Code> {
        let code = if self.seen.gave_way.load(Ordering::SeqCst) { Code::Busy } else { Code::CpuLimit };
        (!self.alive()).then_some(code)
    }

    fn cpu_time(&self) -> Option<Duration> {
        let elapsed = self.began.lock().expect("no panic under it").map(|began| began.elapsed()).unwrap_or_default();
        Some(match self.work {
            Work::Compute(_) | Work::Lose(_) | Work::ConnectAndLose(_) => elapsed,
            Work::Sleep(_) | Work::Ask(_) => Duration::ZERO,
            Work::SleepThenCompute(sleep, _) => elapsed.saturating_sub(sleep),
        })
    }

    fn step_back(&self) {
        self.seen.stepped_back.fetch_add(1, Ordering::SeqCst);
    }
}

/// A host that takes as long as it is told.
pub(super) struct Patient;

impl Host for Patient {
    fn call(&self, call: HostCall) -> Future<'_, Result<HostReply, HostRefusal>> {
        Box::pin(async move {
            let time = call.meta.parse().expect("the test's own");
            tokio::time::sleep(Duration::from_micros(time)).await;
            Ok(HostReply { meta: String::new(), body: Bytes::new() })
        })
    }

    fn log(&self, _line: LogLine) {}
}

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Settings in which only the turns are scarce.
pub(super) fn turns(all: usize, per_tenant: usize) -> PoolSettings {
    PoolSettings {
        running: 10_000,
        running_per_tenant: 10_000,
        running_per_deployment: 10_000,
        waiting: 10_000,
        waiting_per_tenant: 10_000,
        waiting_per_deployment: 10_000,
        patience: Duration::from_secs(3600),
        turns: all,
        turns_per_tenant: per_tenant,
        spares: 0,
        ..PoolSettings::default()
    }
}

pub(super) fn server(tenant: &str, work: Work) -> Arc<Deployment> {
    server_with(tenant, work, Boundary::Call)
}

pub(super) fn server_with(tenant: &str, work: Work, boundary: Boundary) -> Arc<Deployment> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let source = match work {
        Work::Compute(time) => vec![0, time.as_micros()],
        Work::Sleep(time) => vec![1, time.as_micros()],
        Work::Ask(time) => vec![2, time.as_micros()],
        Work::SleepThenCompute(sleep, compute) => vec![3, sleep.as_micros(), compute.as_micros()],
        Work::Lose(time) => vec![4, time.as_micros()],
        Work::ConnectAndLose(time) => vec![5, time.as_micros()],
    };
    let ask = Ask { boundary, ..Ask::default() };
    Arc::new(Deployment {
        tenant: tenant.to_owned(),
        server: "server".to_owned(),
        id: format!("cardboard-{}", NEXT.fetch_add(1, Ordering::Relaxed)),
        program: Program::Module {
            source: Bytes::from(serde_json::to_vec(&source).expect("numbers")),
            file_name: "server.js".to_owned(),
        },
        permit: permit(&ask, &Allowance::default()).expect("the defaults are allowed"),
        shows: crate::Shows::default(),
    })
}

pub(super) async fn call(pool: &Pool, server: &Arc<Deployment>) -> Answer {
    let request =
        Request { operation: Operation::Tool, name: "run".to_owned(), input: Bytes::from_static(b"{}"), session: None };
    pool.call(server, &request, Arc::new(Patient)).await
}

/// Callers that call again as soon as they are answered, until the test ends. Counts the calls that were served.
pub(super) fn flood(pool: &Arc<Pool>, server: &Arc<Deployment>, callers: usize) -> Arc<AtomicU64> {
    let served = Arc::new(AtomicU64::new(0));
    for _ in 0..callers {
        let (pool, server, served) = (pool.clone(), server.clone(), served.clone());
        tokio::spawn(async move {
            loop {
                if call(&pool, &server).await.outcome.is_ok() {
                    served.fetch_add(1, Ordering::SeqCst);
                } else {
                    tokio::time::sleep(ms(1)).await;
                }
            }
        });
    }
    served
}
