//! Which servers may use a secret or a provider, and which hosts it may go to.

use crate::{RegistryError, name};
use bundle::BoundHost;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

const MOST_SERVERS: usize = 256;
const MOST_HOSTS: usize = 64;
/// Every request that carries the secret reads the whole policy.
const LONGEST: usize = 16 << 10;

/// Hosts by server. A server that is not in it may not use the secret; an empty policy allows none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretPolicy(BTreeMap<String, BTreeSet<BoundHost>>);

/// A change of a policy: for each server the hosts that it has from then on, or none to take the server out. Other servers
/// keep what they have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct PolicyChange(BTreeMap<String, Option<BTreeSet<BoundHost>>>);

impl SecretPolicy {
    /// Stands for every server of the tenant. There is no such word for hosts: they are always named.
    pub const EVERY_SERVER: &'static str = "*";

    /// The hosts that a server may send the secret to.
    pub fn hosts(&self, server: &str) -> impl Iterator<Item = &str> {
        let of = |name: &str| self.0.get(name).into_iter().flatten().map(BoundHost::as_str);
        of(server).chain(of(SecretPolicy::EVERY_SERVER))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what a deployment is bound to.
    pub(crate) fn add(&mut self, server: &str, hosts: &BTreeSet<BoundHost>) {
        self.0.entry(server.to_owned()).or_default().extend(hosts.iter().cloned());
    }

    pub(crate) fn changed(&self, change: &PolicyChange) -> Result<SecretPolicy, RegistryError> {
        let mut policy = self.clone();
        for (server, hosts) in &change.0 {
            if server != SecretPolicy::EVERY_SERVER {
                name::check("server", server)?;
            }
            match hosts {
                Some(hosts) if hosts.is_empty() => {
                    let what =
                        format!("the policy names no host for the server `{server}`; name each host (`--to HOST`)");
                    return Err(RegistryError::BadValue { what });
                }
                Some(hosts) => policy.0.insert(server.clone(), hosts.clone()),
                None => policy.0.remove(server),
            };
        }
        let too_much = |what: String| Err(RegistryError::BadValue { what });
        if policy.0.len() > MOST_SERVERS || policy.0.values().any(|hosts| hosts.len() > MOST_HOSTS) {
            return too_much(format!("a policy names at most {MOST_SERVERS} servers, with {MOST_HOSTS} hosts each"));
        }
        if policy.text()?.len() > LONGEST {
            return too_much(format!("a policy has at most {LONGEST} bytes of JSON"));
        }
        Ok(policy)
    }

    /// What is stored, and sealed with the value.
    pub(crate) fn text(&self) -> Result<String, RegistryError> {
        crate::snapshot::to_json(self)
    }

    /// A policy as it is stored. A value from before there were policies has none, so no server may use it.
    pub(crate) fn read(text: Option<&str>) -> Result<SecretPolicy, RegistryError> {
        let Some(text) = text else { return Ok(SecretPolicy::default()) };
        serde_json::from_str(text).map_err(|_| RegistryError::corrupt("the policy of a secret cannot be read"))
    }
}

/// Every server of the policy gets what it has there.
impl From<SecretPolicy> for PolicyChange {
    fn from(policy: SecretPolicy) -> PolicyChange {
        PolicyChange(policy.0.into_iter().map(|(server, hosts)| (server, Some(hosts))).collect())
    }
}

impl PolicyChange {
    /// Each of these servers may send it to each of these hosts.
    pub fn allow<'a>(
        servers: impl IntoIterator<Item = &'a str>,
        hosts: impl IntoIterator<Item = &'a str>,
    ) -> Result<PolicyChange, RegistryError> {
        let parse = |host: &str| host.parse().map_err(|wrong| RegistryError::BadValue { what: format!("{wrong}") });
        let hosts: BTreeSet<BoundHost> = hosts.into_iter().map(parse).collect::<Result<_, _>>()?;
        Ok(PolicyChange(servers.into_iter().map(|server| (server.to_owned(), Some(hosts.clone()))).collect()))
    }

    /// These servers may not use it any more.
    pub fn deny<'a>(servers: impl IntoIterator<Item = &'a str>) -> PolicyChange {
        PolicyChange(servers.into_iter().map(|server| (server.to_owned(), None)).collect())
    }

    /// All hosts that it names.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.0.values().flatten().flatten().map(BoundHost::as_str)
    }
}
