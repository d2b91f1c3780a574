//! What a tree uses, for whoever has to look at it again and again.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::sockets;
use super::tally::Tally;
use super::usage::{self, Usage};
use crate::cgroup::Clock;

/// Beyond so many times its bound a tree is not looked at closely any more: what its processes share does not explain it.
const MULTIPLE: u64 = 8;

/// A close look may take so long for all processes together. A tree that makes it last longer holds too much.
const CLOSE_LOOK: Duration = Duration::from_millis(250);

/// After a close look there is none for so many times as long as it took, unless the tree has grown by this part of its bound.
const REST: u32 = 20;
const GROWN: u64 = 8;

/// Reads what a tree uses. Reading is work, grows with the number of processes, and a program can make a close look last
/// for seconds: this belongs on a thread that nothing else waits for.
#[derive(Debug, Clone)]
pub struct Meter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The `/proc` of the pid namespace.
    processes: OwnedFd,
    /// Tells of the sockets in the network of the tree. None where a control group counts.
    sockets: Option<OwnedFd>,
    clock: Option<Clock>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    tally: Tally,
    last: Option<CloseLook>,
}

/// A close look that found no excess.
#[derive(Debug, Clone, Copy)]
struct CloseLook {
    at: Instant,
    took: Duration,
    /// What the tree seemed to hold then.
    memory_bytes: u64,
}

impl Meter {
    pub(super) fn new(processes: OwnedFd, sockets: Option<OwnedFd>, clock: Option<Clock>) -> Meter {
        Meter(Arc::new(Inner { processes, sockets, clock, state: Mutex::default() }))
    }

    pub(super) fn processes(&self) -> &OwnedFd {
        &self.0.processes
    }

    /// What the tree uses now; none when it has ended. Waits for no lock of the tree's.
    pub fn read(&self) -> Option<Usage> {
        let of_group = self.0.clock.as_ref().and_then(Clock::read);
        let (mut sum, readings) = usage::of_all(&self.0.processes, of_group.is_none())?;
        let sockets = self.0.sockets.as_ref().map_or(0, sockets::memory);
        sum.memory_bytes += sockets;
        sum.least_bytes += sockets;
        sum.cpu = match of_group {
            Some(cpu) => cpu,
            None => self.state().tally.count(Instant::now(), readings),
        };
        Some(sum)
    }

    /// Its memory with what several processes share counted once. The kernel walks through all of it, and waits for whoever
    /// changes it at that moment. None when that takes too long.
    pub fn proportional(&self) -> Option<u64> {
        let sockets = self.0.sockets.as_ref().map_or(0, sockets::memory);
        Some(usage::proportional(&self.0.processes, Instant::now() + CLOSE_LOOK)? + sockets)
    }

    /// Whether a tree that was just read holds more than it may. Looks closely where what is shared decides.
    pub fn exceeds(&self, usage: &Usage, most: u64) -> bool {
        if usage.memory_bytes <= most {
            return false;
        }
        if usage.least_bytes > most || usage.memory_bytes > most.saturating_mul(MULTIPLE) {
            return true;
        }
        let last = self.state().last;
        if last.is_some_and(|last| last.still_holds(usage.memory_bytes, most)) {
            return false;
        }
        let began = Instant::now();
        let excess = self.proportional().is_none_or(|bytes| bytes > most);
        let look = CloseLook { at: Instant::now(), took: began.elapsed(), memory_bytes: usage.memory_bytes };
        self.state().last = (!excess).then_some(look);
        excess
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CloseLook {
    fn still_holds(&self, memory_bytes: u64, most: u64) -> bool {
        self.at.elapsed() < self.took * REST && memory_bytes < self.memory_bytes.saturating_add(most / GROWN)
    }
}
