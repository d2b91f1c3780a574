//! Keeps connections: a token for a call, renewed in time, by one at a time.

mod slots;
mod store;

pub use store::{Clock, Connection, Store, SystemClock};

use crate::error::{Error, StoreError};
use crate::http::Http;
use crate::provider::{Grant, Provider};
use crate::request::{self, TokenRequest};
use crate::tokens::Tokens;
use secrecy::SecretString;
use slots::{Held, Slots};
use std::sync::Arc;
use std::time::Duration;

/// So long a call waits for those before it that use the same connection.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// A provider that failed is not asked again at once: meanwhile everybody gets the same answer.
const RETRY_SECONDS: u64 = 5;

/// A new refresh token that is never saved is a connection lost, so the store gets some chances.
const PAUSES_OF_SAVING: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(500)];

/// Everything that changes a connection goes through one keeper. What it has begun it finishes, also when the caller is
/// gone by then: a provider that has given a new refresh token takes the old one no more.
pub struct Keeper<S, H, C>(Arc<Parts<S, H, C>>);

struct Parts<S, H, C> {
    store: S,
    http: H,
    clock: C,
    slots: Slots,
}

/// How far a revocation went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoked {
    AtProvider,
    /// The provider has no way to be told.
    HereOnly,
}

impl<S: Store, H: Http, C: Clock> Keeper<S, H, C> {
    pub fn new(store: S, http: H, clock: C) -> Keeper<S, H, C> {
        Keeper(Arc::new(Parts { store, http, clock, slots: Slots::default() }))
    }

