//! CPU time, call by call.
//!
//! A process for one call has its kernel timer armed once, before it is sealed, and cannot change it.
//! A process for many calls arms the timer anew for whatever call its next piece of work belongs to.

use isolate_wire::{Kind, Used};
use jail::process::{self, Memory};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// When the kernel ends a process that may use `budget`: a little later, because the kernel counts in ticks and may
/// count some too many. Nothing is killed for less than it was promised.
pub fn with_grace(budget: Duration) -> Duration {
    budget + (budget / 5).clamp(Duration::from_millis(5), Duration::from_millis(100))
}

/// Whether memory is counted by what is touched: see [`memory_since`]. Set once, before anything is forked.
pub static BY_TOUCH: AtomicBool = AtomicBool::new(false);

pub fn by_touch() -> bool {
    BY_TOUCH.load(Ordering::Relaxed)
}

/// KiB that a process has taken since it had `before`.
pub fn memory_since(now: Memory, before: Memory) -> u64 {
    if by_touch() { now.touched_since(before) } else { now.resident_since(before) }
}

#[derive(Default)]
pub struct Accounts {
    /// Whether this process arms its own timer. One for a single call has it running already.
    arms: bool,
    /// What is left to each call in flight, and under 0 to what finished ones left behind.
    left: HashMap<u32, Duration>,
    used: HashMap<u32, Duration>,
    /// The call that pays now, and the process's CPU time when it began to.
    paying: Option<(u32, Duration)>,
    base_cpu: Duration,
    base_memory: Memory,
    rehearsal: bool,
}

impl Accounts {
    /// Starts counting CPU time from what this process has used so far, and memory from `before`.
    pub fn open_one(before: Memory) -> Accounts {
        Accounts { base_cpu: process::cpu_used(), base_memory: before, ..Accounts::default() }
    }

    /// Counts nothing: resource usage is asked for in sealed processes only.
    pub fn open_rehearsal() -> Accounts {
        Accounts { rehearsal: true, ..Accounts::default() }
    }

    pub fn open_many() -> Accounts {
        Accounts { arms: true, ..Accounts::open_one(Memory::of_self()) }
    }

    /// From here on `call` pays; 0 is for what belongs to none in flight.
    pub fn switch_to(&mut self, call: u32) {
        if !self.arms {
            return;
        }
        let call = if self.left.contains_key(&call) { call } else { 0 };
        if self.paying.is_some_and(|(payer, _)| payer == call) {
            return;
        }
        self.stop();
        let left = self.left.get(&call).copied().unwrap_or_default();
        self.paying = Some((call, process::cpu_used()));
        // With one call in flight the host knows whose it is.
        if self.left.len() > 2 {
            let told = crate::channel::send(Kind::Running, call, b"", b"");
            if told.is_err() {
                isolate_engine::exit_now(0);
            }
        }
        arm(Some(with_grace(left)));
    }

    /// Nobody's code runs any more.
    pub fn stop(&mut self) {
        if let Some((payer, since)) = self.paying.take() {
            let spent = process::cpu_used().saturating_sub(since);
            *self.used.entry(payer).or_default() += spent;
            if let Some(left) = self.left.get_mut(&payer) {
                *left = left.saturating_sub(spent);
            }
            arm(None);
        }
    }

    pub fn open(&mut self, call: u32, budget: Duration) {
        self.left.insert(call, budget);
        // Renewed with each call.
        self.left.insert(0, budget);
    }

    /// What the call used up to now.
    pub fn close(&mut self, call: u32) -> Used {
        if self.rehearsal {
            return Used { cpu_us: 0, memory_kb: 0 };
        }
        let now = process::cpu_used();
        let cpu = if self.arms {
            let running = match self.paying {
                Some((payer, since)) if payer == call => now.saturating_sub(since),
                _ => Duration::ZERO,
            };
            self.left.remove(&call);
            self.used.remove(&call).unwrap_or_default() + running
        } else {
            now.saturating_sub(self.base_cpu)
        };
        Used {
            cpu_us: u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX),
            memory_kb: memory_since(Memory::of_self(), self.base_memory),
        }
    }
}

/// A timer that cannot be armed is a limit that cannot be enforced.
fn arm(after: Option<Duration>) {
    if process::arm_cpu_timer(after).is_err() {
        isolate_engine::exit_now(isolate_engine::exit::ABORTED);
    }
}
