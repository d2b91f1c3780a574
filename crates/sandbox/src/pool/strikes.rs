//! How often a deployment's processes were ended while no call was in them, and the pause that follows.

use crate::{Code, Failure};
use std::time::Duration;
use tokio::time::Instant;

/// The first one has no consequence: a pause follows from the second on, and doubles with each.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MOST_DOUBLINGS: u32 = 9;

/// After this long without another one, all are forgotten.
const FORGET: Duration = Duration::from_secs(1800);

#[derive(Default)]
pub(super) struct Strikes {
    count: u32,
    last: Option<(Instant, Code)>,
    until: Option<Instant>,
}

impl Strikes {
    /// Counts one more. Gives the pause that begins now, zero for none.
    pub(super) fn add(&mut self, code: Code, now: Instant) -> Duration {
        if self.last.is_some_and(|(last, _)| now.duration_since(last) > FORGET) {
            self.count = 0;
        }
        // All that is found in one pause, such as the spares of one deployment, counts once.
        if self.until.is_none_or(|until| until <= now) {
            self.count = self.count.saturating_add(1);
        }
        self.last = Some((now, code));
        let Some(doublings) = self.count.checked_sub(2) else { return Duration::ZERO };
        let pause = FIRST_PAUSE * (1 << doublings.min(MOST_DOUBLINGS));
        self.until = Some(now + pause);
        pause
    }

    /// What a caller hears while the pause lasts.
    pub(super) fn pause(&self, now: Instant) -> Option<Failure> {
        let left = self.until?.checked_duration_since(now).filter(|left| !left.is_zero())?;
        let (_, code) = self.last?;
        let message = format!(
            "this server is paused for {} s: its processes were ended {} times for what they did while no call was in \
             them (`{}`); deploy code that does nothing between calls, or try again later",
            left.as_secs() + 1,
            self.count,
            code.as_str(),
        );
        Some(Failure::new(code, message))
    }
}
