//! Which servers may use a secret or a provider, which hosts it may go to, and where in requests it may stand.

use crate::policy_place::AllowedPlace;
use crate::{RegistryError, name};
use bundle::{Binding, BoundHost};
use policy::egress::{BareStar, Rule};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

const MOST_SERVERS: usize = 256;
const MOST_HOSTS: usize = 64;
const MOST_PLACES: usize = 16;
/// Every request that carries the secret reads the whole policy.
const LONGEST: usize = 48 << 10;

/// Where a secret may stand in requests to each host.
pub type Hosts = BTreeMap<BoundHost, BTreeSet<AllowedPlace>>;

/// Hosts and places by server. A server that is not in it may not use the secret; an empty policy allows none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretPolicy(BTreeMap<String, Hosts>);

/// A change of a policy: for each server the hosts that are added or replaced, each with its places, or none to take a host
/// away. None instead of hosts takes the server out. Other servers and hosts keep what they have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct PolicyChange(BTreeMap<String, Option<HostChanges>>);

/// By host, the places that it has from now on; none: the host is taken away.
type HostChanges = BTreeMap<BoundHost, Option<BTreeSet<AllowedPlace>>>;

impl SecretPolicy {
    /// Stands for every server of the tenant. There is no such word for hosts: they are always named.
    pub const EVERY_SERVER: &'static str = "*";

    /// The hosts that a server may send the secret to, each with the places that it may stand in.
    pub fn hosts(&self, server: &str) -> impl Iterator<Item = (&str, &BTreeSet<AllowedPlace>)> {
        let of = |name: &str| self.0.get(name).into_iter().flatten().map(|(host, places)| (host.as_str(), places));
        of(server).chain(of(SecretPolicy::EVERY_SERVER))
    }

    /// The places that a server's own entry has for a host, written exactly so.
    pub fn of(&self, server: &str, host: &str) -> Option<&BTreeSet<AllowedPlace>> {
        self.0.get(server)?.get(host)
    }

    /// Each server with each of its hosts and places.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str, &BTreeSet<AllowedPlace>)> {
        self.0.iter().flat_map(|(server, hosts)| {
            hosts.iter().map(move |(host, places)| (server.as_str(), host.as_str(), places))
        })
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what a deployment is bound to.
    pub(crate) fn add(&mut self, server: &str, binding: &Binding) {
        let hosts = self.0.entry(server.to_owned()).or_default();
        for host in &binding.hosts {
            hosts.entry(host.clone()).or_default().insert(AllowedPlace::of(binding));
        }
    }

    /// Whether it is from before policies named places: no request may go out by it.
    pub(crate) fn names_no_places(&self) -> bool {
        self.0.values().flat_map(BTreeMap::values).any(BTreeSet::is_empty)
    }

    /// The same servers and hosts with the places that current deployments are bound to, and `credentials` where none is.
    pub(crate) fn with_places(mut self, bound: &SecretPolicy) -> SecretPolicy {
        for (server, hosts) in &mut self.0 {
            let of = bound.0.iter().filter(|(name, _)| server == SecretPolicy::EVERY_SERVER || *name == server);
            let used: Vec<_> = of.flat_map(|(_, hosts)| hosts).collect();
            for (host, places) in hosts {
                let here = used.iter().filter(|(other, _)| meet(host, other)).flat_map(|(_, places)| places.iter());
                places.extend(here.cloned());
                if places.is_empty() {
                    places.insert(AllowedPlace::Credentials);
                }
            }
        }
        self
    }

    pub(crate) fn changed(&self, change: &PolicyChange) -> Result<SecretPolicy, RegistryError> {
        let mut policy = self.clone();
        for (server, hosts) in &change.0 {
            if server != SecretPolicy::EVERY_SERVER {
                name::check("server", server)?;
            }
            match hosts {
                Some(hosts) => policy.change(server, hosts)?,
                None if policy.0.remove(server).is_some() => {}
                None => return bad(self.no_entry(server)),
            }
        }
        policy.check()?;
        Ok(policy)
    }

    fn no_entry(&self, server: &str) -> String {
        let named: Vec<_> = self.0.keys().map(|name| format!("`{name}`")).collect();
        let named = if named.is_empty() { "no server".to_owned() } else { named.join(", ") };
        format!("the policy has no entry for the server `{server}`; it names {named}")
    }

