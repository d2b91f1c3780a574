//! Which secrets go into the requests of a call, and where they come from.

use crate::app::App;
use crate::connect::ConnectError;
use bundle::{BoundHost, Lock, Place as Locked};
use egress::{Binding, Bindings, Credentials, Denied, Origin, Pattern, Place, Secrets};
use futures_util::future::BoxFuture;
use http::HeaderName;
use registry::{Deployment, Registry, RegistryError, SecretPolicy};
use secrecy::SecretString;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What a deployment is bound to.
pub struct Bound {
    bindings: Arc<Bindings>,
    /// By the name of the secret: the provider whose token it is.
    connections: Arc<BTreeMap<String, String>>,
}

/// The provider that a call could not go on without.
#[derive(Default)]
pub struct Wanted(Mutex<Option<String>>);

impl Wanted {
    fn note(&self, provider: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(provider.to_owned());
    }

    pub fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What was signed, as the door takes it.
pub fn bindings(lock: &Lock) -> Result<Bound, Denied> {
    let list = lock.secrets.iter().map(binding).collect::<Result<_, _>>()?;
    let connected =
        lock.secrets.iter().filter_map(|locked| Some((locked.name.to_string(), locked.connection.as_ref()?)));
    let connections = connected.map(|(name, provider)| (name, provider.to_string())).collect();
    Ok(Bound { bindings: Arc::new(Bindings::new(list)?), connections: Arc::new(connections) })
}

fn binding(locked: &bundle::Binding) -> Result<Binding, Denied> {
    let place = match &locked.place {
        Locked::Header(name) => Place::Header(header(name.as_str())?),
        Locked::Query(name) => Place::Query(name.to_string()),
        Locked::Cookie(name) => Place::Cookie(name.to_string()),
        Locked::Body(pointer) => Place::Body(pointer.to_string()),
        Locked::Basic => Place::Basic,
        Locked::Aws { region, service } => Place::Aws { region: region.to_string(), service: service.to_string() },
    };
    Ok(Binding {
        name: locked.name.to_string(),
        hosts: locked.hosts.iter().map(|host| Pattern::parse(host.as_str())).collect::<Result<_, _>>()?,
        place,
        format: locked.format.to_string(),
        asked: locked.asked,
    })
}

fn header(name: &str) -> Result<HeaderName, Denied> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| Denied::refuse(format!("`{name}` is no name of a header")))
}

impl Bound {
    /// For one call; nothing for a server that is bound to nothing.
    pub fn credentials(
        &self,
        app: &Arc<App>,
        record: &Deployment,
        subject: &str,
        wanted: &Arc<Wanted>,
    ) -> Option<Arc<dyn Credentials>> {
        if self.bindings.is_empty() {
            return None;
        }
        let secrets = CallSecrets {
            app: app.clone(),
            tenant: record.tenant.clone(),
            server: record.server.clone(),
            subject: subject.to_owned(),
            connections: self.connections.clone(),
            wanted: wanted.clone(),
        };
        Some(Arc::new(egress::Bound::new(self.bindings.clone(), Arc::new(secrets))))
    }
}

/// The secrets of a tenant and the tokens of whoever calls, opened when a request needs one.
struct CallSecrets {
    app: Arc<App>,
    tenant: String,
    server: String,
    /// Who calls. Nobody's token is used but theirs.
    subject: String,
    connections: Arc<BTreeMap<String, String>>,
    wanted: Arc<Wanted>,
}

impl CallSecrets {
    fn opened(&self, name: &str) -> Result<Option<registry::Secret>, Denied> {
        self.app.registry().secret(&self.tenant, name).map_err(|error| {
            tracing::error!(tenant = self.tenant, name, %error, "a secret cannot be opened");
            Denied::refuse(format!("the secret `{name}` cannot be opened"))
        })
    }

    fn secret(&self, name: &str, to: &Origin) -> Result<Option<SecretString>, Denied> {
        let Some(secret) = self.opened(name)? else { return Ok(None) };
        let used = Used { tenant: &self.tenant, server: &self.server, what: What::Secret(name) };
        used.may_go(&secret.policy, to)?;
        Ok(Some(secret.value))
    }

    async fn token(&self, provider: &str, to: &Origin) -> Result<Option<SecretString>, Denied> {
        let used = Used { tenant: &self.tenant, server: &self.server, what: What::Provider(provider) };
        let policy =
            self.app.connect.policy(&self.tenant, provider).map_err(|error| self.no_token(provider, &error))?;
        used.may_go(&policy, to)?;
        let token = self.app.connect.token(&self.tenant, provider, &self.subject).await;
        token.map(Some).map_err(|error| self.no_token(provider, &error))
    }

