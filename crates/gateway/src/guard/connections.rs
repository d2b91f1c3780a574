//! How many connections there may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the open ones. Clones count together.
#[derive(Clone, Debug)]
pub struct Connections {
    most: usize,
    open: Arc<AtomicUsize>,
}

/// A connection's place, free again when this is dropped.
#[derive(Debug)]
pub struct ConnectionPlace(Arc<AtomicUsize>);

impl Connections {
    pub fn new(most: usize) -> Connections {
        Connections { most, open: Arc::default() }
    }

    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// None when all places are taken.
    pub fn enter(&self) -> Option<ConnectionPlace> {
        let more = |open| (open < self.most).then_some(open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(ConnectionPlace(self.open.clone()))
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_there_are_places() {
        let connections = Connections::new(2);
        let (first, second) = (connections.enter().unwrap(), connections.clone().enter().unwrap());
        assert!(connections.enter().is_none());
        assert_eq!(connections.open(), 2);
        drop(first);
        assert!(connections.enter().is_some());
        drop(second);
        assert_eq!(connections.open(), 0);
        assert!(Connections::new(0).enter().is_none());
    }
}