    /// An access token for a call of `subject`, with time left.
    pub async fn token(
        &self,
        tenant: &str,
        provider_name: &str,
        provider: &Provider,
        client_secret: Option<&SecretString>,
        subject: &str,
    ) -> Result<SecretString, Error> {
        let connection = Connection::new(tenant, provider_name, provider, subject)?;
        let kept = self.0.load(&connection, provider).await?;
        let now = self.0.clock.now();
        match &kept {
            None if provider.grant == Grant::Code => return Err(Error::NotConnected),
            Some(tokens) if tokens.is_fresh(now) => return Ok(tokens.access.clone()),
            // Its last minute is its last.
            Some(tokens) if provider.grant == Grant::Code && tokens.refresh.is_none() => {
                return if tokens.is_valid(now) { Ok(tokens.access.clone()) } else { Err(Error::Expired) };
            }
            _ => {}
        }
        let (parts, provider, secret) = (self.0.clone(), provider.clone(), client_secret.cloned());
        let renewed = self.alone(connection, async move |mut held| parts.renew(&mut held, &provider, secret).await);
        match (renewed.await, kept) {
            (Ok(tokens), _) => Ok(tokens.access),
            (Err(error), Some(tokens)) if error.is_passing() && tokens.is_valid(self.0.clock.now()) => {
                Ok(tokens.access)
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Sends what [`finish`](crate::finish) has made. Nothing is kept yet: tokens become a connection with
    /// [`keep`](Keeper::keep), and go back with [`give_back`](Keeper::give_back).
    pub async fn exchange(&self, request: TokenRequest, client_secret: Option<&SecretString>) -> Result<Tokens, Error> {
        request.send(&self.0.http, client_secret, self.0.clock.now()).await
    }

    /// Keeps tokens as the connection of `subject`, in the place of what was there.
    pub async fn keep(
        &self,
        tenant: &str,
        provider_name: &str,
        provider: &Provider,
        tokens: Tokens,
        subject: &str,
    ) -> Result<(), Error> {
        if !tokens.is_of(provider) {
            return Err(Error::Changed);
        }
        let connection = Connection::new(tenant, provider_name, provider, subject)?;
        let parts = self.0.clone();
        let kept = async move |mut held: Held| {
            (held.failed, held.unsaved) = (None, None);
            parts.save(held.connection(), &tokens).await
        };
        self.alone(connection, kept).await
    }

    /// Tells the provider that tokens which were never kept are not needed.
    pub async fn give_back(
        &self,
        provider: &Provider,
        tokens: &Tokens,
        client_secret: Option<&SecretString>,
    ) -> Result<Revoked, Error> {
        self.0.tell(provider, tokens, client_secret).await
    }

    /// Removes the connection, here in any case. An error of the provider is reported after that.
    pub async fn revoke(
        &self,
        tenant: &str,
        provider_name: &str,
        provider: &Provider,
        client_secret: Option<&SecretString>,
        subject: &str,
    ) -> Result<Revoked, Error> {
        let connection = Connection::new(tenant, provider_name, provider, subject)?;
        let (parts, provider, secret) = (self.0.clone(), provider.clone(), client_secret.cloned());
        self.alone(connection, async move |mut held| parts.revoke(&mut held, &provider, secret).await).await
    }

    /// Does this while nobody else does anything with the connection.
    async fn alone<T, F, W>(&self, connection: Connection, work: W) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
        W: FnOnce(Held) -> F,
    {
        let held = tokio::time::timeout(LONGEST_WAIT, self.0.slots.hold(connection)).await.map_err(|_| Error::Busy)?;
        tokio::spawn(work(held)).await.map_err(|_| Error::Stopped)?
    }
}

impl<S: Store, H: Http, C: Clock> Parts<S, H, C> {
    /// Tokens of another provider, which once had this name, are as good as none.
    async fn load(&self, connection: &Connection, provider: &Provider) -> Result<Option<Tokens>, Error> {
        let tokens = self.store.load(connection).await?;
        Ok(tokens.filter(|tokens| tokens.is_of(provider)))
    }

    async fn save(&self, connection: &Connection, tokens: &Tokens) -> Result<(), Error> {
        for pause in PAUSES_OF_SAVING {
            if self.store.save(connection, tokens).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(pause).await;
        }
        Ok(self.store.save(connection, tokens).await?)
    }

    /// What is kept, or what should be. What was removed since stays away.
    async fn latest(&self, held: &mut Held, provider: &Provider) -> Result<Option<Tokens>, Error> {
        let kept = self.load(held.connection(), provider).await?;
        let wanted = kept.is_some() || provider.grant == Grant::ClientCredentials;
        let Some(unsaved) = held.unsaved.take().filter(|tokens| wanted && tokens.is_of(provider)) else {
            return Ok(kept);
        };
        let saved = self.store.save(held.connection(), &unsaved).await;
        held.unsaved = saved.is_err().then(|| unsaved.clone());
        Ok(Some(unsaved))
    }

    async fn renew(&self, held: &mut Held, provider: &Provider, secret: Option<SecretString>) -> Result<Tokens, Error> {
        // Whoever was here before may have done it.
        let kept = self.latest(held, provider).await?;
        let now = self.clock.now();
        if let Some(tokens) = kept.as_ref().filter(|tokens| tokens.is_fresh(now)) {
            return Ok(tokens.clone());
        }
        if let Some((_, error)) = held.failed.as_ref().filter(|(at, _)| now.abs_diff(*at) < RETRY_SECONDS) {
            return Err(error.clone());
        }
        let request = match (provider.grant, &kept) {
            (Grant::ClientCredentials, _) => TokenRequest::client_credentials(provider),
            (Grant::Code, None) => return Err(Error::NotConnected),
            (Grant::Code, Some(tokens)) => TokenRequest::refresh(provider, tokens).ok_or(Error::Expired)?,
        };
        match request.send(&self.http, secret.as_ref(), now).await {
            Ok(tokens) => {
                let saved = self.save(held.connection(), &tokens).await;
                held.unsaved = saved.is_err().then(|| tokens.clone());
                held.failed = None;
                Ok(tokens)
            }
            Err(Error::Refused(refusal)) if provider.grant == Grant::Code && refusal.ends_the_grant() => {
                held.unsaved = None;
                self.store.remove(held.connection()).await?;
                Err(Error::Expired)
            }
            Err(error) => {
                held.failed = Some((self.clock.now(), error.clone()));
                Err(error)
            }
        }
    }

    async fn revoke(
        &self,
        held: &mut Held,
        provider: &Provider,
        secret: Option<SecretString>,
    ) -> Result<Revoked, Error> {
        let told = match self.store.load(held.connection()).await {
            Ok(None) => return Err(Error::NotConnected),
            Ok(Some(kept)) => self.tell(provider, &held.unsaved.take().unwrap_or(kept), secret.as_ref()).await,
            // What cannot be read can still be removed.
            Err(error) => Err(error.into()),
        };
        held.unsaved = None;
        self.store.remove(held.connection()).await?;
        told
    }

    async fn tell(
        &self,
        provider: &Provider,
        tokens: &Tokens,
        secret: Option<&SecretString>,
    ) -> Result<Revoked, Error> {
        match provider.revoke_url.as_ref().filter(|_| tokens.is_of(provider)) {
            Some(url) => request::revoke(provider, url, tokens, &self.http, secret).await.map(|()| Revoked::AtProvider),
            None => Ok(Revoked::HereOnly),
        }
    }
}
