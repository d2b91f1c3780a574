//! Threads for what strangers make the host compute: few, and never all of them for one tenant.
//!
//! Requests are served by threads that must not be kept. What takes longer than a moment (large bodies, dear checks) is done
//! here. It cannot be stopped once it has begun, so it is bounded before; its CPU time is for the tenant to pay.

use egress::thread_cpu_us;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// JSON up to this length is read where it is.
pub const QUICK_BYTES: usize = 64 << 10;

pub struct Workers {
    places: Arc<Semaphore>,
    most_of_one_tenant: usize,
    tenants: Mutex<HashMap<String, Weak<Semaphore>>>,
}

pub struct Place {
    _own: Option<OwnedSemaphorePermit>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Default for Workers {
    /// Half of the processors, for the other half serves everybody.
    fn default() -> Workers {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Workers::new((processors / 2).max(2))
    }
}

impl Workers {
    pub fn new(threads: usize) -> Workers {
        Workers {
            places: Arc::new(Semaphore::new(threads)),
            most_of_one_tenant: (threads / 2).max(1),
            tenants: Mutex::default(),
        }
    }

    /// A place, for work that is done elsewhere; it is free again when this is dropped.
    pub async fn enter(&self, tenant: &str) -> Place {
        // The tenant's place comes first: those who wait for one of the host's are then few of each tenant. Neither
        // is ever closed; should one be, the work is done without.
        let own = self.of(tenant).acquire_owned().await.ok();
        Place { _own: own, _place: self.places.clone().acquire_owned().await.ok() }
    }

    /// Does it, as soon as there is a place, and gives the microseconds of CPU time that it took.
    pub async fn run<T>(&self, tenant: &str, work: impl FnOnce() -> T) -> (T, u64) {
        let _place = self.enter(tenant).await;
        let measured = || {
            let before = thread_cpu_us();
            let done = work();
            (done, thread_cpu_us().saturating_sub(before))
        };
        match Handle::current().runtime_flavor() {
            RuntimeFlavor::CurrentThread => measured(),
            // The runtime goes on with another thread, so whatever the work borrows may stay where it is.
            _ => tokio::task::block_in_place(measured),
        }
    }

    fn of(&self, tenant: &str) -> Arc<Semaphore> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = tenants.get(tenant).and_then(Weak::upgrade) {
            return known;
        }
        tenants.retain(|_, places| places.strong_count() > 0);
        let new = Arc::new(Semaphore::new(self.most_of_one_tenant));
        tenants.insert(tenant.to_owned(), Arc::downgrade(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn one_tenant_never_has_all_threads() {
        let workers = Arc::new(Workers::new(4));
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (wait, inside) = (Arc::new(Mutex::new(wait)), Arc::new(AtomicUsize::new(0)));
        let hogs: Vec<_> = (0..8)
            .map(|_| {
                let (workers, wait, inside) = (workers.clone(), wait.clone(), inside.clone());
                tokio::spawn(async move {
                    workers
                        .run("greedy", || {
                            inside.fetch_add(1, Ordering::SeqCst);
                            // Until the sender is gone.
                            let _ = wait.lock().unwrap_or_else(PoisonError::into_inner).recv();
                        })
                        .await
                })
            })
            .collect();
        while inside.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // The runtime has two threads, both are kept, and this goes on.
        for number in 0..20 {
            let (done, _) = workers.run("another", || number * 2).await;
            assert_eq!(done, number * 2);
            assert_eq!(inside.load(Ordering::SeqCst), 2);
        }
        drop(go);
        for hog in hogs {
            hog.await.unwrap();
        }
        assert_eq!(inside.load(Ordering::SeqCst), 8);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_computed_is_told() {
        let workers = Workers::new(2);
        let (_, slept) = workers.run("a", || std::thread::sleep(Duration::from_millis(50))).await;
        let (_, computed) = workers
            .run("a", || {
                let before = thread_cpu_us();
                while thread_cpu_us() < before + 20_000 {}
            })
            .await;
        assert!(computed >= 20_000 && slept < computed, "{slept} {computed}");
    }
}
