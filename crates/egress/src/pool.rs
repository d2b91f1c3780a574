//! Connections that wait for their next request. One belongs to one deployment of one tenant, for good.

use crate::connect::{Sender, Task};
use crate::limits::Limits;
use crate::target::Origin;
use hyper::client::conn::http2;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;

/// Idle connections for one origin of one deployment.
const MOST_EACH: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) tenant: String,
    pub(crate) deployment: String,
    pub(crate) origin: Origin,
}

/// What keeps a connection open, and its place among all connections of the host.
pub(crate) struct Life {
    pub(crate) _task: Task,
    pub(crate) _place: OwnedSemaphorePermit,
}

/// A connection in use. Dropping it ends it, unless it was given back or others use it too.
pub(crate) struct Lease {
    pub(crate) key: Key,
    pub(crate) sender: Sender,
    pub(crate) life: Arc<Life>,
    pub(crate) born: Instant,
}

struct Idle {
    lease: Lease,
    since: Instant,
}

#[derive(Default)]
struct Waiting {
    idle: HashMap<Key, Vec<Idle>>,
    /// Whether a task is there that ends those that wait too long.
    swept: bool,
}

pub(crate) struct Pool {
    waiting: Mutex<Waiting>,
    keep: Duration,
    age: Duration,
}

impl Pool {
    pub(crate) fn new(limits: &Limits) -> Pool {
        let (keep, age) = (Duration::from_millis(limits.keep_ms), Duration::from_millis(limits.age_ms));
        Pool { waiting: Mutex::default(), keep, age }
    }

    pub(crate) fn take(&self, key: &Key) -> Option<Lease> {
        let idle = &mut self.lock().idle;
        let waiting = idle.get_mut(key)?;
        waiting.retain(|idle| self.good(idle));
        let found = match waiting.last().map(|idle| &idle.lease.sender) {
            Some(Sender::Http2(sender)) => {
                let sender = sender.clone();
                waiting.last_mut().map(|idle| {
                    idle.since = Instant::now();
                    idle.lease.share(sender)
                })
            }
            Some(Sender::Http1(_)) => waiting.pop().map(|idle| idle.lease),
            None => None,
        };
        if waiting.is_empty() {
            idle.remove(key);
        }
        found
    }

    /// Keeps a connection whose last response was read to its end, as soon as it is ready for another request.
    pub(crate) fn give_back(self: &Arc<Self>, mut lease: Lease) {
        let Sender::Http1(sender) = &mut lease.sender else {
            return;
        };
        if sender.is_closed() {
            return;
        }
        let pool = Arc::downgrade(self);
        let keep = self.keep;
        tokio::spawn(async move {
            if let Sender::Http1(sender) = &mut lease.sender
                && !matches!(tokio::time::timeout(keep, sender.ready()).await, Ok(Ok(())))
            {
                return;
            }
            if let Some(pool) = pool.upgrade() {
                pool.keep(lease);
            }
        });
    }

    /// Keeps a connection that several requests can use at once.
    pub(crate) fn share(self: &Arc<Self>, lease: &Lease) {
        if let Sender::Http2(sender) = &lease.sender {
            self.keep(lease.share(sender.clone()));
        }
    }

    fn keep(self: &Arc<Self>, lease: Lease) {
        let mut waiting = self.lock();
        let same = waiting.idle.entry(lease.key.clone()).or_default();
        if same.len() < MOST_EACH {
            same.push(Idle { lease, since: Instant::now() });
        }
        if !std::mem::replace(&mut waiting.swept, true) {
            tokio::spawn(sweep(Arc::downgrade(self), self.keep));
        }
    }

    /// Ends those that waited too long, and those that `stays` does not want. Whether any are left.
    pub(crate) fn retain(&self, stays: impl Fn(&Key) -> bool) -> bool {
        let mut waiting = self.lock();
        waiting.idle.retain(|key, same| {
            same.retain(|idle| stays(key) && self.good(idle));
            !same.is_empty()
        });
        !waiting.idle.is_empty()
    }

    /// As [`Pool::retain`], by the sweeper, which goes when there is nothing left for it.
    fn sweep(&self) -> bool {
        self.retain(|_| true);
        let mut waiting = self.lock();
        waiting.swept = !waiting.idle.is_empty();
        waiting.swept
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn good(&self, idle: &Idle) -> bool {
        let open = match &idle.lease.sender {
            Sender::Http1(sender) => sender.is_ready(),
            Sender::Http2(sender) => http2::SendRequest::is_ready(sender),
        };
        open && idle.since.elapsed() < self.keep && idle.lease.born.elapsed() < self.age
    }
}

async fn sweep(pool: Weak<Pool>, keep: Duration) {
    loop {
        tokio::time::sleep(keep / 2 + Duration::from_millis(10)).await;
        if !pool.upgrade().is_some_and(|pool| pool.sweep()) {
            return;
        }
    }
}

impl Lease {
    fn share(&self, sender: http2::SendRequest<crate::upload::Upload>) -> Lease {
        Lease { key: self.key.clone(), sender: Sender::Http2(sender), life: self.life.clone(), born: self.born }
    }
}
