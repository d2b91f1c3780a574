//! What was decided and what it used, for receipts and metrics.

use crate::denied::{Code, Denied};
use crate::target::Target;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Further ones are counted and handed to the watcher, but not kept.
const MOST_KEPT: usize = 256;

/// One decision: a request, or one hop of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Record {
    pub allowed: bool,
    pub method: String,
    /// Empty if the URL could not be read.
    pub host: String,
    pub port: u16,
    pub rule: Option<String>,
    /// Names of the secrets that were put in.
    pub credentials: Vec<String>,
    /// The code of the refusal or failure.
    pub failed: Option<&'static str>,
    pub status: Option<u16>,
    pub bytes_up: u64,
    pub bytes_down: u64,
    /// Secrets that were masked in the response.
    pub masked: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bytes {
    pub up: u64,
    pub down: u64,
}

/// What a call may use.
pub trait Budget: Send + Sync {
    /// Asked before bytes go on their way. `false`: the quota is spent.
    fn spend(&self, bytes: u64) -> bool;

    /// Told what the host has computed for it.
    fn computed(&self, cpu_us: u64);
}

pub struct NoBudget;

impl Budget for NoBudget {
    fn spend(&self, _: u64) -> bool {
        true
    }

    fn computed(&self, _: u64) {}
}

/// Told of each decision, once, when all is known about it. It should be quick: a request ends in its hands.
pub type Watch = Arc<dyn Fn(&Record) + Send + Sync>;

pub(crate) struct Ledger {
    pub(crate) budget: Arc<dyn Budget>,
    pub(crate) watch: Option<Watch>,
    entries: Mutex<Vec<Arc<Entry>>>,
    /// Hosts that answered, however many requests there were: each costs a request that the rates let through.
    hosts: Mutex<BTreeSet<String>>,
    credentials: Mutex<BTreeSet<String>>,
    up: AtomicU64,
    down: AtomicU64,
    masked: AtomicU64,
}

struct Entry {
    method: String,
    host: String,
    port: u16,
    rule: Option<String>,
    credentials: Mutex<Vec<String>>,
    failed: Mutex<Option<Code>>,
    status: AtomicU16,
    up: AtomicU64,
    down: AtomicU64,
    masked: AtomicU64,
}

impl Entry {
    fn record(&self) -> Record {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let status = self.status.load(Ordering::Relaxed);
        Record {
            // An address that is refused is refused after a rule was found.
            allowed: self.rule.is_some() && failed != Some(Code::Denied),
            method: self.method.clone(),
            host: self.host.clone(),
            port: self.port,
            rule: self.rule.clone(),
            credentials: self.credentials.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            failed: failed.map(Code::as_str),
            status: (status > 0).then_some(status),
            bytes_up: self.up.load(Ordering::Relaxed),
            bytes_down: self.down.load(Ordering::Relaxed),
            masked: self.masked.load(Ordering::Relaxed),
        }
    }
}

/// The pen for one entry. When the last one is put down, the watcher is told.
pub(crate) struct Trace {
    entry: Arc<Entry>,
    ledger: Arc<Ledger>,
}

impl Drop for Trace {
    fn drop(&mut self) {
        if self.entry.status.load(Ordering::Relaxed) == 0 {
            // Unless it is known why: nobody waited for the answer.
            self.failed(Code::Cancelled);
        }
        if let Some(watch) = &self.ledger.watch {
            watch(&self.entry.record());
        }
    }
}

impl Trace {
    pub(crate) fn failed(&self, code: Code) {
        self.entry.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(code);
    }

    pub(crate) fn status(&self, status: u16) {
        self.entry.status.store(status, Ordering::Relaxed);
        self.ledger.hosts.lock().unwrap_or_else(PoisonError::into_inner).insert(self.entry.host.clone());
    }

    pub(crate) fn credentials(&self, names: Vec<String>) {
        self.ledger.credentials.lock().unwrap_or_else(PoisonError::into_inner).extend(names.iter().cloned());
        *self.entry.credentials.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// So many secrets were found in what came back.
    pub(crate) fn masked(&self, count: u64) {
        self.entry.masked.fetch_add(count, Ordering::Relaxed);
        self.ledger.masked.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn computed(&self, cpu_us: u64) {
        self.ledger.budget.computed(cpu_us);
    }

    pub(crate) fn up(&self, bytes: u64) -> Result<(), Denied> {
        self.entry.up.fetch_add(bytes, Ordering::Relaxed);
        self.ledger.up.fetch_add(bytes, Ordering::Relaxed);
        self.ledger.spend(bytes)
    }

    pub(crate) fn down(&self, bytes: u64) -> Result<(), Denied> {
        self.entry.down.fetch_add(bytes, Ordering::Relaxed);
        self.ledger.down.fetch_add(bytes, Ordering::Relaxed);
        self.ledger.spend(bytes)
    }
}

impl Ledger {
    pub(crate) fn new(budget: Arc<dyn Budget>, watch: Option<Watch>) -> Ledger {
        Ledger {
            budget,
            watch,
            entries: Mutex::default(),
            hosts: Mutex::default(),
            credentials: Mutex::default(),
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
            masked: AtomicU64::new(0),
        }
    }

    fn spend(&self, bytes: u64) -> Result<(), Denied> {
        if self.budget.spend(bytes) { Ok(()) } else { Err(Denied::limit("the quota of egress bytes is spent")) }
    }

    /// Notes a decision. `target` is unknown if the URL could not be read.
    pub(crate) fn note(self: &Arc<Self>, method: &str, target: Option<&Target>, rule: Option<String>) -> Trace {
        let entry = Arc::new(Entry {
            method: method.chars().take(32).collect(),
            host: target.map(|target| target.origin.host.to_string()).unwrap_or_default(),
            port: target.map(|target| target.origin.port).unwrap_or_default(),
            rule,
            credentials: Mutex::default(),
            failed: Mutex::default(),
            status: AtomicU16::new(0),
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
            masked: AtomicU64::new(0),
        });
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() < MOST_KEPT {
            entries.push(entry.clone());
        }
        Trace { entry, ledger: self.clone() }
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().map(|entry| entry.record()).collect()
    }

    pub(crate) fn hosts(&self) -> Vec<String> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(crate) fn credentials(&self) -> Vec<String> {
        self.credentials.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(crate) fn masked(&self) -> u64 {
        self.masked.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes(&self) -> Bytes {
        Bytes { up: self.up.load(Ordering::Relaxed), down: self.down.load(Ordering::Relaxed) }
    }
}
