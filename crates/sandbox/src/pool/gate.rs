//! A bounded number inside, a bounded number waiting, nobody waits for ever.

use crate::{Code, Failure};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

pub(super) struct Gate {
    places: Semaphore,
    capacity: usize,
    waiting: AtomicUsize,
    most_waiting: usize,
}

impl Gate {
    pub(super) fn new(capacity: usize, most_waiting: usize) -> Gate {
        Gate { places: Semaphore::new(capacity), capacity, waiting: AtomicUsize::new(0), most_waiting }
    }

    /// A place, or "busy": at once when the queue is full, after `patience` otherwise.
    pub(super) async fn enter(&self, patience: Duration, whose: &str) -> Result<SemaphorePermit<'_>, Failure> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let busy = |why: &str| Failure::new(Code::Busy, format!("{whose} is busy: {why}; try again later"));
        let _turn = Turn::take(&self.waiting, self.most_waiting).ok_or_else(|| busy("too many calls wait already"))?;
        match tokio::time::timeout(patience, self.places.acquire()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) => Err(busy("it is closing")),
            Err(_) => Err(busy("no place became free in time")),
        }
    }

    pub(super) fn inside(&self) -> usize {
        self.capacity - self.places.available_permits()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// A place in the queue, given back on drop: also when the waiting caller goes away.
struct Turn<'a>(&'a AtomicUsize);

impl Turn<'_> {
    fn take(count: &AtomicUsize, most: usize) -> Option<Turn<'_>> {
        count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < most).then_some(n + 1))
            .ok()
            .map(|_| Turn(count))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_queue_answers_at_once_and_a_waiting_caller_in_time() {
        let gate = Gate::new(1, 1);
        let inside = gate.enter(Duration::from_secs(60), "it").await.unwrap();
        let waiting = gate.enter(Duration::from_millis(20), "it");
        tokio::pin!(waiting);
        assert!(futures_pending(waiting.as_mut()).await);
        assert_eq!(gate.waiting(), 1);
        assert_eq!(gate.enter(Duration::from_secs(60), "it").await.unwrap_err().code, Code::Busy);
        assert_eq!(waiting.await.unwrap_err().code, Code::Busy);
        assert_eq!((gate.waiting(), gate.inside()), (0, 1));
        drop(inside);
        assert!(gate.enter(Duration::ZERO, "it").await.is_ok());
    }

    async fn futures_pending<F: Future + Unpin>(future: F) -> bool {
        tokio::time::timeout(Duration::from_millis(1), future).await.is_err()
    }
}
