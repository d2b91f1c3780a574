//! How much a tenant and a key may use.
//!
//! Every call is on the account of its tenant, and on that of its key if the key has a quota of its own; both must admit
//! it. Limits are read from the registry's directory with each request, so a change counts from the next one on. Only the
//! monotonic clock is used: setting the wall clock gives nobody anything.

mod account;
mod bucket;
mod limits;

pub use limits::QuotaDefaults;

use crate::auth::Caller;
use account::{Account, State, TooMuch};
use arc_swap::ArcSwap;
use dashmap::DashMap;
use limits::Limits;
use registry::Tenant;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// New accounts after which the idle ones are looked for.
const SWEEP_AFTER: usize = 256;

pub struct Quotas {
    defaults: ArcSwap<QuotaDefaults>,
    tenants: Accounts,
    keys: Accounts,
    /// Of tenants, at the admin API.
    admins: Accounts,
}

/// A call that was admitted. Its places are free again when this is dropped.
pub struct Admission {
    tenant: Arc<Account>,
    key: Option<Arc<Account>>,
}

/// A call that was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// The quota's name in the registry: `requests_per_s`, `concurrent`, `cpu_s_per_min`, `egress_bytes_per_min`; or `audit_bytes_per_min`.
    pub what: &'static str,
    /// `tenant` or `key`.
    pub whose: &'static str,
    pub retry_after: Duration,
}

impl Quotas {
    pub fn new(defaults: QuotaDefaults) -> Quotas {
        Quotas {
            defaults: ArcSwap::from_pointee(defaults),
            tenants: Accounts::default(),
            keys: Accounts::default(),
            admins: Accounts::default(),
        }
    }

    /// What was used so far stays used.
    pub fn set_defaults(&self, defaults: QuotaDefaults) {
        self.defaults.store(Arc::new(defaults));
    }

    /// Gives a call a place. Its message was counted when it came ([`Quotas::hear`]).
    pub fn admit(&self, tenant: &Tenant, caller: &Caller, now: Instant) -> Result<Admission, Exceeded> {
        let (tenant, key) = self.count(tenant, caller, now, State::check_place, State::enter)?;
        Ok(Admission { tenant, key })
    }

    /// Whether there is a place. None is taken.
    pub fn has_room(&self, tenant: &Tenant, caller: &Caller, now: Instant) -> Result<(), Exceeded> {
        self.count(tenant, caller, now, State::check_place, |_| ()).map(drop)
    }

    /// Counts a message, before it is read. It needs no place: whoever has none left may still cancel.
    pub fn hear(&self, tenant: &Tenant, caller: &Caller, now: Instant) -> Result<(), Exceeded> {
        self.count(tenant, caller, now, State::check_rate, State::hear).map(drop)
    }

    /// Counts a request to the admin API: each may write to the disk. Its rate is another than that of calls, so a tenant
    /// whose callers use up all of theirs can still revoke their keys.
    pub fn ask(&self, tenant: &str, now: Instant) -> Result<(), Exceeded> {
        let account = self.admins.get(tenant, now);
        let mut state = account.lock();
        let exceeded = |(what, retry_after)| Exceeded { what, whose: "tenant", retry_after };
        state.check_rate(&Limits::of_admins(), now).map_err(exceeded)?;
        state.hear();
        Ok(())
    }

    /// What the host has computed for a request beside its call.
    pub fn charge(&self, tenant: &Tenant, caller: &Caller, cpu_us: u64, now: Instant) {
        let key = Limits::of_key(&caller.quota, &tenant.quota, &self.defaults.load());
        let key = key.map(|_| self.keys.get(&caller.quota_id, now));
        for account in std::iter::once(self.tenants.get(&tenant.name, now)).chain(key) {
            account.lock().spend(cpu_us, now);
        }
    }

