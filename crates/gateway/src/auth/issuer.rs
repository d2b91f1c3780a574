//! The authorisation server: where its keys are, and when they are fetched.
//!
//! Keys are kept in memory. Nothing is fetched while they are fresh and known; a token that names an unknown key fetches
//! them again, at most once in a while, and all who wait share one fetch. The fetch belongs to nobody's request: a client
//! that hangs up cannot end it for the others.

use super::jwks::KeySet;
use super::settings::{self, JwksTiming, OAuthSettings, SettingsError};
use crate::problem::chain;
use arc_swap::ArcSwapOption;
use jsonwebtoken::{Algorithm, DecodingKey};
use reqwest::{Client, Url};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::sync::{Semaphore, watch};

/// What an issuer may answer with.
const MAX_DOCUMENT_BYTES: usize = 256 * 1024;
/// Requests that may wait for a fetch at once. Whoever comes later is refused, so that a slow issuer and a flood of
/// made-up key ids hold no more than this.
const MAX_WAITING: usize = 64;

const NO_USABLE_KEY: &str = "its set holds no key that can be used";

pub(super) struct Issuer {
    name: String,
    jwks_url: Option<Url>,
    /// Where its own metadata may be, best first.
    metadata_urls: Vec<Url>,
    timing: JwksTiming,
    client: Client,
    keys: ArcSwapOption<Keys>,
    flight: Mutex<Flight>,
    waiting: Semaphore,
}

/// The keys as they were fetched.
pub(super) struct Keys {
    set: KeySet,
    digest: [u8; 32],
    fetched: Instant,
    /// Rises when the keys change, so that what an old key once proved can be asked again.
    pub generation: u64,
}

impl Keys {
    pub fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&DecodingKey> {
        self.set.find(id, algorithm)
    }
}

#[derive(Default)]
struct Flight {
    started: Option<Instant>,
    /// Closes when the fetch has ended.
    running: Option<watch::Receiver<()>>,
    failed: Option<String>,
}

/// How the issuer is, for whoever looks after the host.
#[derive(Clone, Debug, PartialEq)]
pub struct IssuerHealth {
    /// Keys at hand.
    pub keys: usize,
    /// How old they are. None: there are none.
    pub age: Option<Duration>,
    /// Why the last fetch failed, if it did.
    pub problem: Option<String>,
}

#[derive(Debug, Error)]
enum FetchError {
    #[error("it did not answer in time")]
    Slow,
    #[error("it cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    #[error("it answered with status {0}")]
    Status(u16),
    #[error("its answer is longer than {MAX_DOCUMENT_BYTES} bytes")]
    TooLong,
    #[error("its answer is no set of keys")]
    NoKeySet,
    #[error("its metadata cannot be read")]
    BadMetadata,
    #[error("its metadata is that of another issuer")]
    OtherIssuer,
    #[error("its metadata names no address for its keys that can be used")]
    BadJwksUrl,
}

