//! The base zygotes: one for all tenants, or one for each.

use crate::base;
use crate::census::Census;
use crate::wall::{IsolateSettings, Together, WallError};
use crate::zygote::Zygote;
use isolate_wire::Hello;
use jail::cgroup::Group;
use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Which deployments come from the same base zygote. All that do have the same layout of addresses, the same stack canary and
/// the same seed of V8's hash tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseFor {
    /// All of them.
    Everybody,
    /// Those of one tenant.
    Tenant,
}

/// A base zygote's forks share its address layout, so it is replaced after this many deployments.
const WORN_FORKS: u64 = 64;

pub(crate) struct Bases {
    settings: IsolateSettings,
    /// One that nobody has been forked from, for the next tenant.
    unused: Mutex<Option<Arc<Zygote>>>,
    held: std::sync::Mutex<HashMap<Owner, Slot>>,
    census: Arc<Census>,
    /// Declared last: what is in it goes first. Waits for the kernel to have ended the last process.
    group: Option<Group>,
}

/// The tenant, if each has its own, and whether V8 may compile.
type Owner = (Option<String>, bool);

struct Slot {
    /// Held while it starts, so that many who want it start it once.
    base: Arc<Mutex<Option<Arc<Zygote>>>>,
    used: Instant,
}

impl Bases {
    /// Starts a first one: a host that cannot jail says so here and not at the first call.
    pub(crate) async fn start(settings: IsolateSettings, group: Option<Group>) -> Result<(Bases, Hello), WallError> {
        let census = Census::start().map_err(WallError::Spawn)?;
        let bases = Bases { settings, unused: Mutex::default(), held: Default::default(), census, group };
        let (first, hello) = bases.start_one(false).await?;
        *bases.unused.lock().await = Some(first);
        Ok((bases, hello))
    }

    pub(crate) fn group(&self) -> Option<&Group> {
        self.group.as_ref()
    }

    pub(crate) fn together(&self) -> Option<Together> {
        self.settings.together
    }

    /// The base zygote of a tenant's deployments, started or replaced if need be. Deployments of a replaced one, or of one
    /// that was given up for another tenant's, keep it alive.
    pub(crate) async fn of(self: &Arc<Bases>, tenant: &str, jit: bool) -> Result<Arc<Zygote>, WallError> {
        let owner = match self.settings.base {
            BaseFor::Everybody => (None, jit),
            BaseFor::Tenant => (Some(tenant.to_owned()), jit),
        };
        let slot = self.slot(owner);
        let mut held = slot.lock().await;
        if let Some(base) = &*held
            && base.alive()
            && base.forks() < WORN_FORKS
        {
            return Ok(base.clone());
        }
        let unused = if jit { None } else { self.take_unused().await };
        let base = match unused {
            Some(base) => base,
            None => self.start_one(jit).await?.0,
        };
        *held = Some(base.clone());
        Ok(base)
    }

    async fn start_one(&self, jit: bool) -> Result<(Arc<Zygote>, Hello), WallError> {
        let start = self.settings.start(jit);
        let (zygote, hello) = base::start(&self.settings, &start, self.group.as_ref()).await?;
        let base = Arc::new(zygote);
        self.census.add(&base);
        Ok((base, hello))
    }

    /// The one that waits, if it lives. Where each tenant has its own, the next one is started meanwhile.
    async fn take_unused(self: &Arc<Bases>) -> Option<Arc<Zygote>> {
        let taken = self.unused.lock().await.take();
        if self.settings.base == BaseFor::Tenant {
            let bases = self.clone();
            tokio::spawn(async move {
                let mut unused = bases.unused.lock().await;
                if unused.is_none() {
                    // Without, the next tenant starts its own and hears the reason.
                    *unused = bases.start_one(false).await.ok().map(|(base, _)| base);
                }
            });
        }
        taken.filter(|base| base.alive())
    }

    /// Where this owner's is. Beyond the bound, the one that was used longest ago is given up, first of those that have no
    /// deployment.
    fn slot(&self, owner: Owner) -> Arc<Mutex<Option<Arc<Zygote>>>> {
        let mut held = self.held();
        let bound = self.settings.bases.max(1);
        while held.len() >= bound && !held.contains_key(&owner) {
            let longest = held.iter().min_by_key(|(_, slot)| (slot.has_deployments(), slot.used));
            let Some(longest) = longest.map(|(owner, _)| owner.clone()) else { break };
            held.remove(&longest);
        }
        let slot = held.entry(owner).or_insert_with(|| Slot { base: Arc::default(), used: Instant::now() });
        slot.used = Instant::now();
        slot.base.clone()
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Owner, Slot>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Whether something was forked from it that lives, or may be at any moment.
    fn has_deployments(&self) -> bool {
        match self.base.try_lock() {
            Ok(base) => base.as_ref().is_some_and(|base| Arc::strong_count(base) > 1),
            Err(_) => true,
        }
    }
}