    fn no_token(&self, provider: &str, error: &ConnectError) -> Denied {
        if matches!(error, ConnectError::NotConnected(_)) {
            self.wanted.note(provider);
        } else {
            tracing::warn!(tenant = self.tenant, provider, %error, "there is no token");
        }
        Denied::secret(error.to_string())
    }
}

impl Secrets for CallSecrets {
    fn get<'a>(&'a self, name: &'a str, to: &'a Origin) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        match self.connections.get(name) {
            Some(provider) => Box::pin(self.token(provider, to)),
            None => Box::pin(std::future::ready(self.secret(name, to))),
        }
    }

    fn known<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        let known = match self.connections.get(name) {
            Some(provider) => self.app.connect.kept_token(&self.tenant, provider, &self.subject).map_err(|error| {
                tracing::error!(tenant = self.tenant, provider, %error, "a kept token cannot be opened");
                Denied::refuse(format!("the token of `{provider}` cannot be opened, so it could not be masked"))
            }),
            None => self.opened(name).map(|secret| secret.map(|secret| secret.value)),
        };
        Box::pin(std::future::ready(known))
    }
}

#[derive(Clone, Copy)]
enum What<'a> {
    Secret(&'a str),
    Provider(&'a str),
}

/// A secret or a provider that a server wants to use.
#[derive(Clone, Copy)]
struct Used<'a> {
    tenant: &'a str,
    server: &'a str,
    what: What<'a>,
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
    /// The patterns that its policy has for this server.
    fn allowed(&self, policy: &SecretPolicy) -> Result<Vec<Pattern>, Denied> {
        policy.hosts(self.server).map(Pattern::parse).collect()
    }

    /// Asked for every request, since a policy may change at any time.
    fn may_go(&self, policy: &SecretPolicy, to: &Origin) -> Result<(), Denied> {
        if self.allowed(policy)?.iter().any(|pattern| pattern.covers(to)) {
            return Ok(());
        }
        let command = self.command(policy, &[to.to_string()]);
        Err(Denied::secret(format!(
            "{self} is not allowed to go from the server `{}` to {to}; an admin allows it with `{command}`",
            self.server
        )))
    }

    /// What an admin runs to allow it: these hosts, and those that the server has already.
    fn command(&self, policy: &SecretPolicy, hosts: &[String]) -> String {
        let (verb, name) = match self.what {
            What::Secret(name) => ("secret", format!("{} {name}", self.tenant)),
            What::Provider(name) => ("provider", format!("{}/{name}", self.tenant)),
        };
        let own = policy.hosts(self.server).map(str::to_owned);
        let all: BTreeSet<String> = own.chain(hosts.iter().cloned()).collect();
        let to: String = all.iter().map(|host| format!(" --to '{host}'")).collect();
        format!("bulkhead {verb} allow {name} --for {}{to}", self.server)
    }
}

/// A deployment that binds what its server may not use, or to a host where that may not go.
#[derive(Debug)]
pub struct NotAllowed {
    pub message: String,
    /// What an admin runs to allow it.
    pub command: String,
}

/// Whether the server may bind everything that its lock binds, to all of its hosts. Asked before a deployment becomes current;
/// [`Bound`] asks again for each request.
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
        let patterns = used.allowed(&policy).unwrap_or_default();
        let fits = |host: &&BoundHost| {
            Pattern::parse(host.as_str()).is_ok_and(|host| patterns.iter().any(|pattern| pattern.includes(&host)))
        };
        let hosts: Vec<String> = binding.hosts.iter().filter(|host| !fits(host)).map(ToString::to_string).collect();
        let Some(first) = hosts.first() else { continue };
        let command = used.command(&policy, &hosts);
        let (message, command) = match (there, what) {
            (true, _) => (format!("{used} may not go from the server `{}` to `{first}`", used.server), command),
            (false, What::Secret(_)) => (
                format!("{used} is not set, so the server `{}` cannot send it to `{first}`", used.server),
                command.replacen("secret allow", "secret set", 1),
            ),
            (false, What::Provider(name)) => {
                let set = format!("bulkhead provider set {tenant}/{name}");
                (
                    format!("{used} is not set, so the server `{}` cannot use it for `{first}`", used.server),
                    format!("{set} …` and `{command}"),
                )
            }
        };
        return Ok(Err(NotAllowed { message, command }));
    }
    Ok(Ok(()))
}
