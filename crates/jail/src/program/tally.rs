//! CPU time of a tree without a control group, with that of children whose end their parent ignores.
//!
//! The kernel adds what a child used to its parent's account only when somebody waits for the child. Otherwise it is lost.
//! So each look remembers what each process had used. What has vanished since must show up as time of waited-for children
//! of somebody else; what does not is counted here.
//!
//! Children that come and go between two looks are never seen. Once a tree is known to lose children, each one that was
//! seen and has vanished stands for all that ran beside it: it is charged with the whole time between the looks, on as
//! many processors as there are. Looks come at times that nobody in there can know, so this is right on average.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The kernel shows the time of waited-for children in ticks, cut off, once for the user's and once for the system's part.
const CUT_OFF: Duration = Duration::from_millis(20);
/// What may be missing before a tree is known to lose children.
const LENIENCE: Duration = Duration::from_millis(30);

/// What one process shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// The process with its threads.
    pub(super) own: Duration,
    /// Children that were waited for, with theirs.
    pub(super) children: Duration,
}

/// Which process: its number and when it started, because numbers come again.
pub(super) type Which = (u64, u64);

#[derive(Debug, Default)]
pub(super) struct Tally {
    at: Option<Instant>,
    seen: HashMap<Which, Reading>,
    /// What vanished at the last look. Whoever waited for it may have been read before, so its credit shows one look later.
    vanished: Duration,
    vanished_count: u32,
    /// All that vanished, and all that was credited to who waited.
    gone: Duration,
    credited: Duration,
    /// What those are charged with that were never seen.
    unseen: Duration,
    total: Duration,
}

impl Tally {
    /// CPU time of all that live or ever lived.
    pub(super) fn count(&mut self, now: Instant, readings: HashMap<Which, Reading>) -> Duration {
        let interval = self.at.map_or(Duration::ZERO, |at| now.duration_since(at));
        let mut credit = Duration::ZERO;
        for (which, reading) in &readings {
            let before = self.seen.get(which).copied().unwrap_or_default();
            credit += reading.children.saturating_sub(before.children);
        }
        self.credited += credit;
        self.gone += self.vanished;
        let slack = LENIENCE + CUT_OFF * u32::try_from(readings.len()).unwrap_or(u32::MAX);
        let missing = self.gone.saturating_sub(self.credited);
        if missing > slack && self.vanished_count > 0 {
            let whole = interval * self.vanished_count.min(processors());
            self.unseen += whole.saturating_sub(self.vanished.max(credit));
        }
        let vanished = self.seen.iter().filter(|(which, _)| !readings.contains_key(which));
        (self.vanished, self.vanished_count) = vanished
            .fold((Duration::ZERO, 0), |(sum, count), (_, reading)| (sum + reading.own + reading.children, count + 1));
        let living: Duration = readings.values().map(|reading| reading.own + reading.children).sum();
        // Below the slack what is missing may be there and only not shown.
        let lost = if missing > slack { missing } else { Duration::ZERO };
        self.total = self.total.max(living + lost + self.unseen);
        self.at = Some(now);
        self.seen = readings;
        self.total
    }
}

fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn reading(own: u32, children: u32) -> Reading {
        Reading { own: MS * own, children: MS * children }
    }

    /// Looks every 20 ms at these processes, given as number, own time and that of children.
    fn counted(looks: impl IntoIterator<Item = Vec<(u64, u32, u32)>>) -> Duration {
        let (mut tally, mut at) = (Tally::default(), Instant::now());
        let mut total = Duration::ZERO;
        for look in looks {
            at += MS * 20;
            let readings = look.into_iter().map(|(number, own, children)| ((number, 0), reading(own, children)));
            total = tally.count(at, readings.collect());
        }
        total
    }

    #[test]
    fn children_that_are_waited_for_count_once() {
        // The child of 300 ms ends between two looks, and its parent is read before or after it waits.
        let before = [vec![(2, 5, 0), (3, 300, 0)], vec![(2, 5, 0)], vec![(2, 5, 300)], vec![(2, 5, 300)]];
        let after =
            [vec![(2, 5, 0), (3, 300, 0)], vec![(2, 5, 300), (3, 300, 0)], vec![(2, 5, 300)], vec![(2, 5, 300)]];
        assert_eq!(counted(before), MS * 305);
        let doubled = counted(after);
        assert!(doubled >= MS * 305 && doubled <= MS * 605, "for a moment it shows twice: {doubled:?}");
    }

    /// Each is cut off by less than a tick, for ever, and no more.
    #[test]
    fn many_short_children_that_are_waited_for_are_not_charged_twice() {
        let looks =
            (0..1000_u32).map(|look| vec![(2, 0, (look * 3).saturating_sub(3) / 10 * 10), (u64::from(look) + 3, 3, 0)]);
        let total = counted(looks);
        assert!(total <= MS * 3010, "{total:?}");
    }

    #[test]
    fn children_that_nobody_waits_for_count_all_the_same() {
        let one = [vec![(2, 5, 0), (3, 300, 0)], vec![(2, 5, 0)], vec![(2, 5, 0)], vec![(2, 5, 0)]];
        assert!(counted(one) >= MS * 305);
        // A new one at each look, most of which are never seen: a processor is busy all the time.
        let looks = (0..500_u32).map(|look| vec![(2, 5, 0), (u64::from(look) + 3, 1, 0)]);
        let (total, passed) = (counted(looks), MS * 20 * 500);
        assert!(total > passed / 2 && total < passed * 11 / 10, "{total:?} of {passed:?}");
    }

    #[test]
    fn a_number_that_comes_again_is_another_process() {
        let mut tally = Tally::default();
        let now = Instant::now();
        tally.count(now, HashMap::from([((2, 0), reading(5, 0)), ((3, 1), reading(400, 0))]));
        for look in 1..3 {
            tally.count(now + MS * 20 * look, HashMap::from([((2, 0), reading(5, 0)), ((3, 9), reading(1, 0))]));
        }
        assert!(tally.total >= MS * 405, "{:?}", tally.total);
    }
}
