//! Time, CPU time and memory of a program, and what happens when there is too much of one.

use super::{Driver, Measured, Used, speech};
use crate::verdict::Cause;
use sandbox::Code;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use tokio::time::Instant;

/// How often a program is looked at: while a call is in flight, and while none is.
const BUSY_PERIOD: Duration = Duration::from_millis(20);
const IDLE_PERIOD: Duration = Duration::from_millis(1000);

/// The looks are far between, and a call should not end for what the program did beside it.
const LENIENCE: Duration = Duration::from_millis(10);

/// Of the time in which nobody calls it, the part of a core that a program may use for itself, in percent.
const IDLE_PERCENT: u32 = 10;

/// CPU time beyond that which goes unpunished: what a server does after its answer.
const IDLE_LENIENCE: Duration = Duration::from_secs(1);

/// Between two looks there is at least so many times what a look takes: a program that makes it expensive does not have the
/// host look all the time.
const REST: u32 = 10;

/// Looks without a reading, one after the other, after which a program is ended. Each has waited for seconds.
const MOST_LATE: u32 = 5;

/// Between three quarters and five quarters of it, so that nothing in there can know when it is looked at.
fn varied(period: Duration) -> Duration {
    let part = RandomState::new().hash_one(()) % 512;
    period * 3 / 4 + period * u32::try_from(part).unwrap_or(0) / 1024
}

pub(super) struct Clock {
    look_at: Instant,
    /// CPU time at the last look.
    cpu: Duration,
    /// Resident memory at the last look.
    pub(super) memory: u64,
    /// It held more than it may.
    excess: bool,
    /// How long the last reading took, and how many looks were without one since.
    took: Duration,
    late: u32,
    /// CPU time since it was last idle, and what the calls since then may use.
    spent: Duration,
    allowed: Duration,
    /// The same for the time without calls.
    resting: Instant,
    rested: Duration,
}

impl Clock {
    pub(super) fn new() -> Clock {
        let now = Instant::now();
        let zero = Duration::ZERO;
        Clock {
            look_at: now,
            cpu: zero,
            memory: 0,
            excess: false,
            took: zero,
            late: 0,
            spent: zero,
            allowed: zero,
            resting: now,
            rested: zero,
        }
    }

    pub(super) fn excess(&self) -> bool {
        self.excess
    }

    pub(super) fn due(&self) -> bool {
        self.look_at <= Instant::now()
    }

    pub(super) fn next(&self) -> Instant {
        self.look_at
    }

    pub(super) fn begin(&mut self, cpu: Duration, deadline: Instant, first: bool) {
        if first {
            (self.spent, self.allowed) = (Duration::ZERO, LENIENCE);
        }
        self.allowed += cpu;
        self.look_at = self.look_at.min(deadline).min(Instant::now() + BUSY_PERIOD);
    }

    /// The last call is over.
    pub(super) fn rest(&mut self) {
        (self.resting, self.rested) = (Instant::now(), Duration::ZERO);
    }

    /// Takes a reading, and gives the CPU time since the one before.
    fn read(&mut self, used: Used) -> Duration {
        let spent = used.cpu.saturating_sub(self.cpu);
        (self.cpu, self.memory) = (self.cpu.max(used.cpu), used.memory);
        spent
    }
}

impl Driver {
    /// Reads the program's clock and counts what it used since the last time: for whoever was in flight, in equal parts.
    pub(super) async fn read_cpu(&mut self) {
        let used = match self.process.measure().await {
            Measured::Used { used, took, exceeds } => {
                (self.clock.took, self.clock.excess, self.clock.late) = (took, exceeds, 0);
                used
            }
            Measured::Late => {
                self.clock.late += 1;
                return;
            }
            // One that is gone has no clock; its pipe tells.
            Measured::Gone => return,
        };
        let spent = self.clock.read(used);
        let Some(count) = u32::try_from(self.calls.len()).ok().filter(|count| *count > 0) else {
            self.clock.rested += spent;
            return;
        };
        self.clock.spent += spent;
        let share = spent / count;
        for call in self.calls.values_mut() {
            call.cpu += share;
            let grown = used.memory.saturating_sub(call.memory_before) / 1024;
            call.usage.memory_kb = call.usage.memory_kb.max(grown);
        }
    }

    /// Looks at the program, and ends it if it uses too much.
    pub(super) async fn look(&mut self) -> Result<(), Cause> {
        self.read_cpu().await;
        let now = Instant::now();
        let period = if self.calls.is_empty() { IDLE_PERIOD } else { BUSY_PERIOD };
        let period = varied(period).max(self.clock.took * REST);
        let deadline = self.calls.values().map(|call| call.deadline).min();
        self.clock.look_at = deadline.map_or(now + period, |deadline| deadline.min(now + period));
        if self.clock.excess {
            return Err(Cause::Limit(Code::MemoryLimit));
        }
        if self.clock.late >= MOST_LATE {
            return Err(Cause::Violation("what it uses cannot be measured".to_owned()));
        }
        if self.calls.is_empty() {
            self.idle_left = (self.idle_left + speech::IDLE_REFILL).min(speech::IDLE_BYTES);
            let earned = (now - self.clock.resting) * IDLE_PERCENT / 100;
            return if self.clock.rested > earned + IDLE_LENIENCE { Err(Cause::Restless) } else { Ok(()) };
        }
        if self.clock.spent > self.clock.allowed {
            return Err(Cause::Limit(Code::CpuLimit));
        }
        if self.calls.values().any(|call| call.deadline <= now) {
            return Err(Cause::Limit(Code::TimeLimit));
        }
        Ok(())
    }

    /// Which call a program ended for; none when it was all of them. The others are told that they lost it.
    ///
    /// Which of several does what cannot be seen from outside. It is most likely whoever came last: the others have
    /// been in there without harm.
    pub(super) fn blamed(&self, cause: &Cause) -> Option<u64> {
        match cause {
            Cause::Limit(Code::TimeLimit) => {
                self.calls.iter().min_by_key(|(_, call)| call.deadline).map(|(number, _)| *number)
            }
            Cause::Closed | Cause::Limit(_) | Cause::Violation(_) => self.calls.keys().next_back().copied(),
            Cause::Spoke { call, .. } => Some(*call),
            Cause::Unwanted | Cause::GaveWay | Cause::Restless | Cause::Drift(_) => None,
        }
    }
}
