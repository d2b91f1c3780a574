//! Changes on their way into the audit log.
//!
//! A change and its event are committed together; the event then goes into the log, and leaves the database once the log
//! is safe. Whatever happens in between, the event is in the log once: its id tells whether it is there already.

use crate::audit::{AuditLog, Link};
use crate::database::Database;
use crate::files::locked;
use crate::{ChangeEvent, RegistryError, snapshot};
use rusqlite::Transaction;
use std::collections::HashSet;
use std::sync::Mutex;

/// An event with the id under which the database has it.
pub(crate) struct Pending {
    pub id: String,
    event: ChangeEvent,
    /// Its number in the log, once it has one.
    seq: Option<u64>,
}

#[derive(Default)]
pub(crate) struct Outbox {
    pending: Mutex<Vec<Pending>>,
}

/// Adds an event to a change that is being made.
pub(crate) fn put(transaction: &Transaction<'_>, event: &ChangeEvent) -> Result<Pending, RegistryError> {
    let mut id = [0; 12];
    getrandom::fill(&mut id)?;
    let id = hex::encode(id);
    let text = snapshot::to_json(event)?;
    transaction.prepare_cached("INSERT INTO outbox (id, event) VALUES (?1, ?2)")?.execute((&id, &text))?;
    Ok(Pending { id, event: event.clone(), seq: None })
}

impl Outbox {
    /// What an earlier host left. `logged` are the ids that are in the log after its recorded head.
    pub(crate) fn load(database: &Database, logged: &HashSet<String>) -> Result<Outbox, RegistryError> {
        let pending = database.read(|connection| {
            let mut statement = connection.prepare("SELECT id, event FROM outbox ORDER BY number")?;
            let mut rows = statement.query([])?;
            let mut pending = Vec::new();
            while let Some(row) = rows.next()? {
                let (id, event): (String, String) = (row.get(0)?, row.get(1)?);
                let event = serde_json::from_str(&event)
                    .map_err(|_| RegistryError::corrupt("a change on its way into the audit log cannot be read"))?;
                let seq = logged.contains(&id).then_some(0);
                pending.push(Pending { id, event, seq });
            }
            Ok(pending)
        })?;
        Ok(Outbox { pending: Mutex::new(pending) })
    }

    /// Takes an event that was committed.
    pub(crate) fn take(&self, pending: Pending, audit: &AuditLog) {
        locked(&self.pending).push(pending);
        self.forward(audit);
    }

    /// Gives the log what it does not have yet, in order.
    pub(crate) fn forward(&self, audit: &AuditLog) {
        for pending in locked(&self.pending).iter_mut().filter(|pending| pending.seq.is_none()) {
            match audit.append_change(&pending.id, pending.event.clone()) {
                Ok(seq) => pending.seq = Some(seq),
                Err(_) => return, // `health` says why, and it is tried again
            }
        }
    }

    /// The events that need not be kept any more when the log is safe up to `link`.
    pub(crate) fn safe(&self, link: Link) -> Vec<String> {
        let pending = locked(&self.pending);
        pending.iter().filter(|p| p.seq.is_some_and(|seq| seq <= link.seq)).map(|p| p.id.clone()).collect()
    }

    pub(crate) fn forget(&self, ids: &[String]) {
        locked(&self.pending).retain(|pending| !ids.contains(&pending.id));
    }
}
