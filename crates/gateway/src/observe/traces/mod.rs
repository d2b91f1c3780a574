//! Each call as one trace, sent over OTLP/HTTP to whatever collector the operator names.
//!
//! A call's spans are put together when it is over, from the moments that were noted on its way: nothing is shared while
//! it runs, and a call that is not sampled costs one look at a number. What waits to be sent is bounded; beyond that,
//! traces are dropped and counted, and calls never wait for a collector.

mod otlp;
mod parent;
mod sender;
#[cfg(test)]
mod tests;

pub use otlp::Value;
pub use parent::TraceParent;
pub use sender::{TraceError, TraceSettings};

use otlp::{Kind, Span};
use sender::Sender;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Spans below a call's own that are kept.
const MOST_STEPS: usize = 32;

/// Where traces begin. Cheap to clone.
#[derive(Clone, Default)]
pub struct Traces(Option<Arc<Inner>>);

struct Inner {
    sender: Sender,
    sample_ratio: f64,
    /// A number that nobody can foresee, and how many were made from it.
    seed: u64,
    made: AtomicU64,
}

impl Traces {
    /// No collector, no traces.
    pub fn off() -> Traces {
        Traces(None)
    }

    /// Must be called inside a tokio runtime: a task sends what was collected.
    pub fn start(settings: TraceSettings) -> Result<Traces, TraceError> {
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|error| TraceError::Randomness(error.to_string()))?;
        let (sample_ratio, seed) = (settings.sample_ratio, u64::from_le_bytes(seed));
        let sender = Sender::start(settings)?;
        Ok(Traces(Some(Arc::new(Inner { sender, sample_ratio, seed, made: AtomicU64::new(0) }))))
    }

    /// Whether there is a collector at all.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The trace of a request that came in `at` a moment ago. Whose client says whether it is sampled is believed; of
    /// others, the share that the operator wants is.
    pub fn begin(&self, parent: Option<TraceParent>, at: Instant) -> Trace {
        let Some(inner) = &self.0 else { return Trace(None) };
        let (high, low) = (inner.number(), inner.number());
        let sampled = match &parent {
            Some(parent) => parent.sampled,
            // The numbers are evenly spread, so is the share.
            None => (low >> 11) as f64 / ((1u64 << 53) as f64) < inner.sample_ratio,
        };
        if !sampled {
            return Trace(None);
        }
        let mut trace_id = [0; 16];
        trace_id[..8].copy_from_slice(&high.to_be_bytes());
        trace_id[8..].copy_from_slice(&low.to_be_bytes());
        Trace(Some(Box::new(Open {
            inner: inner.clone(),
            trace_id: parent.as_ref().map_or(trace_id, |parent| parent.trace_id),
            parent: parent.map(|parent| parent.span_id),
            span_id: inner.span_id(),
            began: at,
            began_unix: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(at.elapsed()),
            steps: Vec::new(),
        })))
    }

    /// Traces that were not sent: too many at once, or a collector that did not take them.
    pub fn dropped(&self) -> u64 {
        self.0.as_ref().map_or(0, |inner| inner.sender.dropped())
    }

    /// Sends what is waiting, for as long as it may take.
    pub async fn flush(&self, within: Duration) {
        if let Some(inner) = &self.0 {
            inner.sender.flush(within).await;
        }
    }
}

impl Inner {
    /// splitmix64: distinct, evenly spread, and no secret.
    fn number(&self) -> u64 {
        let step = self.made.fetch_add(1, Ordering::Relaxed);
        let mut z = self.seed.wrapping_add(step.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Zero means none.
    fn span_id(&self) -> [u8; 8] {
        self.number().max(1).to_be_bytes()
    }
}

/// One request on its way. What is dropped without an end was no call, and is not sent.
#[derive(Default)]
pub struct Trace(Option<Box<Open>>);

struct Open {
    inner: Arc<Inner>,
    trace_id: [u8; 16],
    span_id: [u8; 8],
    parent: Option<[u8; 8]>,
    began: Instant,
    began_unix: Duration,
    steps: Vec<Step>,
}

struct Step {
    name: &'static str,
    from: Instant,
    to: Instant,
}

impl Trace {
    /// Whether it is worth putting attributes together.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// What collectors know it by.
    pub fn id(&self) -> Option<String> {
        self.0.as_ref().map(|open| hex::encode(open.trace_id))
    }

    /// A part of the way that is over.
    pub fn step(&mut self, name: &'static str, from: Instant, to: Instant) {
        if let Some(open) = &mut self.0
            && open.steps.len() < MOST_STEPS
        {
            open.steps.push(Step { name, from, to });
        }
    }

    /// A part of the way that is over now, and began where the last one ended.
    pub fn next(&mut self, name: &'static str) {
        if let Some(open) = &self.0 {
            let from = open.steps.last().map_or(open.began, |step| step.to);
            self.step(name, from, Instant::now());
        }
    }

    /// The request is answered: sends the trace on its way. `failed` is the code of what went wrong.
    pub fn end(mut self, name: String, attributes: Vec<(&'static str, Value)>, failed: Option<&str>) {
        let Some(open) = self.0.take() else { return };
        let now = Instant::now();
        let mut spans = Vec::with_capacity(1 + open.steps.len());
        spans.push(Span {
            trace_id: open.trace_id,
            span_id: open.span_id,
            parent: open.parent,
            name: otlp::shortened(name),
            kind: Kind::Server,
            start: open.nanos(open.began),
            end: open.nanos(now),
            attributes,
            failed: failed.map(str::to_owned),
        });
        for step in &open.steps {
            spans.push(Span {
                trace_id: open.trace_id,
                span_id: open.inner.span_id(),
                parent: Some(open.span_id),
                name: step.name.to_owned(),
                kind: Kind::Internal,
                start: open.nanos(step.from),
                end: open.nanos(step.to.max(step.from)),
                attributes: Vec::new(),
                failed: None,
            });
        }
        open.inner.sender.send(spans);
    }
}

impl Open {
    /// Nanoseconds since 1970. Measured from the beginning by the clock that nobody sets.
    fn nanos(&self, at: Instant) -> u64 {
        let since = match at.checked_duration_since(self.began) {
            Some(after) => self.began_unix + after,
            None => self.began_unix.saturating_sub(self.began.duration_since(at)),
        };
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }
}
