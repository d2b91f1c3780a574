//! Whether a server may use a secret or a provider: to which hosts, and where in requests.

use bundle::{Binding, BoundHost, Lock};
use egress::{Denied, Pattern, Use};
use registry::{AllowedPlace, Registry, RegistryError, SecretPolicy};
use std::collections::BTreeSet;
use std::fmt;

#[derive(Clone, Copy)]
pub enum What<'a> {
    Secret(&'a str),
    Provider(&'a str),
}

/// A secret or a provider that a server wants to use.
#[derive(Clone, Copy)]
pub struct Used<'a> {
    pub tenant: &'a str,
    pub server: &'a str,
    pub what: What<'a>,
}

impl fmt::Display for Used<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            What::Secret(name) => write!(f, "the secret `{name}`"),
            What::Provider(name) => write!(f, "the provider `{name}`"),
        }
    }
}

impl Used<'_> {
    /// Asked for every request, since a policy may change at any time.
    pub fn may_go(&self, policy: &SecretPolicy, used: &Use<'_>) -> Result<(), Denied> {
        let (to, place) = (used.to, used.place.named());
        let there = |host: &str| Pattern::parse(host).is_ok_and(|pattern| pattern.covers(to));
        let here: Vec<_> = policy.hosts(self.server).filter(|(host, _)| there(host)).collect();
        let fits = |shape: &str| here.iter().any(|(_, places)| covers(places, &place, Some(shape)));
        let bad = used.shapes.iter().find(|shape| !fits(shape));
        if bad.is_none() && !here.is_empty() && !used.shapes.is_empty() {
            return Ok(());
        }
        let wanted = writable(AllowedPlace::around(place, bad.map(String::as_str)));
        let command = self.command("allow", policy, &[to.to_string()], &wanted);
        let from = format!("{self} is not allowed to go from the server `{}` to {to}", self.server);
        let in_place = if here.is_empty() { String::new() } else { format!(" in `{wanted}`") };
        Err(Denied::secret(format!("{from}{in_place}; an admin allows it with `{command}`")))
    }

    /// Whether a binding's hosts and its place are in the policy. If not, the hosts where it does not fit.
    fn misfits(&self, policy: &SecretPolicy, binding: &Binding) -> Vec<String> {
        let (place, format) = (binding.place.named(), Some(binding.format.as_str()).filter(|_| !binding.asked));
        let fits = |host: &&BoundHost| {
            Pattern::parse(host.as_str()).is_ok_and(|bound| {
                policy.hosts(self.server).any(|(host, places)| {
                    covers(places, &place, format) && Pattern::parse(host).is_ok_and(|pattern| pattern.includes(&bound))
                })
            })
        };
        binding.hosts.iter().filter(|host| !fits(host)).map(ToString::to_string).collect()
    }

    /// What an admin runs to allow it. Hosts that the server has already keep their places.
    pub fn command(&self, verb: &str, policy: &SecretPolicy, hosts: &[String], wanted: &AllowedPlace) -> String {
        let (kind, name) = match self.what {
            What::Secret(name) => ("secret", format!("{} {name}", self.tenant)),
            What::Provider(name) => ("provider", format!("{}/{name}", self.tenant)),
        };
        let own = |host: &str| policy.of(self.server, host);
        // A host that has places already is named alone: they are its own.
        let (hosts, kept) = match hosts.iter().find_map(|host| Some((host, own(host)?))) {
            Some((host, places)) => (std::slice::from_ref(host), places.clone()),
            None => (hosts, BTreeSet::new()),
        };
        let usual = |place: &AllowedPlace| match place {
            AllowedPlace::Credentials => true,
            AllowedPlace::At { place, format } => format.is_none() && AllowedPlace::Credentials.covers(place, None),
        };
        let mut places = kept;
        places.insert(wanted.clone());
        if places.iter().all(usual) {
            places.clear();
        }
        let to: String = hosts.iter().map(|host| format!(" --to {}", quoted(host))).collect();
        let at: String = places.iter().map(|place| format!(" --in {}", quoted(&place.to_string()))).collect();
        format!("bulkhead {kind} {verb} {name} --for {}{to}{at}", self.server)
    }
}

fn covers(places: &BTreeSet<AllowedPlace>, place: &str, format: Option<&str>) -> bool {
    places.iter().any(|allowed| allowed.covers(place, format))
}

/// What stands around a value is code's own text: only what an admin could write is shown in a command.
fn writable(place: AllowedPlace) -> AllowedPlace {
    match place {
        AllowedPlace::At { place: at, format: Some(format) } => {
            let whole = AllowedPlace::At { place: at.clone(), format: Some(format) };
            let same = whole.to_string().parse::<AllowedPlace>().is_ok_and(|read| read == whole);
            if same { whole } else { AllowedPlace::At { place: at, format: None } }
        }
        other => other,
    }
}

/// For a shell. Authors choose names of parameters, and an admin copies the line.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A deployment that binds what its server may not use, or to a host or a place where that may not go.
#[derive(Debug)]
pub struct NotAllowed {
    pub message: String,
    /// What an admin runs to allow it.
    pub command: String,
}

/// Whether the server may bind everything that its lock binds, to all of its hosts, where it does. Asked before a deployment
/// becomes current; [`Used::may_go`] asks again for each request.
pub fn allowed(registry: &Registry, tenant: &str, lock: &Lock) -> Result<Result<(), NotAllowed>, RegistryError> {
    for binding in &lock.secrets {
        let what = match &binding.connection {
            Some(provider) => What::Provider(provider.as_str()),
            None => What::Secret(binding.name.as_str()),
        };
        let used = Used { tenant, server: lock.server.as_str(), what };
        let policy = match what {
            What::Secret(name) => registry.secret(tenant, name)?.map(|secret| secret.policy),
            What::Provider(name) => registry.provider(tenant, name)?.map(|provider| provider.policy),
        };
        let (there, policy) = (policy.is_some(), policy.unwrap_or_default());
        let hosts = used.misfits(&policy, binding);
        let Some(first) = hosts.first() else { continue };
        let wanted = AllowedPlace::of(binding);
        let command = |verb| used.command(verb, &policy, &hosts, &wanted);
        let (message, command) = match (there, what) {
            (true, _) => (
                format!("{used} may not go from the server `{}` to `{first}` in `{wanted}`", used.server),
                command("allow"),
            ),
            (false, What::Secret(_)) => (
                format!("{used} is not set, so the server `{}` cannot send it to `{first}`", used.server),
                command("set"),
            ),
            (false, What::Provider(name)) => (
                format!("{used} is not set, so the server `{}` cannot use it for `{first}`", used.server),
                format!("bulkhead provider set {tenant}/{name} …` and `{}", command("allow")),
            ),
        };
        return Ok(Err(NotAllowed { message, command }));
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_nothing_in_it_that_a_shell_would_run() {
        let used = Used { tenant: "acme", server: "s", what: What::Secret("TOKEN") };
        let wanted = AllowedPlace::around("query:a'; rm -rf ~ #".to_owned(), None);
        let command = used.command("allow", &SecretPolicy::default(), &["a.example".to_owned()], &wanted);
        assert_eq!(
            command,
            r"bulkhead secret allow acme TOKEN --for s --to 'a.example' --in 'query:a'\''; rm -rf ~ #'"
        );
        let odd = AllowedPlace::around("header:x".to_owned(), Some("a\nb {}"));
        assert_eq!(writable(odd).to_string(), "header:x");
    }
}
