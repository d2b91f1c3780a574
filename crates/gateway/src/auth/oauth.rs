//! Tokens of the issuer.

use super::claims::Claims;
use super::issuer::{Issuer, IssuerHealth};
use super::settings::{self, OAuthSettings, SettingsError};
use super::{Caller, Denied, Resource};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dashmap::DashMap;
use jsonwebtoken::crypto::rust_crypto;
use jsonwebtoken::{Algorithm, DecodingKey};
use registry::Directory;
use serde::Deserialize;
use serde::de::IgnoredAny;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Tokens whose signature need not be checked again. Of the token itself only a digest is kept.
const MAX_KNOWN: usize = 4096;

pub(super) struct OAuth {
    settings: OAuthSettings,
    public_url: String,
    algorithms: Vec<Algorithm>,
    issuer: Arc<Issuer>,
    known: DashMap<[u8; 32], Arc<Known>>,
}

/// A token whose signature was good.
struct Known {
    claims: Claims,
    /// Of the keys that said so.
    generation: u64,
}

/// What counts of a token's header. `jku`, `jwk`, `x5u` and `x5c` do not: whoever made the token would choose its key.
#[derive(Deserialize)]
struct Header {
    alg: String,
    typ: Option<String>,
    kid: Option<String>,
    crit: Option<IgnoredAny>,
}

impl OAuth {
    pub fn new(settings: OAuthSettings, public_url: Option<&str>) -> Result<OAuth, SettingsError> {
        settings.check()?;
        Ok(OAuth {
            public_url: settings::public_url(public_url.ok_or(SettingsError::NoPublicUrl)?)?,
            algorithms: settings::algorithms(&settings.algorithms)?,
            issuer: Arc::new(Issuer::new(&settings)?),
            known: DashMap::new(),
            settings,
        })
    }

    pub fn public_url(&self) -> &str {
        &self.public_url
    }

    pub fn issuer_name(&self) -> &str {
        self.issuer.name()
    }

    pub fn health(&self) -> IssuerHealth {
        self.issuer.health()
    }

    /// The scope that a client needs, where scopes decide.
    pub fn call_scope(&self) -> Option<&str> {
        self.settings.role_claim.is_none().then_some(&self.settings.scopes.call)
    }

    pub async fn caller(
        &self,
        directory: &Directory,
        token: &str,
        resource: &Resource<'_>,
        now: u64,
    ) -> Result<Caller, Denied> {
        let digest = Sha256::digest(token.as_bytes()).into();
        let known = match self.known(&digest) {
            Some(known) => known,
            None => self.verify(token, digest, now).await?,
        };
        let claims = &known.claims;
        claims.check_time(now, self.settings.leeway_s)?;
        claims.check_audience(resource, &self.public_url, &self.settings.audiences)?;
        if !directory.tenants.contains_key(&claims.tenant) {
            return Err(Denied::Invalid("the token names no tenant of this host"));
        }
        let role = claims.role.ok_or(Denied::InsufficientScope)?;
        let ends = claims.ends(self.settings.leeway_s);
        Ok(Caller::of_token(self.issuer_name(), &claims.subject, &claims.tenant, role, claims.scope.clone(), ends))
    }

    /// None if the issuer's keys have changed since, or count no more.
    fn known(&self, digest: &[u8; 32]) -> Option<Arc<Known>> {
        let known = self.known.get(digest).map(|known| known.clone())?;
        let keys = self.issuer.keys()?;
        (keys.generation == known.generation).then_some(known)
    }

    async fn verify(&self, token: &str, digest: [u8; 32], now: u64) -> Result<Arc<Known>, Denied> {
        let (message, signature) = token.rsplit_once('.').ok_or(MALFORMED)?;
        let (header, payload) = message.split_once('.').ok_or(MALFORMED)?;
        let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| MALFORMED)?;
        let (payload, signature) = (decode(payload)?, decode(signature)?);
        let algorithm = self.algorithm(&header)?;

        let keys = self.issuer.keys_with(header.kid.as_deref(), algorithm).await;
        let keys = keys.ok_or(Denied::Invalid("the keys of the issuer cannot be fetched"))?;
        let key = keys
            .find(header.kid.as_deref(), algorithm)
            .ok_or(Denied::Invalid("the token is signed with an unknown key"))?;
        if !is_signed(message, &signature, key, algorithm) {
            return Err(Denied::Invalid("the signature of the token is wrong"));
        }

        let claims = Claims::parse(&payload, &self.settings)?;
        let known = Arc::new(Known { claims, generation: keys.generation });
        self.remember(digest, &known, now);
        Ok(known)
    }

    fn algorithm(&self, header: &Header) -> Result<Algorithm, Denied> {
        if header.crit.is_some() {
            return Err(Denied::Invalid("the token needs an extension that is not understood"));
        }
        // Other kinds of signed statements of the same issuer are no tokens for access (RFC 8725, section 3.11).
        let typ = header.typ.as_deref().unwrap_or("JWT");
        if !["JWT", "at+jwt", "application/at+jwt"].iter().any(|known| known.eq_ignore_ascii_case(typ)) {
            return Err(Denied::Invalid("the token is no access token"));
        }
        let algorithm = settings::algorithm(&header.alg).filter(|algorithm| self.algorithms.contains(algorithm));
        algorithm.ok_or(Denied::Invalid("the token is signed with an algorithm that is not allowed"))
    }

    fn remember(&self, digest: [u8; 32], known: &Arc<Known>, now: u64) {
        let leeway = self.settings.leeway_s;
        if known.claims.ends(leeway) <= now {
            return;
        }
        if self.known.len() >= MAX_KNOWN {
            self.known.retain(|_, known| known.claims.ends(leeway) > now);
        }
        if self.known.len() >= MAX_KNOWN {
            // Digests are as good as random, so every other one of them is.
            self.known.retain(|digest, _| digest[0] & 1 == 0);
        }
        self.known.insert(digest, known.clone());
    }
}

const MALFORMED: Denied = Denied::Invalid("the token is malformed");

fn decode(part: &str) -> Result<Vec<u8>, Denied> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| MALFORMED)
}

fn is_signed(message: &str, signature: &Vec<u8>, key: &DecodingKey, algorithm: Algorithm) -> bool {
    let verifier = (rust_crypto::DEFAULT_PROVIDER.verifier_factory)(&algorithm, key);
    verifier.is_ok_and(|verifier| verifier.verify(message.as_bytes(), signature).is_ok())
}
