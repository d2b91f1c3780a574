//! Connections to providers: somebody agrees in a browser, and calls of theirs go with a token from then on.
//!
//! A *ticket* is a link that this host gives to whoever asked, and to nobody else. The browser that opens it is told what for,
//! and goes on to the provider only when its user says so. What comes back must come from that same browser (a cookie).
//! Whose browser it was is not known by then, so the tokens wait ([`unconfirmed`]): the browser is shown a code, and the caller
//! who asked has to show that code.

mod http;
mod page;
mod store;
mod tickets;
mod unconfirmed;

pub use page::{begin, callback, cancel, show};
pub use store::{kept_as, subject_of};

use crate::Egress;
use crate::auth::Caller;
use dashmap::DashMap;
use futures_util::stream::{self, StreamExt};
use http::DoorHttp;
use oauth::{Grant, Keeper, Per, Provider, Revoked, SystemClock};
use registry::{Actor, ConnectionInfo, Directory, Registry, RegistryError, SecretPolicy};
use secrecy::SecretString;
use std::collections::HashSet;
use std::sync::Arc;
use store::RegistryStore;
use tickets::{Flow, Tickets, Want};
use unconfirmed::{Confirmations, NotConfirmed, Unconfirmed};

/// What ids of keys begin with; subjects of tokens begin otherwise.
const KEY: &str = "key-";
/// Providers that are told at the same time.
const REVOKED_AT_ONCE: usize = 16;

