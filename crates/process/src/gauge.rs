//! Measures a program on a thread of its own: what the kernel tells of a process can take as long as that process likes,
//! and nobody else should wait for it.

use crate::driver::{Measured, Used};
use jail::program::Meter;
use sandbox::Future;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long the driver of a program waits for a reading. A machine with far too much to do may take longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a close look may take, for which the kernel can wait for the program: one that makes it last is ended.
const CLOSE_PATIENCE: Duration = Duration::from_millis(500);

/// The thread needs little.
const STACK: usize = 128 << 10;

pub(crate) struct Gauge {
    asked: mpsc::Sender<Question>,
    last: Arc<Last>,
}

#[derive(Default)]
struct Last {
    used: Mutex<Option<Used>>,
    /// Nobody has asked for the CPU time since the last reading.
    fresh: AtomicBool,
}

struct Question {
    /// What it may hold at most, where nobody else sees to that.
    most: Option<u64>,
    used: oneshot::Sender<Option<(Used, Duration)>>,
    exceeds: oneshot::Sender<bool>,
}

impl Gauge {
    pub(crate) fn start(meter: Meter) -> io::Result<Gauge> {
        let (asked, questions) = mpsc::channel();
        let last = Arc::new(Last::default());
        let kept = last.clone();
        let attend = move || {
            for question in questions {
                answer(&meter, &kept, question);
            }
        };
        std::thread::Builder::new().name("gauge".to_owned()).stack_size(STACK).spawn(attend)?;
        Ok(Gauge { asked, last })
    }

    /// What it uses now. `most`: what it may hold at most, where nobody else sees to that.
    pub(crate) fn measure(&self, most: Option<u64>) -> Future<'static, Measured> {
        let (used, told) = oneshot::channel();
        let (exceeds, decided) = oneshot::channel();
        let asked = self.asked.send(Question { most, used, exceeds });
        Box::pin(async move {
            if asked.is_err() {
                return Measured::Gone;
            }
            let (used, took) = match tokio::time::timeout(PATIENCE, told).await {
                Ok(Ok(Some(read))) => read,
                Ok(_) => return Measured::Gone,
                Err(_) => return Measured::Late,
            };
            let close = most.is_some_and(|most| used.memory > most);
            let fine =
                !close || tokio::time::timeout(CLOSE_PATIENCE, decided).await.is_ok_and(|told| told == Ok(false));
            Measured::Used { used, took, exceeds: !fine }
        })
    }

    /// The last reading.
    pub(crate) fn last(&self) -> Option<Used> {
        *self.last.used()
    }

    /// CPU time at the last reading; none when that was asked for already.
    pub(crate) fn new_cpu(&self) -> Option<Duration> {
        let fresh = self.last.fresh.swap(false, Ordering::Relaxed);
        self.last().filter(|_| fresh).map(|used| used.cpu)
    }
}

impl Last {
    fn used(&self) -> MutexGuard<'_, Option<Used>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn answer(meter: &Meter, last: &Last, question: Question) {
    let began = Instant::now();
    let usage = meter.read();
    let used = usage.map(|usage| Used { cpu: usage.cpu, memory: usage.memory_bytes });
    *last.used() = used;
    last.fresh.store(used.is_some(), Ordering::Relaxed);
    // Its driver may wait no more.
    let _ = question.used.send(used.map(|used| (used, began.elapsed())));
    let exceeds = |(usage, most)| meter.exceeds(&usage, most);
    let _ = question.exceeds.send(usage.zip(question.most).is_some_and(exceeds));
}