    fn change(
        &mut self,
        server: &str,
        change: &BTreeMap<BoundHost, Option<BTreeSet<AllowedPlace>>>,
    ) -> Result<(), RegistryError> {
        if change.is_empty() {
            return bad(format!("the policy names no host for the server `{server}`; name each host (`--to HOST`)"));
        }
        let hosts = self.0.entry(server.to_owned()).or_default();
        for (host, places) in change {
            match places {
                Some(places) if places.is_empty() => {
                    return bad(format!(
                        "the policy names no place for `{host}`; name one (`--in PLACE`), such as `{}`",
                        AllowedPlace::Credentials
                    ));
                }
                Some(places) => drop(hosts.insert(host.clone(), places.clone())),
                None if hosts.remove(host).is_some() => {}
                None => return bad(format!("the policy does not name `{host}` for the server `{server}`")),
            }
        }
        if hosts.is_empty() {
            self.0.remove(server);
        }
        Ok(())
    }

    fn check(&self) -> Result<(), RegistryError> {
        if self.0.len() > MOST_SERVERS || self.0.values().any(|hosts| hosts.len() > MOST_HOSTS) {
            return bad(format!("a policy names at most {MOST_SERVERS} servers, with {MOST_HOSTS} hosts each"));
        }
        if self.all().any(|(_, _, places)| places.len() > MOST_PLACES) {
            return bad(format!("a policy names at most {MOST_PLACES} places for a host"));
        }
        if self.text()?.len() > LONGEST {
            return bad(format!("a policy has at most {LONGEST} bytes of JSON"));
        }
        Ok(())
    }

    /// What is stored, and sealed with the value.
    pub(crate) fn text(&self) -> Result<String, RegistryError> {
        crate::snapshot::to_json(self)
    }

    /// A policy as it is stored. A value from before there were policies has none, so no server may use it. One from before
    /// policies named places is a list of hosts for each server, and allows no place.
    pub(crate) fn read(text: Option<&str>) -> Result<SecretPolicy, RegistryError> {
        let Some(text) = text else { return Ok(SecretPolicy::default()) };
        if let Ok(policy) = serde_json::from_str(text) {
            return Ok(policy);
        }
        let hosts: BTreeMap<String, BTreeSet<BoundHost>> =
            serde_json::from_str(text).map_err(|_| RegistryError::corrupt("the policy of a secret cannot be read"))?;
        let without = |hosts: BTreeSet<BoundHost>| hosts.into_iter().map(|host| (host, BTreeSet::new())).collect();
        Ok(SecretPolicy(hosts.into_iter().map(|(server, hosts)| (server, without(hosts))).collect()))
    }
}

fn bad<T>(what: String) -> Result<T, RegistryError> {
    Err(RegistryError::BadValue { what })
}

/// Whether there is a host that both stand for.
fn meet(one: &BoundHost, two: &BoundHost) -> bool {
    let rule = |host: &BoundHost| Rule::parse(host.as_str(), BareStar::Refused);
    matches!((rule(one), rule(two)), (Ok(one), Ok(two)) if one.meets(&two))
}

/// Every server of the policy gets what it has there.
impl From<SecretPolicy> for PolicyChange {
    fn from(policy: SecretPolicy) -> PolicyChange {
        let all = |hosts: Hosts| hosts.into_iter().map(|(host, places)| (host, Some(places))).collect();
        PolicyChange(policy.0.into_iter().map(|(server, hosts)| (server, Some(all(hosts)))).collect())
    }
}

impl PolicyChange {
    /// Each of these servers may send it to each of these hosts, in each of these places.
    pub fn allow<'a>(
        servers: impl IntoIterator<Item = &'a str>,
        hosts: impl IntoIterator<Item = &'a str>,
        places: impl IntoIterator<Item = &'a str>,
    ) -> Result<PolicyChange, RegistryError> {
        let parse = |host: &str| host.parse().map_err(|wrong| RegistryError::BadValue { what: format!("{wrong}") });
        let places: BTreeSet<AllowedPlace> = places.into_iter().map(str::parse).collect::<Result<_, _>>()?;
        let with_places = |host| parse(host).map(|host| (host, Some(places.clone())));
        let hosts: BTreeMap<BoundHost, _> = hosts.into_iter().map(with_places).collect::<Result<_, _>>()?;
        Ok(PolicyChange(servers.into_iter().map(|server| (server.to_owned(), Some(hosts.clone()))).collect()))
    }

    /// These servers may not use it any more.
    pub fn deny<'a>(servers: impl IntoIterator<Item = &'a str>) -> PolicyChange {
        PolicyChange(servers.into_iter().map(|server| (server.to_owned(), None)).collect())
    }

    /// All hosts that it names.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.0.values().flatten().flat_map(BTreeMap::keys).map(BoundHost::as_str)
    }
}
