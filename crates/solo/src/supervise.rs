//! Bounds that the kernel does not hold on this machine: somebody looks, and says when it is too much.

use crate::options::Limits;
use jail::program::{Child, Held, Holder, Usage};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

pub(crate) const PERIOD: Duration = Duration::from_millis(100);
/// For so long more CPU is used than allowed, until it counts.
const WINDOW: Duration = Duration::from_secs(30);
/// Measuring is not exact: a quarter more is let pass.
const TOLERANCE: f64 = 1.25;

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

    pub(crate) fn needed(&self) -> bool {
        self.memory || self.cpu
    }

    /// Why the server has to be killed, if it has to.
    pub(crate) fn look(&mut self, child: &Child) -> Option<String> {
        let usage = child.usage()?;
        let most = self.limits.memory_mb << 20;
        if self.memory && usage.memory_bytes > most && child.proportional_memory().is_some_and(|bytes| bytes > most) {
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
