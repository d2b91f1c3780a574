//! Bounds that the kernel does not hold on this machine: a thread looks, and says when it is too much.
//!
//! The server can make a look last as long as it likes, so nothing but the thread waits for it. A look that lasts too long
//! is a reason to end the server.

use crate::options::Limits;
use jail::program::{Held, Holder, Meter, Usage};
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

const PERIOD: Duration = Duration::from_millis(100);
/// For so long more CPU is used than allowed, until it counts.
const WINDOW: Duration = Duration::from_secs(30);
/// Measuring is not exact: a quarter more is let pass.
const TOLERANCE: f64 = 1.25;

/// A look that lasts longer is the server's doing.
const LONGEST_LOOK: Duration = Duration::from_secs(5);
/// Between two looks there is at least so many times what a look takes.
const REST: u32 = 10;

/// A thread that looks at a server.
pub(crate) struct Watcher {
    reasons: mpsc::Receiver<String>,
    /// When the look that goes on now began.
    looking: Arc<Mutex<Option<Instant>>>,
    given: bool,
    _wanted: Option<std::sync::mpsc::Sender<()>>,
}

impl Watcher {
    /// Looks until this is dropped, if anything has to be looked at.
    pub(crate) fn start(mut watch: Watch, meter: Option<&Meter>) -> io::Result<Watcher> {
        let (tell, reasons) = mpsc::channel(1);
        let (wanted, dropped) = std::sync::mpsc::channel::<()>();
        let looking = Arc::new(Mutex::new(None));
        let Some(meter) = meter.filter(|_| watch.needed()).cloned() else {
            return Ok(Watcher { reasons, looking, given: false, _wanted: None });
        };
        let began = looking.clone();
        let set = move |at| *began.lock().unwrap_or_else(PoisonError::into_inner) = at;
        std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
            let mut pause = PERIOD;
            while let Err(std::sync::mpsc::RecvTimeoutError::Timeout) = dropped.recv_timeout(pause) {
                let now = Instant::now();
                set(Some(now));
                let reason = watch.look(&meter);
                set(None);
                pause = varied().max(now.elapsed() * REST);
                if let Some(reason) = reason {
                    // Whoever does not listen any more has ended it.
                    let _ = tell.blocking_send(reason);
                    return;
                }
            }
        })?;
        Ok(Watcher { reasons, looking, given: false, _wanted: Some(wanted) })
    }

    /// Why the server has to be killed, when it has to. Told once.
    pub(crate) async fn reason(&mut self) -> String {
        while !self.given {
            match tokio::time::timeout(LONGEST_LOOK / 4, self.reasons.recv()).await {
                Ok(Some(reason)) => return reason,
                // It was given, or there is nothing to look at.
                Ok(None) => break,
                Err(_) => {}
            }
            let looking = *self.looking.lock().unwrap_or_else(PoisonError::into_inner);
            if looking.is_some_and(|began| began.elapsed() > LONGEST_LOOK) {
                self.given = true;
                return "what the server uses cannot be measured".to_owned();
            }
        }
        std::future::pending().await
    }
}

/// Between three quarters and five quarters of the period, so that a server cannot know when it is looked at.
fn varied() -> Duration {
    let part = RandomState::new().hash_one(()) % 512;
    PERIOD * 3 / 4 + PERIOD * u32::try_from(part).unwrap_or(0) / 1024
}

pub(crate) struct Watch {
    limits: Limits,
    memory: bool,
    cpu: bool,
    /// When, and how much CPU had been used by then.
    seen: VecDeque<(Instant, Duration)>,
}

impl Watch {
    pub(crate) fn new(limits: Limits, held: Option<Held>) -> Watch {
        let by_us = |holder: Option<Holder>| holder != Some(Holder::Group);
        let (memory, cpu) = (by_us(held.map(|held| held.memory)), by_us(held.map(|held| held.cpu)));
        Watch { limits, memory, cpu, seen: VecDeque::new() }
    }

    fn needed(&self) -> bool {
        self.memory || self.cpu
    }

    /// Why the server has to be killed, if it has to.
    fn look(&mut self, meter: &Meter) -> Option<String> {
        let usage = meter.read()?;
        if self.memory && meter.exceeds(&usage, self.limits.memory_mb << 20) {
            return Some(over_memory(&self.limits));
        }
        self.busy(Instant::now(), &usage).then(|| {
            let percent = self.limits.cpu_percent;
            format!("the server used more than {percent} % of a core for {} s; `--cpu` allows more", WINDOW.as_secs())
        })
    }

    fn busy(&mut self, now: Instant, usage: &Usage) -> bool {
        if !self.cpu {
            return false;
        }
        self.seen.push_back((now, usage.cpu));
        while self.seen.get(1).is_some_and(|(then, _)| now.duration_since(*then) >= WINDOW) {
            self.seen.pop_front();
        }
        let Some((then, before)) = self.seen.front() else { return false };
        let passed = now.duration_since(*then);
        let used = usage.cpu.saturating_sub(*before).as_secs_f64();
        let allowed = passed.as_secs_f64() * f64::from(self.limits.cpu_percent) / 100.0;
        passed >= WINDOW && used > allowed * TOLERANCE
    }
}

pub(crate) fn over_memory(limits: &Limits) -> String {
    format!("the server needed more than {} MB of memory; `--memory` allows more", limits.memory_mb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lasting_use_of_the_cpu_counts() {
        let limits = Limits { cpu_percent: 50, ..Limits::default() };
        let start = Instant::now();
        let mut watch = Watch::new(limits, None);
        let mut at = |second: u64, used_ms: u64| {
            let usage = Usage { cpu: Duration::from_millis(used_ms), ..Usage::default() };
            watch.busy(start + Duration::from_secs(second), &usage)
        };
        assert!(!(0..30).any(|second| at(second, second * 1000)), "too early to say");
        assert!(at(30, 30_000));
        assert!(!at(61, 31_000), "then it was quiet");
        assert!(!(62..100).any(|second| at(second, 31_000 + (second - 61) * 500)), "as much as it may");
    }
}
