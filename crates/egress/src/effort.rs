//! What the host computes for a tenant: a little at a time, on one thread at a time, and the tenant pays for it.

use crate::ledger::Trace;
use crate::mask::Masker;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::Semaphore;

/// One tenant's turn to have something computed.
pub(crate) struct Effort(Semaphore);

impl Effort {
    pub(crate) fn new() -> Effort {
        Effort(Semaphore::new(1))
    }

    /// Does it when nothing else is being computed for the tenant. It must be short: the thread serves others as well.
    async fn take<T>(&self, trace: &Trace, work: impl FnOnce() -> T) -> T {
        // Never closed; should it be, the work is done all the same.
        let _turn = self.0.acquire().await.ok();
        // Others first, whatever has been computed before.
        tokio::task::yield_now().await;
        let before = thread_cpu_us();
        let done = work();
        trace.computed(thread_cpu_us().saturating_sub(before));
        done
    }

    /// Searches the next part of a text for secrets, slice by slice; `ended`: it is the last.
    pub(crate) async fn mask(&self, masker: &mut Masker, text: &[u8], ended: bool, trace: &Trace) -> Vec<u8> {
        if masker.is_idle() {
            return text.to_vec();
        }
        let (before, mut out) = (masker.found(), Vec::with_capacity(text.len()));
        for slice in text.chunks(masker.slice()) {
            out.extend(self.take(trace, || masker.push(slice)).await);
        }
        if ended {
            out.extend(self.take(trace, || masker.finish()).await);
        }
        trace.masked(masker.found() - before);
        out
    }
}

/// CPU time that this thread has used, in microseconds.
pub fn thread_cpu_us() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1000
}
