//! What a tenant has open, and how often it asks. Tenants share no limit, so none can take from another.

use crate::denied::Denied;
use crate::effort::Effort;
use crate::limits::Limits;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Beyond this many, those at rest are forgotten.
const MOST_AT_REST: usize = 256;
/// A tenant that really uses more hosts at once than this is refused.
const MOST_HOSTS: usize = 4096;

/// Tokens that come back with time.
struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn take(&mut self, rate: u64, burst: f64, now: Instant) -> Result<(), Duration> {
        let gained = now.saturating_duration_since(self.filled).as_secs_f64() * rate as f64;
        self.tokens = (self.tokens + gained).min(burst);
        self.filled = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - self.tokens) / (rate.max(1)) as f64))
    }
}

/// Places and rate of a tenant, or of one host of a tenant.
struct Share {
    places: Arc<Semaphore>,
    most: usize,
    rate: u64,
    burst: f64,
    bucket: Mutex<Bucket>,
}

impl Share {
    fn new(places: u64, rate: u64, limits: &Limits) -> Share {
        let most = usize::try_from(places).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let burst = (rate * limits.burst_s.max(1)) as f64;
        let bucket = Mutex::new(Bucket { tokens: burst, filled: Instant::now() });
        Share { places: Arc::new(Semaphore::new(most)), most, rate, burst, bucket }
    }

    fn take(&self, whose: &str) -> Result<(), Denied> {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.take(self.rate, self.burst, Instant::now()).map_err(|wait| {
            let ms = wait.as_millis() + 1;
            Denied::limit(format!("{whose} has had {} requests per second; try again in {ms} ms", self.rate))
        })
    }

    fn at_rest(&self) -> bool {
        let bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let gained = bucket.filled.elapsed().as_secs_f64() * self.rate as f64;
        self.places.available_permits() == self.most && bucket.tokens + gained >= self.burst
    }
}

pub(crate) struct Tenant {
    share: Share,
    hosts: Mutex<HashMap<String, Arc<Share>>>,
    pub(crate) lookups: Arc<Semaphore>,
    pub(crate) effort: Effort,
}

/// A request's places; they are free again when it is dropped.
pub(crate) struct Places {
    _tenant: OwnedSemaphorePermit,
    _host: OwnedSemaphorePermit,
}

impl Tenant {
    fn new(limits: &Limits) -> Tenant {
        let lookups = usize::try_from(limits.lookups_per_tenant).unwrap_or(1).clamp(1, 512);
        Tenant {
            share: Share::new(limits.open_per_tenant, limits.rate_per_tenant, limits),
            hosts: Mutex::default(),
            lookups: Arc::new(Semaphore::new(lookups)),
            effort: Effort::new(),
        }
    }

    pub(crate) async fn enter(&self, host: &str, limits: &Limits) -> Result<Places, Denied> {
        self.share.take("the tenant")?;
        let share = self.host(host, limits)?;
        share.take(host)?;
        let wait = Duration::from_millis(limits.queue_ms);
        let both = async {
            let host = share.places.clone().acquire_owned().await;
            (host, self.share.places.clone().acquire_owned().await)
        };
        match tokio::time::timeout(wait, both).await {
            Ok((Ok(host), Ok(tenant))) => Ok(Places { _tenant: tenant, _host: host }),
            _ => Err(Denied::limit(format!(
                "{} requests are open to {host}, or {} in all; read or cancel the bodies of those",
                limits.open_per_host, limits.open_per_tenant
            ))),
        }
    }

    fn host(&self, host: &str, limits: &Limits) -> Result<Arc<Share>, Denied> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = hosts.get(host) {
            return Ok(share.clone());
        }
        if hosts.len() >= MOST_AT_REST {
            hosts.retain(|_, share| Arc::strong_count(share) > 1 || !share.at_rest());
        }
        if hosts.len() >= MOST_HOSTS {
            return Err(Denied::limit("the tenant uses too many hosts at once"));
        }
        let share = Arc::new(Share::new(limits.open_per_host, limits.rate_per_host, limits));
        Ok(hosts.entry(host.to_owned()).or_insert(share).clone())
    }
}

#[derive(Default)]
pub(crate) struct Tenants(Mutex<HashMap<String, Arc<Tenant>>>);

impl Tenants {
    pub(crate) fn get(&self, name: &str, limits: &Limits) -> Arc<Tenant> {
        let mut tenants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tenant) = tenants.get(name) {
            return tenant.clone();
        }
        if tenants.len() >= MOST_AT_REST {
            // Forgetting one that is not at rest would give it a new burst.
            tenants.retain(|_, tenant| Arc::strong_count(tenant) > 1 || !tenant.share.at_rest());
        }
        let tenant = Arc::new(Tenant::new(limits));
        tenants.insert(name.to_owned(), tenant.clone());
        tenant
    }
}
