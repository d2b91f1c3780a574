//! What one tenant or one key has used.

use super::bucket::{Bucket, Flow};
use super::limits::Limits;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Nobody can tell when a running call ends.
const WAIT_FOR_A_PLACE: Duration = Duration::from_secs(1);

/// Bytes of arguments and results that a tenant may have recorded in a minute: the log is everybody's disk.
const RECORDED_PER_MINUTE: f64 = (16 << 20) as f64;

/// Bytes of the audit log that the lines of a tenant's calls may take in a minute: what 200 plain calls a second take, twice.
const AUDITED_PER_MINUTE: f64 = (16 << 20) as f64;

/// One lock for all of it, held for some arithmetic: what is checked together is taken together, and nothing is taken
/// from anybody for a request that is refused.
pub(super) struct Account(Mutex<State>);

/// The quota that is used up, and how long that lasts.
pub(super) type TooMuch = (&'static str, Duration);

pub(super) struct State {
    requests: Bucket,
    cpu: Bucket,
    egress: Bucket,
    recorded: Bucket,
    audited: Bucket,
    running: u32,
}

impl Account {
    pub fn new(now: Instant) -> Account {
        let full = || Bucket::new(now);
        let (requests, cpu, egress, recorded, audited) = (full(), full(), full(), full(), full());
        Account(Mutex::new(State { requests, cpu, egress, recorded, audited, running: 0 }))
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Why one more call is too much, and how long that lasts.
    pub fn check_place(&mut self, limits: &Limits, now: Instant) -> Result<(), TooMuch> {
        if limits.concurrent.is_some_and(|most| self.running >= most) {
            return Err(("concurrent", WAIT_FOR_A_PLACE));
        }
        refill(&mut self.cpu, limits.cpu, now);
        refill(&mut self.egress, limits.egress, now);
        self.cpu.wait_for_any().map_or(Ok(()), refuse("cpu_s_per_min"))?;
        self.egress.wait_for_any().map_or(Ok(()), refuse("egress_bytes_per_min"))?;
        self.audited.refill(Flow::per_minute(AUDITED_PER_MINUTE), now);
        self.audited.wait_for_any().map_or(Ok(()), refuse("audit_bytes_per_min"))
    }

    /// The same for one more message, whatever it is.
    pub fn check_rate(&mut self, limits: &Limits, now: Instant) -> Result<(), TooMuch> {
        refill(&mut self.requests, limits.requests, now);
        self.requests.wait_for(1.0).map_or(Ok(()), refuse("requests_per_s"))
    }

    /// Only after [`State::check_place`], under the same lock.
    pub fn enter(&mut self) {
        self.running += 1;
    }

    /// Only after [`State::check_rate`], under the same lock.
    pub fn hear(&mut self) {
        self.requests.take(1.0);
    }

    pub fn leave(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    pub fn spend(&mut self, cpu_us: u64, now: Instant) {
        self.cpu.spend(cpu_us as f64, now);
    }

    /// Whether there was so much.
    pub fn spend_egress(&mut self, bytes: u64, now: Instant) -> bool {
        self.egress.spend(bytes as f64, now);
        self.egress.wait_for(0.0).is_none()
    }

    /// Whether there is room for so much in the log; then it is taken.
    pub fn record(&mut self, bytes: u64, now: Instant) -> bool {
        self.recorded.refill(Flow::per_minute(RECORDED_PER_MINUTE), now);
        let room = self.recorded.wait_for(bytes as f64).is_none();
        if room {
            self.recorded.take(bytes as f64);
        }
        room
    }

    /// What a line of the audit log took. It is written whatever it takes; the next calls wait for it.
    pub fn audit(&mut self, bytes: u64, now: Instant) {
        self.audited.spend(bytes as f64, now);
    }

    /// Whether a new account would be no different.
    pub fn is_idle(&mut self, now: Instant) -> bool {
        let buckets = [&mut self.requests, &mut self.cpu, &mut self.egress, &mut self.recorded, &mut self.audited];
        self.running == 0 && buckets.into_iter().all(|bucket| bucket.is_full(now))
    }
}

fn refill(bucket: &mut Bucket, flow: Option<Flow>, now: Instant) {
    match flow {
        Some(flow) => bucket.refill(flow, now),
        // What is used while there is no limit does not count once there is one again.
        None => *bucket = Bucket::new(now),
    }
}

fn refuse(what: &'static str) -> impl FnOnce(Duration) -> Result<(), TooMuch> {
    move |wait| Err((what, wait))
}
