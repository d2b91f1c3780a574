//! A thread that makes the audit log last: once a second, and at once after a change. Once an hour it lets go of what is
//! older than the operator wants to keep.

use crate::RegistryError;
use crate::audit::{Begin, Link};
use crate::files::locked;
use crate::registry::Stores;
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_secs(1);
const TRIM_PERIOD: Duration = Duration::from_secs(3600);

pub(crate) struct Keeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    stores: Arc<Stores>,
    wanted: Mutex<Wanted>,
    woken: Condvar,
    /// The head as the database has it. Locked while the log is being settled, so that it never goes backwards.
    recorded: Mutex<Recorded>,
    /// What is older than this goes.
    keep: Option<Duration>,
}

#[derive(Default)]
struct Wanted {
    now: bool,
    stop: bool,
}

struct Recorded {
    /// What the database knows.
    in_database: Link,
    /// What it should know.
    safe: Link,
}

impl Keeper {
    pub(crate) fn start(
        stores: Arc<Stores>,
        recorded: Link,
        begin: Begin,
        keep: Option<Duration>,
    ) -> io::Result<Keeper> {
        let shared = Arc::new(Shared {
            stores,
            wanted: Mutex::new(Wanted { now: true, stop: false }),
            woken: Condvar::new(),
            recorded: Mutex::new(Recorded { in_database: recorded, safe: recorded }),
            keep,
        });
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name("registry".to_owned()).spawn(move || theirs.run(begin))?;
        Ok(Keeper { shared, thread: Some(thread) })
    }

    /// Does not wait.
    pub(crate) fn wake(&self) {
        locked(&self.shared.wanted).now = true;
        self.shared.woken.notify_one();
    }

    /// Waits until everything so far is safe and recorded.
    pub(crate) fn settle(&self) -> Result<(), RegistryError> {
        self.shared.settle()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        locked(&self.shared.wanted).stop = true;
        self.shared.woken.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self, mut begin: Begin) {
        let mut trim_at = Instant::now();
        loop {
            let wanted = locked(&self.wanted);
            let idle = |wanted: &mut Wanted| !wanted.now && !wanted.stop;
            let (mut wanted, _) =
                self.woken.wait_timeout_while(wanted, PERIOD, idle).unwrap_or_else(std::sync::PoisonError::into_inner);
            wanted.now = false;
            let stop = wanted.stop;
            drop(wanted);
            // What is wrong stands in the health of what failed, and it is tried again.
            let _ = self.settle();
            if stop {
                return;
            }
            if let Some(keep) = self.keep.filter(|_| Instant::now() >= trim_at) {
                let more = self.trim(&mut begin, keep).unwrap_or(false);
                trim_at = Instant::now() + if more { PERIOD } else { TRIM_PERIOD };
            }
        }
    }

    /// Lets go of what is old, and tells whether there is more. What could not be done is tried again another time.
    fn trim(&self, begin: &mut Begin, keep: Duration) -> Result<bool, RegistryError> {
        let Stores { database, audit, .. } = &*self.stores;
        let failed = |error: io::Error| RegistryError::internal("the audit log cannot be shortened", error);
        // What a host had no time for any more.
        audit.remove_before(begin).map_err(failed)?;
        let known = locked(&self.recorded).in_database;
        let old = audit.old(*begin, known, keep);
        let Some(next) = old.begin else { return Ok(old.more) };
        // First the log says so, then the database, and then it is so.
        let line =
            audit.say_begin(&next).map_err(|error| RegistryError::internal("the audit log takes nothing", error))?;
        self.record()?;
        if locked(&self.recorded).in_database.seq < line {
            return Ok(true);
        }
        database.record_begin(&next)?;
        *begin = next;
        audit.remove_before(begin).map_err(failed)?;
        Ok(old.more)
    }

    fn settle(&self) -> Result<(), RegistryError> {
        let recorded = self.record();
        self.stores.database.scrub();
        recorded
    }

    fn record(&self) -> Result<(), RegistryError> {
        let Stores { database, audit, outbox } = &*self.stores;
        let mut recorded = locked(&self.recorded);
        outbox.forward(audit);
        if let Some(link) = audit.sync() {
            recorded.safe = link;
        }
        let written = outbox.safe(recorded.safe);
        // After trouble it is tried until it works: that is how it is noticed that the trouble is over.
        if recorded.safe == recorded.in_database && written.is_empty() && database.trouble().is_none() {
            return Ok(());
        }
        database.record_head(recorded.safe, &written)?;
        recorded.in_database = recorded.safe;
        outbox.forget(&written);
        Ok(())
    }
}
