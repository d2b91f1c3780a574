//! Memory that is given out in shares, and never more than there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone)]
pub(crate) struct Memory {
    used: Arc<AtomicU64>,
    most: u64,
}

/// A part of it, given back when dropped.
pub(crate) struct Share {
    used: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Memory {
    pub(crate) fn new(most: u64) -> Memory {
        Memory { used: Arc::default(), most }
    }

    pub(crate) fn take(&self, bytes: u64) -> Option<Share> {
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|used| *used <= self.most)
        });
        taken.ok().map(|_| Share { used: self.used.clone(), bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_never_overdrawn_and_comes_back() {
        let memory = Memory::new(100);
        let first = memory.take(60).unwrap();
        assert!(memory.take(60).is_none());
        let second = memory.take(40).unwrap();
        assert!(memory.take(u64::MAX).is_none());
        drop(first);
        assert!(memory.take(60).is_some());
        drop(second);
        assert_eq!(memory.used.load(Ordering::Relaxed), 0);
    }
}
