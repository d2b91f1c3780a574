//! Connections that are being made. All of it is in memory: whoever is in the middle of one when the host ends begins again.

use oauth::{PENDING_SECONDS, Pending};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Of one tenant at once, and of all.
const MOST_OF_A_TENANT: usize = 100;
const MOST: usize = 10_000;
const LIFE: Duration = Duration::from_secs(PENDING_SECONDS);

/// Who wants to be connected to what.
#[derive(Clone)]
pub struct Want {
    pub tenant: String,
    pub provider: String,
    pub subject: String,
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
    fn tenant(&self) -> &str {
        match self {
            Stage::Issued(want) => &want.tenant,
            Stage::Begun(flow) => &flow.want.tenant,
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

    /// The oldest of a tenant's makes room for its newest.
    fn put(&self, key: String, stage: Stage) -> Option<()> {
        let mut open = self.lock();
        let own = open.iter().filter(|(_, (_, other))| other.tenant() == stage.tenant());
        let (count, oldest) =
            (own.clone().count(), own.min_by_key(|(_, (since, _))| *since).map(|(key, _)| key.clone()));
        if count >= MOST_OF_A_TENANT {
            oldest.map(|key| open.remove(&key));
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

fn random() -> Option<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(hex::encode(bytes))
}

/// Whether two texts are the same, in a time that tells nothing of where they differ.
pub fn same(one: &str, other: &str) -> bool {
    let differs = one.bytes().zip(other.bytes()).fold(0, |sum, (one, other)| sum | (one ^ other));
    one.len() == other.len() && differs == 0
}
