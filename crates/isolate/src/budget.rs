//! The CPU time of a compartment that serves many calls, held by a timer of the host's.
//!
//! The compartment says which call its code runs for, and the host believes that for the question whose budget it is.
//! That none of them uses more than it may is the kernel's clock and the host's timer: code that has taken the
//! compartment over can change neither.

use crate::process::View;
use isolate_wire::with_grace;
use jail::cpu_timer::CpuTimer;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The account of what belongs to no call in flight.
pub(crate) const NOBODY: u32 = 0;

/// After the timer has rung the driver decides. When the process has used this much more and is still there, the thread that
/// the timer rings at kills it.
const HARD: Duration = Duration::from_millis(200);

/// A compartment that says all the time who runs costs the host no more than a look at its clock in this time.
const LOOK: Duration = Duration::from_micros(200);

/// What is rung, and what is known of it on the thread of the timers.
struct Bell {
    process: View,
    /// CPU time at which the payer's budget is used up, in nanoseconds.
    due: AtomicU64,
    rang: Notify,
    killed: AtomicBool,
}

impl Bell {
    fn ring(&self) {
        let (Some(used), due) = (self.process.cpu_time(), self.due()) else { return };
        if used >= due + HARD {
            self.killed.store(true, Ordering::SeqCst);
            self.process.kill();
        }
        // Set anew meanwhile: it rings again in time.
        if used >= due {
            self.rang.notify_one();
        }
    }

    fn due(&self) -> Duration {
        Duration::from_nanos(self.due.load(Ordering::SeqCst))
    }
}

struct Account {
    used: Duration,
    allowed: Duration,
}

pub(crate) struct Budget {
    bell: Arc<Bell>,
    timer: CpuTimer,
    accounts: HashMap<u32, Account>,
    payer: u32,
    /// CPU time of the process, and the time, when the payer was last charged.
    since: Duration,
    looked: Instant,
}

impl Budget {
    /// Of a process that is known. Nothing is in flight, and it may use `idle`.
    pub(crate) fn new(process: View, idle: Duration) -> Result<Budget, jail::Error> {
        let (due, killed) = (AtomicU64::new(0), AtomicBool::new(false));
        let bell = Arc::new(Bell { process, due, rang: Notify::new(), killed });
        let ring = bell.clone();
        let timer = bell.process.cpu_timer(Arc::new(move || ring.ring()))?;
        let accounts = HashMap::from([(NOBODY, Account { used: Duration::ZERO, allowed: idle })]);
        let mut budget = Budget { bell, timer, accounts, payer: NOBODY, since: Duration::ZERO, looked: Instant::now() };
        budget.set();
        Ok(budget)
    }

    /// Waits until the payer may have used up what it had.
    pub(crate) async fn rang(&self) {
        self.bell.rang.notified().await;
    }

    /// Whether the timer's thread had to end it.
    pub(crate) fn killed(&self) -> bool {
        self.bell.killed.load(Ordering::SeqCst)
    }

    /// Opens an account. What belongs to nobody may use as much once more. `pays` if nobody else can be running.
    pub(crate) fn open(&mut self, id: u32, budget: Duration, pays: bool) {
        self.charge();
        let allowed = with_grace(budget);
        for id in [NOBODY, id] {
            self.accounts.insert(id, Account { used: Duration::ZERO, allowed });
        }
        if pays {
            self.payer = id;
        }
        self.set();
    }

    /// From here on this one pays, or nobody if it is not in flight.
    pub(crate) fn switch(&mut self, id: u32) {
        let quick = self.looked.elapsed() < LOOK;
        if !quick {
            self.charge();
        }
        self.payer = if self.accounts.contains_key(&id) { id } else { NOBODY };
        // The timer is set for whoever paid before; when it rings, all is looked at.
        if !quick {
            self.set();
        }
    }

    /// The account is closed; `next` pays now, if the one that is closed did.
    pub(crate) fn close(&mut self, id: u32, next: u32) {
        self.charge();
        self.accounts.remove(&id);
        if self.payer == id {
            self.payer = if self.accounts.contains_key(&next) { next } else { NOBODY };
        }
        self.set();
    }

    /// Nothing is in flight any more: from now on it may use `idle`.
    pub(crate) fn rest(&mut self, idle: Duration) {
        self.charge();
        self.accounts.clear();
        self.accounts.insert(NOBODY, Account { used: Duration::ZERO, allowed: idle });
        self.payer = NOBODY;
        self.set();
    }

    /// Who has used more than it may; otherwise the timer is set for what is left.
    pub(crate) fn check(&mut self) -> Option<u32> {
        self.charge();
        let over = self.accounts.get(&self.payer).is_none_or(|account| account.used >= account.allowed);
        self.set();
        over.then_some(self.payer)
    }

    fn charge(&mut self) {
        self.looked = Instant::now();
        // Of a process that is gone there is no clock, and no need for one.
        let Some(now) = self.bell.process.cpu_time() else { return };
        let spent = now.saturating_sub(std::mem::replace(&mut self.since, now));
        if let Some(account) = self.accounts.get_mut(&self.payer) {
            account.used += spent;
        }
    }

    /// Sets the timer for what the payer has left. A process whose limit cannot be held is ended.
    fn set(&mut self) {
        let left = self.accounts.get(&self.payer).map(|account| account.allowed.saturating_sub(account.used));
        let due = self.since + left.unwrap_or_default();
        self.bell.due.store(u64::try_from(due.as_nanos()).unwrap_or(u64::MAX), Ordering::SeqCst);
        if self.timer.set(due, HARD).is_err() {
            self.bell.process.kill();
        }
    }
}
