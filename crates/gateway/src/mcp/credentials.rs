//! Which secrets go into the requests of a call, and where they come from.

use super::allowed::{Used, What};
use crate::app::App;
use crate::connect::ConnectError;
use bundle::{Lock, Place as Locked};
use egress::{Binding, Bindings, Credentials, Denied, Form, Kept, Origin, Pattern, Place, Secrets, Use};
use futures_util::future::BoxFuture;
use http::HeaderName;
use registry::{AllowedPlace, Deployment, RegistryError, SecretPolicy, Sendable};
use secrecy::{ExposeSecret, SecretString};
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
    /// For one call. A server that is bound to nothing has one too: what other servers have sent is masked for it.
    pub fn credentials(
        &self,
        app: &Arc<App>,
        record: &Deployment,
        subject: &str,
        wanted: &Arc<Wanted>,
    ) -> Arc<dyn Credentials> {
        let secrets = CallSecrets {
            app: app.clone(),
            tenant: record.tenant.clone(),
            server: record.server.clone(),
            subject: subject.to_owned(),
            connections: self.connections.clone(),
            wanted: wanted.clone(),
        };
        Arc::new(egress::Bound::new(self.bindings.clone(), Arc::new(secrets)))
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
            Denied::refuse(format!(
                "the secret `{name}` cannot be opened, so it could neither be sent nor masked; an admin sets it again with \
                 `bulkhead secret set {} {name}`",
                self.tenant
            ))
        })
    }

    fn used<'a>(&'a self, what: What<'a>) -> Used<'a> {
        Used { tenant: &self.tenant, server: &self.server, what }
    }

    fn secret(&self, used: &Use<'_>) -> Result<Option<SecretString>, Denied> {
        let secret = self.used(What::Secret(used.name));
        let Some(found) = self.opened(used.name)? else {
            let wanted = AllowedPlace::around(used.place.named(), None);
            let command = secret.command("set", &SecretPolicy::default(), &[used.to.to_string()], &wanted);
            return Err(Denied::secret(format!("{secret} is not set; an admin sets it with `{command}`")));
        };
        secret.may_go(&found.policy, used)?;
        Ok(Some(found.value))
    }

    async fn token(&self, provider: &str, used: &Use<'_>) -> Result<Option<SecretString>, Denied> {
        let policy =
            self.app.connect.policy(&self.tenant, provider).map_err(|error| self.no_token(provider, &error))?;
        self.used(What::Provider(provider)).may_go(&policy, used)?;
        let token = self.app.connect.token(&self.tenant, provider, &self.subject).await;
        token.map(Some).map_err(|error| self.no_token(provider, &error))
    }

    /// The tokens of a provider that this caller's calls use, as far as they are kept.
    fn kept_tokens(&self, provider: &str) -> Result<Vec<SecretString>, Denied> {
        let kept = self.app.connect.kept_tokens(&self.tenant, provider, &self.subject);
        kept.map_err(|error| self.unmasked(provider, &error))
    }

    fn unmasked(&self, provider: &str, error: &ConnectError) -> Denied {
        tracing::error!(tenant = self.tenant, provider, %error, "a kept token cannot be opened");
        Denied::refuse(format!("the token of `{provider}` cannot be opened, so it could not be masked; connect again"))
    }

    /// Everything that some server of the tenant may send there. Of tokens: this caller's, and of others those that may be
    /// stored there, as many as can be searched for.
    fn kept_there(&self, from: &Origin) -> Result<Vec<Kept>, Denied> {
        let reach = self.app.registry().reach(&self.tenant, from).map_err(|error| self.unknown(&error))?;
        let mut kept = Vec::new();
        for sendable in &reach.secrets {
            let secret = self.opened(&sendable.name)?;
            kept.extend(secret.map(|secret| Kept { forms: forms(sendable, &secret.value), value: secret.value }));
        }
        let mut tokens = Vec::new();
        for provider in &reach.providers {
            tokens.extend(self.kept_tokens(&provider.name)?);
        }
        for (provider, subject) in &reach.connections {
            let token = self.app.connect.kept_token(&self.tenant, provider, subject);
            tokens.extend(token.map_err(|error| self.unmasked(provider, &error))?);
        }
        kept.extend(tokens.into_iter().map(|value| Kept { value, forms: vec![Form::Whole] }));
        Ok(kept)
    }

    fn unknown(&self, error: &RegistryError) -> Denied {
        tracing::error!(tenant = self.tenant, %error, "a policy cannot be read");
        Denied::refuse("a secret's policy cannot be read, so nobody knows what to mask")
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

/// How a value may have been sent.
fn forms(sendable: &Sendable, value: &SecretString) -> Vec<Form> {
    let pair = value.expose_secret().contains(':');
    let made = [(Form::Basic, sendable.basic), (Form::Aws, sendable.aws)];
    let made = made.into_iter().filter(|(_, may)| pair && *may).map(|(form, _)| form);
    std::iter::once(Form::Whole).chain(made).collect()
}

impl Secrets for CallSecrets {
    fn get<'a>(&'a self, used: &'a Use<'a>) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        match self.connections.get(used.name) {
            Some(provider) => Box::pin(self.token(provider, used)),
            None => Box::pin(std::future::ready(self.secret(used))),
        }
    }

    fn known<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        let known = match self.connections.get(name) {
            Some(provider) => self.kept_tokens(provider).map(|tokens| tokens.into_iter().next()),
            None => self.opened(name).map(|secret| secret.map(|secret| secret.value)),
        };
        Box::pin(std::future::ready(known))
    }

    fn kept<'a>(&'a self, from: &'a Origin) -> BoxFuture<'a, Result<Vec<Kept>, Denied>> {
        Box::pin(std::future::ready(self.kept_there(from)))
    }

    fn keeps(&self, origin: &Origin) -> bool {
        // What cannot be known is guarded.
        self.app.registry().reach(&self.tenant, origin).map_or(true, |reach| !reach.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_one_name() {
        let aws = r#"{ "aws": { "region": "eu-central-1", "service": "s3" } }"#;
        for place in [
            r#"{ "header": "x-key" }"#,
            r#"{ "query": "k" }"#,
            r#"{ "cookie": "sid" }"#,
            r#"{ "body": "/a" }"#,
            "\"basic\"",
            aws,
        ] {
            let place: Locked = serde_json::from_str(place).unwrap();
            let (name, hosts) = ("TOKEN".parse().unwrap(), [("a.example").parse().unwrap()].into());
            let locked =
                bundle::Binding { name, hosts, place, format: Default::default(), asked: false, connection: None };
            assert_eq!(binding(&locked).unwrap().place.named(), locked.place.named());
        }
    }
}
