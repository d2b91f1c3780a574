//! Something that is used up and comes back with time.

use std::time::{Duration, Instant};

/// The longest that anybody is told to wait.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// How much fits, and how much comes back per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Flow {
    pub capacity: f64,
    pub per_s: f64,
}

impl Flow {
    /// So many per second, and so many at once. Without room for one nothing would ever pass, and with a rate of nothing
    /// nothing shall.
    pub fn per_second(rate: f64, burst: u32) -> Flow {
        let per_s = sane(rate);
        Flow { capacity: if per_s > 0.0 { f64::from(burst.max(1)) } else { 0.0 }, per_s }
    }

    /// So much in a minute, all of it at once if need be.
    pub fn per_minute(amount: f64) -> Flow {
        let amount = sane(amount);
        Flow { capacity: amount, per_s: amount / 60.0 }
    }
}

/// What is no number allows nothing.
fn sane(amount: f64) -> f64 {
    if amount.is_nan() { 0.0 } else { amount.max(0.0) }
}

#[derive(Debug)]
pub(super) struct Bucket {
    /// Below zero when more was used than there was.
    level: f64,
    /// When the level was right.
    at: Instant,
    flow: Flow,
}

impl Bucket {
    /// Full, whatever will fit.
    pub fn new(now: Instant) -> Bucket {
        Bucket { level: f64::INFINITY, at: now, flow: Flow { capacity: f64::INFINITY, per_s: 0.0 } }
    }

    /// Lets come back what came back until now. A clock reading older than the last one changes nothing.
    pub fn refill(&mut self, flow: Flow, now: Instant) {
        // What passed until now passed at the old pace.
        self.advance(now);
        self.flow = flow;
        self.level = self.level.min(flow.capacity);
    }

