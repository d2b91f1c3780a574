//! What the host computes for a tenant: a little at a time, on one thread at a time, and the tenant pays for it.

use crate::ledger::Trace;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::Semaphore;

/// One tenant's turn to have something computed.
pub(crate) struct Effort(Semaphore);

impl Effort {
    pub(crate) fn new() -> Effort {
        Effort(Semaphore::new(1))
    }

    /// Does it when nothing else is being computed for the tenant. It must be short: the thread serves others as well.
    pub(crate) async fn take<T>(&self, trace: &Trace, work: impl FnOnce() -> T) -> T {
        // Never closed; should it be, the work is done all the same.
        let _turn = self.0.acquire().await.ok();
        // Others first, whatever has been computed before.
        tokio::task::yield_now().await;
        let before = thread_cpu_us();
        let done = work();
        trace.computed(thread_cpu_us().saturating_sub(before));
        done
    }
}

/// CPU time that this thread has used, in microseconds.
pub fn thread_cpu_us() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1000
}