type TenantKeeper = Keeper<RegistryStore, DoorHttp, SystemClock>;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("there is no provider `{0}`")]
    NoProvider(String),
    #[error("the provider `{0}` needs nobody's consent: calls get their tokens by themselves")]
    NoConsent(String),
    #[error(
        "no server may use the provider `{name}` yet; an admin allows one with `bulkhead provider allow {tenant}/{name} --for SERVER --to HOST`"
    )]
    NotAllowed { tenant: String, name: String },
    #[error("there is no connection to `{0}` yet")]
    NotConnected(String),
    #[error("the link is not good any more; ask for another one")]
    NoTicket,
    #[error("the answer comes from another browser than the one that began")]
    OtherBrowser,
    #[error("too many connections are being made at the moment")]
    Full,
    #[error("no browser waits to be confirmed for `{0}`: ask for a link, open it and agree first")]
    NothingToConfirm(String),
    #[error("this is not the code that the browser shows; {left} more can be tried")]
    WrongCode { left: u32 },
    #[error("that was the last of too many wrong codes: the access was given back; ask for a new link")]
    TooManyCodes,
    #[error("the provider's settings are wrong")]
    Settings(#[from] oauth::Invalid),
    #[error("the provider's settings cannot be read")]
    Unreadable(#[from] serde_json::Error),
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Flow(#[from] oauth::Error),
}

/// A provider of a tenant's, with the secret that shows who the tenant is to it.
#[derive(Clone)]
struct Known {
    provider: Provider,
    secret: Option<SecretString>,
}

pub struct Connect {
    registry: Registry,
    egress: Option<Egress>,
    /// By tenant: what changes a connection goes through one of these.
    keepers: DashMap<String, Arc<TenantKeeper>>,
    tickets: Tickets,
    confirmations: Arc<Confirmations>,
    /// Whether providers may be reached by plain HTTP on loopback.
    dev: bool,
}

impl Connect {
    pub fn new(registry: Registry, egress: Option<Egress>, dev: bool) -> Connect {
        let (tickets, confirmations) = (Tickets::default(), Arc::default());
        Connect { registry, egress, keepers: DashMap::new(), tickets, confirmations, dev }
    }

    /// Whether a provider can be used, before it is kept.
    pub fn check(&self, settings: serde_json::Value) -> Result<Provider, ConnectError> {
        let provider: Provider = serde_json::from_value(settings)?;
        provider.check(self.dev)?;
        Ok(provider)
    }

    fn known(&self, tenant: &str, name: &str) -> Result<Known, ConnectError> {
        let found = self.registry.provider(tenant, name)?.ok_or_else(|| ConnectError::NoProvider(name.to_owned()))?;
        Ok(Known { provider: self.check(found.settings)?, secret: found.client_secret })
    }

    fn keeper(&self, tenant: &str) -> Arc<TenantKeeper> {
        let made = || {
            let http = DoorHttp { tenant: tenant.to_owned(), egress: self.egress.clone() };
            Arc::new(Keeper::new(RegistryStore(self.registry.clone()), http, SystemClock))
        };
        self.keepers.entry(tenant.to_owned()).or_insert_with(made).clone()
    }

    /// A tenant is gone, and so is what was kept for its connections.
    pub fn forget(&self, tenant: &str) {
        self.give_back(self.confirmations.of(tenant, None));
        self.keepers.remove(tenant);
        if let Some(open) = &self.egress {
            open.forget(tenant, http::DEPLOYMENT);
        }
    }

    /// Whether all callers of the tenant share the connection.
    pub fn is_shared(&self, tenant: &str, name: &str) -> Result<bool, ConnectError> {
        Ok(self.known(tenant, name)?.provider.per == Per::Tenant)
    }

    /// Which servers may use a provider's tokens, and where.
    pub fn policy(&self, tenant: &str, name: &str) -> Result<SecretPolicy, ConnectError> {
        let found = self.registry.provider(tenant, name)?.ok_or_else(|| ConnectError::NoProvider(name.to_owned()))?;
        Ok(found.policy)
    }

    /// The same, if it lets any server use them. Otherwise nobody is asked to connect.
    pub fn used(&self, tenant: &str, name: &str) -> Result<SecretPolicy, ConnectError> {
        let policy = self.policy(tenant, name)?;
        let unused = || ConnectError::NotAllowed { tenant: tenant.to_owned(), name: name.to_owned() };
        if policy.is_empty() { Err(unused()) } else { Ok(policy) }
    }

    /// A token for a call of `subject`.
    pub async fn token(&self, tenant: &str, name: &str, subject: &str) -> Result<SecretString, ConnectError> {
        let Known { provider, secret } = self.known(tenant, name)?;
        let token = self.keeper(tenant).token(tenant, name, &provider, secret.as_ref(), subject).await;
        token.map_err(|error| match error {
            error if error.wants_connection() => ConnectError::NotConnected(name.to_owned()),
            error => ConnectError::Flow(error),
        })
    }

    /// The access tokens that are kept for calls of `subject`, fresh or not: its own, and the one that all share. Nobody is asked
    /// for one.
    pub fn kept_tokens(&self, tenant: &str, name: &str, subject: &str) -> Result<Vec<SecretString>, ConnectError> {
        let kept = |subject: &str| self.kept_token(tenant, name, &store::kept_as(subject));
        Ok(kept(subject)?.into_iter().chain(kept("")?).collect())
    }

    /// The access token that is kept under this subject.
    pub fn kept_token(&self, tenant: &str, name: &str, kept_as: &str) -> Result<Option<SecretString>, ConnectError> {
        let kept = self.registry.connection(tenant, name, kept_as)?;
        let tokens = kept.map(|(sealed, _)| oauth::Tokens::from_secret(&sealed)).transpose()?;
        Ok(tokens.map(|tokens| tokens.access))
    }

    /// What a browser opens to connect `subject`, for a caller that asks. Good once, for ten minutes.
    pub fn ticket(
        &self,
        tenant: &str,
        name: &str,
        subject: &str,
        asker: &Caller,
        server: Option<&str>,
    ) -> Result<String, ConnectError> {
        if self.known(tenant, name)?.provider.grant != Grant::Code {
            return Err(ConnectError::NoConsent(name.to_owned()));
        }
        self.used(tenant, name)?;
        let want = Want {
            tenant: tenant.to_owned(),
            provider: name.to_owned(),
            subject: subject.to_owned(),
            asker: asker.subject.clone(),
            who: asker.for_people(),
            server: server.map(str::to_owned),
        };
        self.tickets.issue(want).ok_or(ConnectError::Full)
    }

    fn look(&self, ticket: &str) -> Result<(Want, Provider, SecretPolicy), ConnectError> {
        let want = self.tickets.look(ticket).ok_or(ConnectError::NoTicket)?;
        let provider = self.known(&want.tenant, &want.provider)?.provider;
        let policy = self.used(&want.tenant, &want.provider)?;
        Ok((want, provider, policy))
    }

    /// Where the browser goes on, and the cookie it comes back with.
    fn begin(&self, ticket: &str, redirect_uri: &str) -> Result<(String, String), ConnectError> {
        let want = self.tickets.take(ticket).ok_or(ConnectError::NoTicket)?;
        let known = self.known(&want.tenant, &want.provider)?;
        self.used(&want.tenant, &want.provider)?;
        let (url, pending) = oauth::begin(&known.provider, redirect_uri, registry::now())?;
        let cookie = self.tickets.keep(&pending.handle(), want, pending).ok_or(ConnectError::Full)?;
        Ok((url, cookie))
    }

    /// The browser is back. Gives who asked for what, and the code that the browser is to show.
    async fn finish(
        &self,
        query: &str,
        cookie: Option<&str>,
        redirect_uri: &str,
    ) -> Result<(Want, String), ConnectError> {
        let Flow { want, pending, cookie: given } =
            self.tickets.collect(&oauth::handle(query)?).ok_or(ConnectError::NoTicket)?;
        if !cookie.is_some_and(|cookie| tickets::same(cookie, &given)) {
            return Err(ConnectError::OtherBrowser);
        }
        // The link may be older than the end of the key that asked for it.
        if !want.subject.is_empty() && !is_alive(&self.registry.directory(), &want.subject) {
            return Err(ConnectError::NoTicket);
        }
        let known = self.known(&want.tenant, &want.provider)?;
        let request = oauth::finish(&known.provider, pending, query, redirect_uri, registry::now())?;
        let (keeper, confirmations) = (self.keeper(&want.tenant), self.confirmations.clone());
        // A browser that goes away meanwhile must not leave tokens behind that are never given back.
        let brought = tokio::spawn(async move {
            let tokens = keeper.exchange(request, known.secret.as_ref()).await?;
            let unconfirmed = Unconfirmed { want: want.clone(), tokens, known, cookie: given };
            match confirmations.put(unconfirmed) {
                Ok((code, before)) => {
                    if let Some(before) = before {
                        give_back(&keeper, &before).await;
                    }
                    Ok((want, code))
                }
                Err(unconfirmed) => {
                    give_back(&keeper, &unconfirmed).await;
                    Err(ConnectError::Full)
                }
            }
        });
        brought.await.map_err(|_| ConnectError::Flow(oauth::Error::Stopped))?
    }

    /// A name for the question about the code, if a browser has brought tokens that wait for this caller.
    pub fn unconfirmed(&self, tenant: &str, name: &str, asker: &Caller) -> Option<String> {
        self.confirmations.question(tenant, name, &asker.subject)
    }

    /// Makes a connection of what a browser has brought, if the caller who asked for it shows that browser's code.
    pub async fn confirm(&self, tenant: &str, name: &str, asker: &Caller, code: &str) -> Result<(), ConnectError> {
        let unconfirmed = match self.confirmations.confirm(tenant, name, &asker.subject, code) {
            Ok(unconfirmed) => unconfirmed,
            Err(NotConfirmed::Nothing) => return Err(ConnectError::NothingToConfirm(name.to_owned())),
            Err(NotConfirmed::Wrong { left }) => return Err(ConnectError::WrongCode { left }),
            Err(NotConfirmed::Exhausted(unconfirmed)) => {
                self.give_back(vec![*unconfirmed]);
                return Err(ConnectError::TooManyCodes);
            }
        };
        let provider = self.known(tenant, name).map(|known| known.provider);
        let kept = match provider {
            Ok(provider) => {
                let (tokens, subject) = (unconfirmed.tokens.clone(), &unconfirmed.want.subject);
                let kept = self.keeper(tenant).keep(tenant, name, &provider, tokens, subject).await;
                kept.map_err(ConnectError::Flow)
            }
            Err(error) => Err(error),
        };
        if kept.is_err() {
            self.give_back(vec![unconfirmed]);
        }
        kept
    }

    /// The person at the browser does not want what it has brought. Whether there was something.
    fn cancel(&self, cookie: &str) -> bool {
        let brought = self.confirmations.cancel(cookie);
        let any = !brought.is_empty();
        self.give_back(brought);
        any
    }

    /// Gives back what nobody has confirmed in time.
    pub fn give_back_expired(&self) {
        self.give_back(self.confirmations.expired());
    }

    /// Gives back what waits for a provider that is about to be removed.
    pub fn leave(&self, tenant: &str, name: &str) {
        self.give_back(self.confirmations.of(tenant, Some(name)));
    }

    /// The host ends: gives back all that nobody has confirmed, as far as providers answer.
    pub async fn end(&self) {
        let brought = self.confirmations.all().into_iter().map(|unconfirmed| {
            let keeper = self.keeper(&unconfirmed.want.tenant);
            async move { give_back(&keeper, &unconfirmed).await }
        });
        futures_util::future::join_all(brought.collect::<Vec<_>>()).await;
    }

    fn give_back(&self, brought: Vec<Unconfirmed>) {
        for unconfirmed in brought {
            let keeper = self.keeper(&unconfirmed.want.tenant);
            tokio::spawn(async move { give_back(&keeper, &unconfirmed).await });
        }
    }

    /// Removes the connections of one tenant, or of all, that are `unwanted`, by their owner: at their providers too where
    /// these can be told, and here in any case. Several at a time.
    async fn remove_all(&self, of: Option<&str>, unwanted: impl Fn(Option<&str>) -> bool) {
        let directory = self.registry.directory();
        let tenants = directory.tenants.keys().filter(|name| of.is_none_or(|of| of == *name));
        let mut gone = Vec::new();
        for tenant in tenants {
            // Without a master key there is nothing to remove with.
            let Ok(connections) = self.registry.connections(tenant) else { return };
            let unwanted = connections.into_iter().filter(|one| unwanted(subject_of(&one.subject)));
            gone.extend(unwanted.map(|connection| (tenant.clone(), connection)));
        }
        stream::iter(gone)
            .for_each_concurrent(REVOKED_AT_ONCE, async |(tenant, ConnectionInfo { provider, subject, .. })| {
                let owner = subject_of(&subject).unwrap_or_default();
                if let Err(error) = self.disconnect(&tenant, &provider, owner).await {
                    tracing::warn!(tenant, provider, %error, "a token could not be revoked at its provider");
                    self.drop_here(tenant, provider, subject).await;
                }
            })
            .await;
    }

    /// Removes what is kept, whatever has become of the provider.
    async fn drop_here(&self, tenant: String, provider: String, subject: String) {
        let registry = self.registry.clone();
        let removed = tokio::task::spawn_blocking(move || {
            match registry.remove_connection(&Actor::host(), &tenant, &provider, &subject) {
                Err(error) if error.code() != "not_found" => {
                    tracing::error!(tenant, provider, %error, "a token could not be removed");
                }
                _ => {}
            }
        });
        // A lost blocking task means the runtime is going down.
        let _ = removed.await;
    }

    /// Removes the connections of a key that is revoked.
    pub async fn remove_of_key(&self, id: &str) {
        self.give_back(self.confirmations.of_asker(id));
        self.remove_all(None, |owner| owner == Some(id)).await;
    }

    /// Removes all connections of a tenant that is about to be deleted.
    pub async fn remove_of_tenant(&self, tenant: &str) {
        self.give_back(self.confirmations.of(tenant, None));
        self.remove_all(Some(tenant), |_| true).await;
    }

    /// Removes the connections of keys that are revoked, expired or gone.
    pub async fn sweep(&self) {
        let (directory, now) = (self.registry.directory(), registry::now());
        let living = directory.keys.values().filter(|key| key.expires_at.is_none_or(|at| at > now));
        let living: HashSet<&str> = living.map(|key| key.id.as_str()).collect();
        let dead = |owner: &str| owner.starts_with(KEY) && !living.contains(owner);
        self.remove_all(None, |owner| owner.is_some_and(dead)).await;
    }

    /// Removes a connection, at the provider too if it can be told.
    pub async fn disconnect(&self, tenant: &str, name: &str, subject: &str) -> Result<bool, ConnectError> {
        let Known { provider, secret } = self.known(tenant, name)?;
        let revoked = self.keeper(tenant).revoke(tenant, name, &provider, secret.as_ref(), subject).await?;
        Ok(revoked == Revoked::AtProvider)
    }
}

/// Whether a caller may still come. Of the subjects of tokens only their issuer knows.
fn is_alive(directory: &Directory, owner: &str) -> bool {
    let now = registry::now();
    !owner.starts_with(KEY)
        || directory.keys.values().any(|key| key.id == owner && key.expires_at.is_none_or(|at| at > now))
}

async fn give_back(keeper: &TenantKeeper, unconfirmed: &Unconfirmed) {
    let Unconfirmed { want, tokens, known, .. } = unconfirmed;
    if let Err(error) = keeper.give_back(&known.provider, tokens, known.secret.as_ref()).await {
        let Want { tenant, provider, .. } = want;
        tracing::warn!(tenant, provider, %error, "a token that was not confirmed could not be revoked");
    }
}
