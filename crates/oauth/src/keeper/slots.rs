//! One at a time for each connection.

use super::Connection;
use crate::error::Error;
use crate::tokens::Tokens;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OwnedMutexGuard;

/// So many may lie idle before they are swept up.
const IDLE: usize = 1024;

type Shared = Arc<tokio::sync::Mutex<Slot>>;

#[derive(Default)]
pub(super) struct Slots(Mutex<Table>);

#[derive(Default)]
struct Table {
    slots: HashMap<Connection, Shared>,
    /// At this length it is swept next, so that sweeping costs little for each entry, however many are in use.
    sweep_at: usize,
}

#[derive(Default)]
pub(super) struct Slot {
    /// When and how the last request failed.
    pub(super) failed: Option<(u64, Error)>,
    /// New tokens that the store did not take. The old ones are worthless by now.
    pub(super) unsaved: Option<Tokens>,
}

/// The right to change a connection.
pub(super) struct Held {
    connection: Connection,
    slot: OwnedMutexGuard<Slot>,
}

impl Slots {
    pub(super) async fn hold(&self, connection: Connection) -> Held {
        let slot = self.slot(&connection);
        Held { connection, slot: slot.lock_owned().await }
    }

    fn slot(&self, connection: &Connection) -> Shared {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if table.slots.len() >= table.sweep_at.max(IDLE) {
            // Whoever uses one has a share in it, and new shares are given out here alone.
            let is_idle = |slot: &Shared| Arc::strong_count(slot) == 1;
            let is_empty = |slot: &Shared| slot.try_lock().is_ok_and(|slot| slot.unsaved.is_none());
            table.slots.retain(|_, slot| !is_idle(slot) || !is_empty(slot));
            table.sweep_at = table.slots.len() * 2;
        }
        table.slots.entry(connection.clone()).or_default().clone()
    }
}

impl Held {
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }
}

impl Deref for Held {
    type Target = Slot;
    fn deref(&self) -> &Slot {
        &self.slot
    }
}

impl DerefMut for Held {
    fn deref_mut(&mut self) -> &mut Slot {
        &mut self.slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(number: usize) -> Connection {
        Connection { tenant: "t".into(), provider: "p".into(), subject: number.to_string() }
    }

    #[tokio::test]
    async fn idle_slots_are_swept_and_held_ones_are_not() {
        let slots = Slots::default();
        let held = slots.hold(connection(0)).await;
        for number in 1..5 * IDLE {
            drop(slots.hold(connection(number)).await);
        }
        assert!(slots.0.lock().unwrap().slots.len() <= IDLE);
        assert!(slots.slot(&connection(0)).try_lock().is_err());
        drop(held);
        assert!(slots.slot(&connection(0)).try_lock().is_ok());
    }
}
