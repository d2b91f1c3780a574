//! What of a tenant's may have been sent to an origin, and so may come back from there.

use crate::policy_place::AllowedPlace;
use crate::vault::Vault;
use crate::{Registry, RegistryError, SecretPolicy};
use policy::egress::{BareStar, Origin, Rule};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Origins whose answer is kept. A server chooses which it asks, so there is a bound.
const MOST_ORIGINS: usize = 256;
/// Connections of other callers that are searched for, the newest first: all of a large tenant's would not fit.
const MOST_OTHERS: usize = 16;

/// Everything whose policy lets some server send it to one origin.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reach {
    pub secrets: Vec<Sendable>,
    pub providers: Vec<Sendable>,
    /// Connections to those providers whose tokens may stand where services store them: provider and subject, the newest.
    pub connections: Vec<(String, String)>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Sendable {
    pub name: String,
    /// Whether it may stand in basic authentication.
    pub basic: bool,
    /// Whether it may sign for AWS.
    pub aws: bool,
}

impl Reach {
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty() && self.providers.is_empty()
    }

    fn of(vault: &Vault, origin: &Origin) -> Result<Reach, RegistryError> {
        let mut reach = Reach::default();
        for (name, secret) in &vault.secrets {
            reach.secrets.extend(sendable(name, secret.policy.as_deref(), origin)?.map(|(sendable, _)| sendable));
        }
        let mut connections = Vec::new();
        for (name, provider) in &vault.providers {
            let Some((sendable, stored)) = sendable(name, provider.policy.as_deref(), origin)? else { continue };
            reach.providers.push(sendable);
            if stored {
                let all = provider.connections.iter();
                connections.extend(all.map(|(subject, found)| (found.tokens.updated_at, name, subject)));
            }
        }
        connections.sort_by(|one, two| two.cmp(one));
        let newest = connections.into_iter().take(MOST_OTHERS);
        reach.connections = newest.map(|(_, provider, subject)| (provider.clone(), subject.clone())).collect();
        Ok(reach)
    }
}

/// How something may be sent to an origin, if it may, and whether it may stand where services store it.
fn sendable(name: &str, policy: Option<&str>, origin: &Origin) -> Result<Option<(Sendable, bool)>, RegistryError> {
    let policy = SecretPolicy::read(policy)?;
    let there = |host: &str| Rule::parse(host, BareStar::Refused).is_ok_and(|rule| rule.covers_origin(origin));
    let mut hosts = policy.all().filter(|(_, host, _)| there(host)).map(|(_, _, places)| places).peekable();
    if hosts.peek().is_none() {
        return Ok(None);
    }
    let places: Vec<&AllowedPlace> = hosts.flatten().collect();
    let may = |place: &str| places.iter().any(|allowed| allowed.covers(place, None));
    let stored = places.iter().any(|allowed| allowed.is_stored());
    Ok(Some((Sendable { name: name.to_owned(), basic: may("basic"), aws: may("aws") }, stored)))
}

/// What was found out for some origins. It belongs to one state of a vault: another state begins without it.
#[derive(Default)]
pub(crate) struct Reaches(Mutex<HashMap<Origin, Arc<Reach>>>);

impl Clone for Reaches {
    fn clone(&self) -> Reaches {
        Reaches::default()
    }
}

impl Reaches {
    fn get(&self, vault: &Vault, origin: &Origin) -> Result<Arc<Reach>, RegistryError> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reach) = lock().get(origin) {
            return Ok(reach.clone());
        }
        let reach = Arc::new(Reach::of(vault, origin)?);
        let mut kept = lock();
        if kept.len() >= MOST_ORIGINS {
            kept.clear();
        }
        kept.insert(origin.clone(), reach.clone());
        Ok(reach)
    }
}

impl Registry {
    /// Everything of a tenant's that may be sent to an origin, by any of its servers. Found out once for each origin, until
    /// something sealed of the tenant is changed. Needs no master key: nothing is opened.
    pub fn reach(&self, tenant: &str, origin: &Origin) -> Result<Arc<Reach>, RegistryError> {
        match self.directory().vaults.get(tenant) {
            Some(vault) => vault.reaches.get(vault, origin),
            None => Ok(Arc::default()),
        }
    }
}
