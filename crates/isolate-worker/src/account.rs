//! CPU time, call by call, for receipts; limits are the kernel's and the host's.
//!
//! A process for one call has its kernel timer armed once, before it is sealed, and cannot change it.
//! Of a process for many calls the host has the timer, and is told whatever call the next piece of work belongs to.

use isolate_wire::{Kind, Used};
use jail::process::{self, Memory};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
    /// Whether this process serves several calls.
    many: bool,
    open: HashSet<u32>,
    used: HashMap<u32, Duration>,
    /// The call that pays now, and the process's CPU time when it began to.
    paying: Option<(u32, Duration)>,
    /// The one that pays as far as the host knows.
    told: u32,
    base: process::Used,
    /// A load has an account of its own, whatever its code does.
    loading: bool,
    rehearsal: bool,
}

impl Accounts {
    /// Starts counting CPU time from what this process has used so far, and memory from `fresh` if that is given.
    pub fn open_one(fresh: Option<Memory>) -> Accounts {
        let used = process::Used::of_self();
        let base = process::Used { memory: fresh.unwrap_or(used.memory), ..used };
        Accounts { base, ..Accounts::default() }
    }

    /// Counts nothing: resource usage is asked for in sealed processes only.
    pub fn open_rehearsal() -> Accounts {
        Accounts { rehearsal: true, ..Accounts::default() }
    }

    pub fn open_many() -> Accounts {
        Accounts { many: true, ..Accounts::open_one(None) }
    }

    /// From here on `call` pays; 0 is for what belongs to none in flight.
    pub fn switch_to(&mut self, call: u32) {
        if !self.many || self.loading {
            return;
        }
        let call = if self.open.contains(&call) { call } else { 0 };
        if self.paying.is_some_and(|(payer, _)| payer == call) {
            return;
        }
        self.stop();
        self.paying = Some((call, process::cpu_used()));
        // With none in flight the host expects nothing and knows that nobody pays.
        if call != self.told && !self.open.is_empty() {
            self.tell(call);
        }
    }

    /// A load begins.
    pub fn begin_load(&mut self) {
        self.loading = true;
        self.tell(isolate_wire::LOAD);
    }

    pub fn end_load(&mut self) {
        self.loading = false;
    }

    fn tell(&mut self, payer: u32) {
        self.told = payer;
        if crate::channel::send(Kind::Running, payer, b"", b"").is_err() {
            isolate_engine::exit_now(0);
        }
    }

    /// Nobody's code runs any more.
    pub fn stop(&mut self) {
        if let Some((payer, since)) = self.paying.take() {
            *self.used.entry(payer).or_default() += process::cpu_used().saturating_sub(since);
        }
    }

    pub fn open(&mut self, call: u32) {
        if self.many {
            // The host knows of a call that begins while no other is in flight.
            if self.open.is_empty() {
                self.told = call;
            }
            self.open.insert(call);
        }
    }

    /// What the call used up to now.
    pub fn close(&mut self, call: u32) -> Used {
        if self.rehearsal {
            return Used { cpu_us: 0, memory_kb: 0 };
        }
        let now = process::Used::of_self();
        let cpu = if self.many {
            let running = match self.paying {
                Some((payer, since)) if payer == call => now.cpu.saturating_sub(since),
                _ => Duration::ZERO,
            };
            self.open.remove(&call);
            self.used.remove(&call).unwrap_or_default() + running
        } else {
            now.cpu.saturating_sub(self.base.cpu)
        };
        Used {
            cpu_us: u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX),
            memory_kb: memory_since(now.memory, self.base.memory),
        }
    }
}