impl Issuer {
    pub fn new(settings: &OAuthSettings) -> Result<Issuer, SettingsError> {
        let url = settings::issuer_url("issuer", &settings.issuer)?;
        let jwks_url = settings.jwks_url.as_deref().map(|u| settings::issuer_url("jwks_url", u)).transpose()?;
        let encrypted = [Some(&url), jwks_url.as_ref()].into_iter().flatten().any(|u| u.scheme() == "https");
        Ok(Issuer {
            name: settings.issuer.clone(),
            metadata_urls: metadata_urls(&url),
            jwks_url,
            timing: settings.jwks,
            client: client(encrypted)?,
            keys: ArcSwapOption::empty(),
            flight: Mutex::default(),
            waiting: Semaphore::new(MAX_WAITING),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn health(&self) -> IssuerHealth {
        let keys = self.keys.load();
        IssuerHealth {
            keys: keys.as_ref().map_or(0, |keys| keys.set.len()),
            age: keys.as_ref().map(|keys| keys.fetched.elapsed()),
            problem: self.flight().failed.clone(),
        }
    }

    /// The keys, if there are any that still count. Old ones are fetched again on the side.
    pub fn keys(self: &Arc<Self>) -> Option<Arc<Keys>> {
        let keys = self.keys.load_full()?;
        let age = keys.fetched.elapsed();
        if age >= self.timing.refresh {
            self.fetch();
        }
        (age < self.timing.keep).then_some(keys)
    }

    /// The keys, with the named one among them if the issuer has it.
    pub async fn keys_with(self: &Arc<Self>, id: Option<&str>, algorithm: Algorithm) -> Option<Arc<Keys>> {
        let has = |keys: &Arc<Keys>| keys.find(id, algorithm).is_some();
        if let Some(keys) = self.keys().filter(has) {
            return Some(keys);
        }
        if let Some(mut flight) = self.fetch() {
            let _place = self.waiting.try_acquire().ok()?;
            // Nothing is ever sent; the channel closes when the fetch is over.
            let _ = flight.changed().await;
        }
        self.keys()
    }

    /// Starts a fetch or joins the one that runs. None if the last one is not long enough ago.
    fn fetch(self: &Arc<Self>) -> Option<watch::Receiver<()>> {
        let has_keys = self.keys.load().as_ref().is_some_and(|keys| keys.set.len() > 0);
        let pause = if has_keys { self.timing.refetch } else { self.timing.retry };
        let mut flight = self.flight();
        if let Some(running) = flight.running.as_ref().filter(|running| running.has_changed().is_ok()) {
            return Some(running.clone());
        }
        if flight.started.is_some_and(|started| started.elapsed() < pause) {
            return None;
        }
        let (landed, running) = watch::channel(());
        flight.started = Some(Instant::now());
        flight.running = Some(running.clone());
        drop(flight);
        let issuer = self.clone();
        tokio::spawn(async move {
            issuer.fetch_now().await;
            drop(landed);
        });
        Some(running)
    }

    async fn fetch_now(&self) {
        let fetched = Instant::now();
        let loaded = tokio::time::timeout(self.timing.timeout, self.load()).await.unwrap_or(Err(FetchError::Slow));
        let failed = match loaded {
            Ok((set, digest)) => {
                let before = self.keys.load();
                let generation = match before.as_deref() {
                    Some(before) if before.digest == digest => before.generation,
                    Some(before) => before.generation + 1,
                    None => 0,
                };
                tracing::debug!(issuer = self.name, keys = set.len(), generation, "the issuer's keys were fetched");
                // An issuer that withdraws all its keys means it.
                let failed = (set.len() == 0).then(|| NO_USABLE_KEY.to_owned());
                self.keys.store(Some(Arc::new(Keys { set, digest, fetched, generation })));
                failed
            }
            Err(error) => {
                // At most once per pause, so this cannot fill a log.
                let problem = chain(&error);
                tracing::warn!(issuer = self.name, problem, "the issuer's keys could not be fetched");
                Some(problem)
            }
        };
        self.flight().failed = failed;
    }

    async fn load(&self) -> Result<(KeySet, [u8; 32]), FetchError> {
        let url = match &self.jwks_url {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let document = self.get(url).await?;
        let set = KeySet::parse(&document).ok_or(FetchError::NoKeySet)?;
        Ok((set, Sha256::digest(&document).into()))
    }

    /// RFC 8414 section 3, or else OpenID Connect Discovery.
    async fn discover(&self) -> Result<Url, FetchError> {
        #[derive(Deserialize)]
        struct Metadata {
            issuer: String,
            jwks_uri: Option<String>,
        }
        let mut last = FetchError::BadMetadata;
        for url in &self.metadata_urls {
            let document = match self.get(url.clone()).await {
                Ok(document) => document,
                Err(error @ FetchError::Status(_)) => {
                    last = error;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let metadata: Metadata = serde_json::from_slice(&document).map_err(|_| FetchError::BadMetadata)?;
            // Whoever else can put a file there must not lend their keys to this issuer.
            if metadata.issuer != self.name {
                return Err(FetchError::OtherIssuer);
            }
            // RFC 8414 allows to leave it out.
            let Some(jwks_url) = metadata.jwks_uri else {
                last = FetchError::BadJwksUrl;
                continue;
            };
            let jwks_url = Url::parse(&jwks_url).map_err(|_| FetchError::BadJwksUrl)?;
            let allowed = jwks_url.scheme() == "https"
                || jwks_url.scheme() == "http" && settings::is_loopback(&jwks_url) && settings::is_loopback(url);
            return if allowed { Ok(jwks_url) } else { Err(FetchError::BadJwksUrl) };
        }
        Err(last)
    }

    async fn get(&self, url: Url) -> Result<Vec<u8>, FetchError> {
        let request = self.client.get(url).header(http::header::ACCEPT, "application/json");
        let mut response = request.send().await.map_err(|e| FetchError::Unreachable(e.without_url()))?;
        if response.status() != http::StatusCode::OK {
            return Err(FetchError::Status(response.status().as_u16()));
        }
        if response.content_length().is_some_and(|length| length > MAX_DOCUMENT_BYTES as u64) {
            return Err(FetchError::TooLong);
        }
        let mut document = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| FetchError::Unreachable(e.without_url()))? {
            if document.len() + chunk.len() > MAX_DOCUMENT_BYTES {
                return Err(FetchError::TooLong);
            }
            document.extend_from_slice(&chunk);
        }
        Ok(document)
    }

    fn flight(&self) -> MutexGuard<'_, Flight> {
        self.flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// RFC 8414 puts its name between host and path, OpenID Connect after the path.
fn metadata_urls(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let at = |path: String| {
        let mut url = issuer.clone();
        url.set_path(&path);
        url
    };
    let mut urls = vec![at(format!("/.well-known/oauth-authorization-server{path}"))];
    urls.push(at(format!("{path}/.well-known/openid-configuration")));
    urls
}

/// No redirects: they could lead out of what was checked. The provider is named, for the process may have none.
fn client(encrypted: bool) -> Result<Client, SettingsError> {
    use rustls_platform_verifier::BuilderVerifierExt;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(SettingsError::Tls)?;
    // Plain HTTP on loopback needs no certificates, and a machine may have none.
    let tls = if encrypted {
        tls.with_platform_verifier().map_err(SettingsError::Tls)?
    } else {
        tls.with_root_certificates(rustls::RootCertStore::empty())
    };
    let builder = Client::builder()
        .tls_backend_preconfigured(tls.with_no_client_auth())
        .redirect(reqwest::redirect::Policy::none())
        .pool_max_idle_per_host(0)
        .user_agent(concat!("bulkhead/", env!("CARGO_PKG_VERSION")));
    let builder = if encrypted { builder } else { builder.no_proxy() };
    builder.build().map_err(SettingsError::Client)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_where_both_standards_put_it() {
        let urls =
            |issuer: &str| metadata_urls(&Url::parse(issuer).unwrap()).iter().map(Url::to_string).collect::<Vec<_>>();
        assert_eq!(
            urls("https://idp.example"),
            [
                "https://idp.example/.well-known/oauth-authorization-server",
                "https://idp.example/.well-known/openid-configuration"
            ]
        );
        assert_eq!(
            urls("https://idp.example/realms/acme/"),
            [
                "https://idp.example/.well-known/oauth-authorization-server/realms/acme",
                "https://idp.example/realms/acme/.well-known/openid-configuration"
            ]
        );
    }

    #[test]
    fn a_client_needs_no_provider_of_the_process() {
        assert!(client(false).is_ok());
    }
}
