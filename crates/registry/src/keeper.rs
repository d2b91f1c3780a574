//! A thread that makes the audit log last: once a second, and at once after a change. Once an hour it lets go of what is
//! older than the operator wants to keep.

use crate::audit::{Announced, Begin, Keep, Link, Old};
use crate::clock::now;
use crate::files::locked;
use crate::registry::Stores;
use crate::{Cause, RegistryError};
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_secs(1);
const TRIM_PERIOD: Duration = Duration::from_secs(3600);
const TRIM_TROUBLED: Duration = Duration::from_secs(60);

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
                trim_at = Instant::now() + self.trim(&mut begin, Keep(keep));
            }
        }
    }

    /// Announces what will go and lets go of what was announced, and gives when to look again. What could not be done is
    /// tried again.
    fn trim(&self, begin: &mut Begin, keep: Keep) -> Duration {
        let audit = &self.stores.audit;
        let done = self.announce(*begin, keep).and_then(|announced| Ok((announced, self.let_go(begin, keep)?)));
        let (trouble, pause) = match done {
            Ok((announced, gone)) if announced.more || gone.more => (announced.trouble.or(gone.trouble), PERIOD),
            Ok((announced, gone)) => (announced.trouble.or(gone.trouble), TRIM_PERIOD),
            Err(error) => (Some(error.to_string()), TRIM_TROUBLED),
        };
        audit.set_trim_trouble(trouble);
        pause
    }

    fn announce(&self, begin: Begin, keep: Keep) -> Result<Old, Cause> {
        let Stores { database, audit, .. } = &*self.stores;
        audit.leave_old_file(keep)?;
        if audit.is_stuck() {
            return Ok(Old::default()); // what waits for the disk should not be this
        }
        let known = locked(&self.recorded).in_database;
        let from = database.announced()?.last().map_or(begin, |last| last.begin);
        let mut old = audit.old(from, u64::MAX, known, keep.0.saturating_sub(keep.ahead()))?;
        if let Some(next) = old.begin {
            let line = audit.announce(&next)?;
            self.record()?;
            if locked(&self.recorded).in_database.seq >= line {
                database.record_announced(&Announced { begin: next, at: now() })?;
            } else {
                old.more = false; // the disk does not keep it: it is announced again, but not at once
            }
        }
        Ok(old)
    }

    fn let_go(&self, begin: &mut Begin, keep: Keep) -> Result<Old, Cause> {
        let Stores { database, audit, .. } = &*self.stores;
        // What a host had no time for any more.
        audit.remove_before(begin)?;
        let announced = database.announced()?;
        let mut due = announced.iter().filter(|one| one.at.saturating_add(keep.ahead().as_secs()) <= now());
        let Some(next) = due.next() else { return Ok(Old::default()) };
        let known = locked(&self.recorded).in_database;
        let mut old = audit.old(*begin, next.begin.segment, known, keep.0)?;
        if old.begin == Some(next.begin) {
            database.record_begin(&next.begin)?;
            *begin = next.begin;
            audit.remove_before(begin)?;
            old.more |= due.next().is_some();
        }
        Ok(old)
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
