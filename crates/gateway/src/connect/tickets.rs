//! Connections that are being made. All of it is in memory: whoever is in the middle of one when the host ends begins again.

use oauth::{PENDING_SECONDS, Pending};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Of one caller at once, of one tenant, and of all.
const MOST_OF_A_CALLER: usize = 10;
const MOST_OF_A_TENANT: usize = 1000;
const MOST: usize = 10_000;
pub const LIFE: Duration = Duration::from_secs(PENDING_SECONDS);

/// Who wants to be connected to what.
#[derive(Clone)]
pub struct Want {
    pub tenant: String,
    pub provider: String,
    /// Whose connection it will be; empty for one that all callers of the tenant share.
    pub subject: String,
    /// The caller who asked, and who alone may confirm.
    pub asker: String,
    /// The same caller in words for people.
    pub who: String,
    /// The server whose call wants it, if a call did.
    pub server: Option<String>,
}

/// Somebody is at the provider's.
pub struct Flow {
    pub want: Want,
    pub pending: Pending,
    pub cookie: String,
}

enum Stage {
    /// Nobody has opened the link yet.
    Issued(Want),
    Begun(Box<Flow>),
}

impl Stage {
    fn want(&self) -> &Want {
        match self {
            Stage::Issued(want) => want,
            Stage::Begun(flow) => &flow.want,
        }
    }
}

#[derive(Default)]
pub struct Tickets(Mutex<HashMap<String, (Instant, Stage)>>);

impl Tickets {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Instant, Stage)>> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, (since, _)| since.elapsed() < LIFE);
        open
    }

    /// The oldest of a caller's makes room for its newest. One caller never takes another's place.
    fn put(&self, key: String, stage: Stage) -> Option<()> {
        let mut open = self.lock();
        let Want { tenant, asker, .. } = stage.want();
        let of_tenant = open.iter().filter(|(_, (_, other))| other.want().tenant == *tenant);
        let own = of_tenant.clone().filter(|(_, (_, other))| other.want().asker == *asker);
        let oldest = own.clone().min_by_key(|(_, (since, _))| *since).map(|(key, _)| key.clone());
        let full = of_tenant.count() >= MOST_OF_A_TENANT;
        if own.count() >= MOST_OF_A_CALLER || full {
            open.remove(&oldest?);
        }
        if open.len() >= MOST {
            return None;
        }
        open.insert(key, (Instant::now(), stage));
        Some(())
    }

    pub fn issue(&self, want: Want) -> Option<String> {
        let ticket = random()?;
        self.put(format!("ticket {ticket}"), Stage::Issued(want))?;
        Some(ticket)
    }

    pub fn look(&self, ticket: &str) -> Option<Want> {
        match self.lock().get(&format!("ticket {ticket}")) {
            Some((_, Stage::Issued(want))) => Some(want.clone()),
            _ => None,
        }
    }

    pub fn take(&self, ticket: &str) -> Option<Want> {
        match self.lock().remove(&format!("ticket {ticket}")) {
            Some((_, Stage::Issued(want))) => Some(want),
            _ => None,
        }
    }

    /// Gives the cookie that the browser comes back with.
    pub fn keep(&self, handle: &str, want: Want, pending: Pending) -> Option<String> {
        let cookie = random()?;
        let flow = Flow { want, pending, cookie: cookie.clone() };
        self.put(format!("flow {handle}"), Stage::Begun(Box::new(flow)))?;
        Some(cookie)
    }

    pub fn collect(&self, handle: &str) -> Option<Flow> {
        match self.lock().remove(&format!("flow {handle}")) {
            Some((_, Stage::Begun(flow))) => Some(*flow),
            _ => None,
        }
    }
}

pub fn random() -> Option<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(hex::encode(bytes))
}

/// Whether two texts are the same, in a time that tells nothing of where they differ.
pub fn same(one: &str, other: &str) -> bool {
    let differs = one.bytes().zip(other.bytes()).fold(0, |sum, (one, other)| sum | (one ^ other));
    one.len() == other.len() && differs == 0
}