    fn advance(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.at);
        if elapsed.is_zero() {
            return;
        }
        self.at = now;
        self.level = (self.level + elapsed.as_secs_f64() * self.flow.per_s).min(self.flow.capacity);
    }

    pub fn take(&mut self, amount: f64) {
        self.level -= amount;
    }

    /// Takes something that was used at this moment.
    pub fn spend(&mut self, amount: f64, now: Instant) {
        self.advance(now);
        self.take(amount);
    }

    /// How long until there is so much in it. None: there is.
    pub fn wait_for(&self, amount: f64) -> Option<Duration> {
        if self.level >= amount {
            return None;
        }
        let seconds = (amount - self.level) / self.flow.per_s;
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or(MAX_WAIT);
        Some(wait.clamp(Duration::from_nanos(1), MAX_WAIT))
    }

    /// How long until there is anything in it.
    pub fn wait_for_any(&self) -> Option<Duration> {
        self.wait_for(f64::MIN_POSITIVE)
    }

    /// Whether a new one would be no different.
    pub fn is_full(&mut self, now: Instant) -> bool {
        self.advance(now);
        self.level >= self.flow.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn admit(bucket: &mut Bucket, flow: Flow, now: Instant) -> Result<(), Duration> {
        bucket.refill(flow, now);
        match bucket.wait_for(1.0) {
            Some(wait) => Err(wait),
            None => {
                bucket.take(1.0);
                Ok(())
            }
        }
    }

    #[test]
    fn a_burst_and_then_the_rate() {
        let start = Instant::now();
        let flow = Flow::per_second(10.0, 5);
        let mut bucket = Bucket::new(start);
        for _ in 0..5 {
            assert_eq!(admit(&mut bucket, flow, start), Ok(()));
        }
        assert_eq!(admit(&mut bucket, flow, start), Err(Duration::from_millis(100)));
        assert_eq!(admit(&mut bucket, flow, start + SECOND / 10), Ok(()));
        assert!(admit(&mut bucket, flow, start + SECOND / 10).is_err());
    }

    #[test]
    fn amounts_that_allow_nothing() {
        let start = Instant::now();
        for rate in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
            let mut bucket = Bucket::new(start);
            let flow = Flow::per_second(rate, 100);
            assert_eq!(admit(&mut bucket, flow, start), Err(MAX_WAIT));
            assert_eq!(admit(&mut bucket, flow, start + 1000 * SECOND), Err(MAX_WAIT));
            let mut bucket = Bucket::new(start);
            bucket.refill(Flow::per_minute(rate), start);
            assert_eq!(bucket.wait_for_any(), Some(MAX_WAIT));
        }
    }

    #[test]
    fn an_endless_amount_is_never_used_up() {
        let start = Instant::now();
        let mut bucket = Bucket::new(start);
        bucket.refill(Flow::per_minute(f64::INFINITY), start);
        bucket.spend(1e300, start + SECOND);
        bucket.refill(Flow::per_minute(f64::INFINITY), start + SECOND);
        assert_eq!(bucket.wait_for_any(), None);
        assert!(bucket.is_full(start + SECOND));
    }

    #[test]
    fn debt_is_paid_back_at_the_pace_of_the_quota() {
        let start = Instant::now();
        let flow = Flow::per_minute(60.0);
        let mut bucket = Bucket::new(start);
        bucket.refill(flow, start);
        bucket.spend(90.0, start);
        assert_eq!(bucket.wait_for_any().unwrap().as_secs(), 30);
        bucket.refill(flow, start + 29 * SECOND);
        assert!(bucket.wait_for_any().is_some());
        bucket.refill(flow, start + 31 * SECOND);
        assert_eq!(bucket.wait_for_any(), None);
    }

    #[test]
    fn what_is_used_after_a_pause_is_not_forgiven_for_the_pause() {
        let start = Instant::now();
        let flow = Flow::per_minute(60.0);
        let mut bucket = Bucket::new(start);
        bucket.refill(flow, start);
        bucket.spend(60.0, start + 3600 * SECOND);
        bucket.refill(flow, start + 3600 * SECOND);
        assert!(bucket.wait_for_any().is_some());
    }

    #[test]
    fn a_raised_quota_counts_at_once_and_a_lowered_one_too() {
        let start = Instant::now();
        let mut bucket = Bucket::new(start);
        bucket.refill(Flow::per_minute(6.0), start);
        bucket.spend(66.0, start);
        assert_eq!(bucket.wait_for_any().unwrap().as_secs(), 600);
        bucket.refill(Flow::per_minute(600.0), start);
        assert_eq!(bucket.wait_for_any().unwrap().as_secs(), 6);
        let mut bucket = Bucket::new(start);
        bucket.refill(Flow::per_second(1.0, 1000), start);
        let few = Flow::per_second(1.0, 2);
        assert!(admit(&mut bucket, few, start).is_ok() && admit(&mut bucket, few, start).is_ok());
        assert!(admit(&mut bucket, few, start).is_err());
    }

    fn steps() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(prop_oneof![3 => Just(0), 3 => 0..2_000_000u64, 1 => 0..5_000_000_000u64], 1..400)
    }

    proptest! {
        /// Over any stretch of time, not only from the start.
        #[test]
        fn never_more_than_the_rate_and_the_burst(rate in 0.01..5000.0f64, burst in 0..300u32, steps in steps()) {
            let flow = Flow::per_second(rate, burst);
            let start = Instant::now();
            let mut bucket = Bucket::new(start);
            let mut now = Duration::ZERO;
            let mut admitted = Vec::new();
            for step in steps {
                now += Duration::from_nanos(step);
                for _ in 0..3 {
                    if admit(&mut bucket, flow, start + now).is_ok() {
                        admitted.push(now);
                    }
                }
            }
            for (i, from) in admitted.iter().enumerate() {
                for (j, to) in admitted.iter().enumerate().skip(i) {
                    let most = rate * (*to - *from).as_secs_f64() + f64::from(burst.max(1));
                    prop_assert!((j - i + 1) as f64 <= most + 1e-6, "{} in {:?}, {most} allowed", j - i + 1, *to - *from);
                }
            }
        }

        /// Whoever waits as long as they are told gets in.
        #[test]
        fn the_wait_is_true(rate in 0.01..5000.0f64, burst in 0..300u32, steps in steps()) {
            let flow = Flow::per_second(rate, burst);
            let start = Instant::now();
            let mut bucket = Bucket::new(start);
            let mut now = Duration::ZERO;
            for step in steps {
                now += Duration::from_nanos(step);
                if let Err(wait) = admit(&mut bucket, flow, start + now) {
                    now += wait + Duration::from_nanos(1);
                    prop_assert_eq!(admit(&mut bucket, flow, start + now), Ok(()));
                }
            }
        }

        /// Time alone never takes anything away, in whatever order clock readings arrive.
        #[test]
        fn refill_is_monotone(amount in 0.0..1e9f64, used in 0.0..1e10f64, moments in prop::collection::vec(0..10_000_000_000u64, 1..100)) {
            let flow = Flow::per_minute(amount);
            let start = Instant::now();
            let mut bucket = Bucket::new(start);
            bucket.refill(flow, start);
            bucket.spend(used, start);
            let mut level = bucket.level;
            for moment in moments {
                bucket.refill(flow, start + Duration::from_nanos(moment));
                prop_assert!(bucket.level >= level && bucket.level <= flow.capacity);
                level = bucket.level;
            }
        }
    }
}
