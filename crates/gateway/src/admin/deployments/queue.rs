//! How many deployments may be on their way, and in what order.

use super::super::error::Error;
use super::super::places::{Place, Places, lock};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use tokio::sync::OwnedMutexGuard;

/// Tenant and server.
type Name = (String, String);
type Turn = Weak<tokio::sync::Mutex<()>>;

/// A deployment holds its source in memory, some tens of megabytes at worst; so they are few at a time.
const MOST: usize = 16;
const MOST_OF_ONE_TENANT: usize = 4;

pub struct Queue {
    places: Places,
    servers: Mutex<HashMap<Name, Turn>>,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue { places: Places::new(MOST, MOST_OF_ONE_TENANT), servers: Mutex::default() }
    }
}

impl Queue {
    pub fn enter(&self, tenant: &str) -> Result<Place, Error> {
        let busy = |full| Error::busy(format!("{full} has too many deployments on their way; try again"));
        self.places.enter(tenant).map_err(busy)
    }

    /// Waits until nobody else changes what this server runs. Changes come one after the other, in the order of asking.
    pub async fn alone(&self, tenant: &str, server: &str) -> OwnedMutexGuard<()> {
        let server = {
            let mut servers = lock(&self.servers);
            servers.retain(|_, lock| lock.strong_count() > 0);
            let slot = servers.entry((tenant.to_owned(), server.to_owned())).or_default();
            slot.upgrade().unwrap_or_else(|| {
                let new = Arc::default();
                *slot = Arc::downgrade(&new);
                new
            })
        };
        server.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn changes_of_one_server_wait_for_each_other() {
        let queue = Queue::default();
        let first = queue.alone("a", "s").await;
        let wait = Duration::from_millis(20);
        assert!(tokio::time::timeout(wait, queue.alone("a", "s")).await.is_err());
        let other = queue.alone("a", "t").await;
        drop(first);
        let _second = queue.alone("a", "s").await;
        drop(other);
        let _third = queue.alone("b", "s").await;
        assert_eq!(lock(&queue.servers).len(), 2, "locks that nobody holds are forgotten");
    }
}
