//! Which secrets go into the requests of a call, and where they come from.

use crate::app::App;
use crate::connect::ConnectError;
use bundle::{Lock, Place as Locked};
use egress::{Binding, Bindings, Credentials, Denied, Pattern, Place, Secrets};
use futures_util::future::BoxFuture;
use http::HeaderName;
use secrecy::SecretString;
use std::collections::BTreeMap;
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
        tenant: &str,
        subject: &str,
        wanted: &Arc<Wanted>,
    ) -> Option<Arc<dyn Credentials>> {
        if self.bindings.is_empty() {
            return None;
        }
        let secrets = CallSecrets {
            app: app.clone(),
            tenant: tenant.to_owned(),
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
    /// Who calls. Nobody's token is used but theirs.
    subject: String,
    connections: Arc<BTreeMap<String, String>>,
    wanted: Arc<Wanted>,
}

impl CallSecrets {
    fn secret(&self, name: &str) -> Result<Option<SecretString>, Denied> {
        self.app.registry().secret(&self.tenant, name).map_err(|error| {
            tracing::error!(tenant = self.tenant, name, %error, "a secret cannot be opened");
            Denied::refuse(format!("the secret `{name}` cannot be opened"))
        })
    }

    async fn token(&self, provider: &str) -> Result<Option<SecretString>, Denied> {
        let token = self.app.connect.token(&self.tenant, provider, &self.subject).await;
        token.map(Some).map_err(|error| {
            if matches!(error, ConnectError::NotConnected(_)) {
                self.wanted.note(provider);
            } else {
                tracing::warn!(tenant = self.tenant, provider, %error, "there is no token");
            }
            Denied::secret(error.to_string())
        })
    }
}

impl Secrets for CallSecrets {
    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        match self.connections.get(name) {
            Some(provider) => Box::pin(self.token(provider)),
            None => Box::pin(std::future::ready(self.secret(name))),
        }
    }

    fn known<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        let known = match self.connections.get(name) {
            Some(provider) => self.app.connect.kept_token(&self.tenant, provider, &self.subject).map_err(|error| {
                tracing::error!(tenant = self.tenant, provider, %error, "a kept token cannot be opened");
                Denied::refuse(format!("the token of `{provider}` cannot be opened, so it could not be masked"))
            }),
            None => self.secret(name),
        };
        Box::pin(std::future::ready(known))
    }
}