    fn count(
        &self,
        tenant: &Tenant,
        caller: &Caller,
        now: Instant,
        check: fn(&mut State, &Limits, Instant) -> Result<(), TooMuch>,
        enter: fn(&mut State),
    ) -> Result<(Arc<Account>, Option<Arc<Account>>), Exceeded> {
        let defaults = self.defaults.load();
        let of_tenant = Limits::of_tenant(&tenant.quota, &defaults);
        let of_key = Limits::of_key(&caller.quota, &tenant.quota, &defaults);
        let tenant = self.tenants.get(&tenant.name, now);
        let key = of_key.map(|limits| (self.keys.get(&caller.quota_id, now), limits));
        let exceeded = |whose| move |(what, retry_after)| Exceeded { what, whose, retry_after };

        // Always the tenant's before the key's, so that two calls never wait for each other.
        let mut in_tenant = tenant.lock();
        check(&mut in_tenant, &of_tenant, now).map_err(exceeded("tenant"))?;
        if let Some((account, limits)) = &key {
            let mut in_key = account.lock();
            check(&mut in_key, limits, now).map_err(exceeded("key"))?;
            enter(&mut in_key);
        }
        enter(&mut in_tenant);
        drop(in_tenant);
        Ok((tenant, key.map(|(account, _)| account)))
    }
}

impl Admission {
    /// What the call has used. May be more than there was: the next ones pay for it by waiting.
    pub fn spend(&self, cpu_us: u64) {
        self.spend_at(cpu_us, Instant::now());
    }

    /// Whether arguments and results of this length may be recorded. What is too much for the minute is left out.
    pub fn may_record(&self, bytes: u64) -> bool {
        self.tenant.lock().record(bytes, Instant::now())
    }

    /// What the call's line in the audit log takes.
    pub fn audit(&self, bytes: u64) {
        self.tenant.lock().audit(bytes, Instant::now());
    }

    /// What bytes are spent from as they go. It may outlive the call for the moment that its last bytes take.
    pub fn egress(&self) -> Arc<dyn egress::Budget> {
        Arc::new(EgressBudget(self.accounts().cloned().collect()))
    }

    fn spend_at(&self, cpu_us: u64, now: Instant) {
        self.accounts().for_each(|account| account.lock().spend(cpu_us, now));
    }

    fn accounts(&self) -> impl Iterator<Item = &Arc<Account>> {
        [Some(&self.tenant), self.key.as_ref()].into_iter().flatten()
    }
}

struct EgressBudget(Vec<Arc<Account>>);

impl egress::Budget for EgressBudget {
    fn spend(&self, bytes: u64) -> bool {
        let now = Instant::now();
        let mut left = true;
        // Everybody pays, also where somebody else has nothing left.
        for account in &self.0 {
            left &= account.lock().spend_egress(bytes, now);
        }
        left
    }

    fn computed(&self, cpu_us: u64) {
        let now = Instant::now();
        self.0.iter().for_each(|account| account.lock().spend(cpu_us, now));
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.accounts().for_each(|account| account.lock().leave());
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission").finish_non_exhaustive()
    }
}

impl Exceeded {
    /// For `Retry-After`: whole seconds, and never 0, which would mean now.
    pub fn retry_after_s(&self) -> u64 {
        let more = u64::from(self.retry_after.subsec_nanos() > 0);
        (self.retry_after.as_secs() + more).max(1)
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exceeded { what, whose, .. } = self;
        write!(f, "the {whose} has used up its quota `{what}`; try again in {} s", self.retry_after_s())
    }
}

impl std::error::Error for Exceeded {}

/// Accounts by name. One that would be no different if it were new is dropped, so there are about as many as there are
/// tenants and keys in use.
#[derive(Default)]
struct Accounts {
    by_name: DashMap<String, Arc<Account>>,
    /// Accounts made since idle ones were last looked for.
    made: AtomicUsize,
}

impl Accounts {
    fn get(&self, name: &str, now: Instant) -> Arc<Account> {
        if let Some(account) = self.by_name.get(name) {
            return account.clone();
        }
        // In proportion to what is there, so that looking costs each new account the same.
        let made = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        if made >= SWEEP_AFTER.max(self.by_name.len() / 2) {
            self.made.store(0, Ordering::Relaxed);
            self.sweep(now);
        }
        self.by_name.entry(name.to_owned()).or_insert_with(|| Arc::new(Account::new(now))).clone()
    }

    /// An account that somebody else holds may be about to change. Nobody can take hold of one meanwhile: the map's
    /// shard is locked.
    fn sweep(&self, now: Instant) {
        self.by_name.retain(|_, account| Arc::strong_count(account) > 1 || !account.lock().is_idle(now));
    }
}

#[cfg(test)]
mod tests;
