//! A process behind the wall, by a handle of the kernel's.

#[cfg(test)]
mod tests;

use crate::zygote::Zygote;
use jail::cpu_timer::{CpuTimer, Ring};
use jail::pidfd::{Pace, PidFd};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// A process. Dropping it kills it.
pub(crate) struct Process {
    whereabouts: Arc<Whereabouts>,
}

/// A look at a process, without a say in how long it lives.
#[derive(Clone)]
pub(crate) struct View {
    whereabouts: Arc<Whereabouts>,
}

/// Which process it is: known at once, or when its zygote has said so. A call does not wait for that, and most are over
/// before anybody has asked.
pub(crate) struct Whereabouts {
    handle: OnceLock<Handle>,
    zygote: Weak<Zygote>,
    /// Whether there is, or will be, such a process.
    ordered: AtomicBool,
    /// Whether it is to be killed as soon as it is known.
    unwanted: AtomicBool,
}

pub(crate) struct Handle {
    pub(crate) handle: PidFd,
    /// `None`: it was gone when its zygote was heard.
    pub(crate) pid: Option<i32>,
    /// The zygote's name for it.
    pub(crate) id: u32,
}

impl Whereabouts {
    pub(crate) fn handle(&self) -> Option<&Handle> {
        self.handle.get()
    }

    pub(crate) fn ordered(&self) {
        self.ordered.store(true, Ordering::SeqCst);
    }

    pub(crate) fn settle(&self, handle: Handle) {
        let handle = self.handle.get_or_init(|| handle);
        // Set before this was looked at, or else the handle was seen by who set it.
        if self.unwanted.load(Ordering::SeqCst) {
            handle.kill();
        }
    }

    /// The handle, if the zygote has said by now what it is.
    fn known(&self) -> Option<&Handle> {
        // Nothing is said of one that nobody has ordered.
        if self.handle.get().is_none()
            && self.ordered.load(Ordering::SeqCst)
            && let Some(zygote) = self.zygote.upgrade()
        {
            zygote.look();
        }
        self.handle.get()
    }
}

impl Handle {
    /// Safe to repeat, and on a process that has ended.
    fn kill(&self) {
        // The handle names this process and no other, so the only failure is that it is gone already.
        let _ = self.handle.kill();
    }
}

impl View {
    /// CPU time so far, from the kernel. `None` once it is reaped, and before it is there.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        let known = self.whereabouts.known()?;
        known.handle.cpu_time(known.pid?).ok()
    }

    /// A timer on its CPU time. Only of one that is known and there.
    pub(crate) fn cpu_timer(&self, ring: Ring) -> Result<CpuTimer, jail::Error> {
        let gone = || jail::Error::CpuTimer(io::ErrorKind::NotFound.into());
        let known = self.whereabouts.known().ok_or_else(gone)?;
        CpuTimer::new(&known.handle, known.pid.ok_or_else(gone)?, ring)
    }

    /// Only of one that is known. Safe to repeat.
    pub(crate) fn kill(&self) {
        if let Some(known) = self.whereabouts.handle() {
            known.kill();
        }
    }

    /// One that is gone competes with nobody, and where the kernel refuses, all compete as they would anyway.
    pub(crate) fn set_pace(&self, pace: Pace) {
        if let Some(known) = self.whereabouts.known()
            && let Some(pid) = known.pid
        {
            let _ = known.handle.set_pace(pid, pace);
        }
    }
}

impl Process {
    /// One that was started by the host itself.
    pub(crate) fn new(handle: PidFd) -> io::Result<Process> {
        let pid = handle.pid().map_err(io::Error::other)?;
        let (zygote, ordered, unwanted) = (Weak::new(), AtomicBool::new(true), AtomicBool::new(false));
        let handle = OnceLock::from(Handle { handle, pid: Some(pid), id: 0 });
        Ok(Process { whereabouts: Arc::new(Whereabouts { handle, zygote, ordered, unwanted }) })
    }

    /// One that the zygote will be told to fork.
    pub(crate) fn expected(zygote: &Arc<Zygote>) -> Process {
        Process::of(Arc::downgrade(zygote))
    }

    /// None at all, for fuzzing.
    pub(crate) fn nobody() -> Process {
        Process::of(Weak::new())
    }

    fn of(zygote: Weak<Zygote>) -> Process {
        let handle = OnceLock::new();
        let (ordered, unwanted) = (AtomicBool::new(false), AtomicBool::new(false));
        Process { whereabouts: Arc::new(Whereabouts { handle, zygote, ordered, unwanted }) }
    }

    pub(crate) fn whereabouts(&self) -> &Arc<Whereabouts> {
        &self.whereabouts
    }

    /// Of one that the host has started itself.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.whereabouts.handle().and_then(|handle| handle.pid)
    }

    pub(crate) fn view(&self) -> View {
        View { whereabouts: self.whereabouts.clone() }
    }

    /// Safe to repeat, and on a process that has ended. One that is not there yet is killed as soon as it is.
    pub(crate) fn kill(&self) {
        let whereabouts = &self.whereabouts;
        if !whereabouts.ordered.load(Ordering::SeqCst) {
            return;
        }
        whereabouts.unwanted.store(true, Ordering::SeqCst);
        if let Some(handle) = whereabouts.known() {
            return handle.kill();
        }
        // With its zygote gone, it is gone, too: it dies with it.
        let Some(zygote) = whereabouts.zygote.upgrade() else { return };
        let whereabouts = whereabouts.clone();
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move { zygote.find(&whereabouts).await.map(Handle::kill) })),
            Err(_) => zygote.end(),
        }
    }

    /// CPU time so far, from the kernel. `None` once it is reaped, and before it is there.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        self.view().cpu_time()
    }

    /// Whether its zygote has not said yet which it is.
    pub(crate) fn unknown(&self) -> bool {
        self.whereabouts.known().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
