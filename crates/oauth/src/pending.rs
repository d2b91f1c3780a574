//! An attempt to connect that waits for its browser.

use crate::error::Error;
use crate::provider::Provider;
use crate::tokens::to_secret;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A person has so long to agree.
pub const PENDING_SECONDS: u64 = 600;

/// Clocks of one host may be set back a little in between.
const BACKWARDS_SECONDS: u64 = 60;

/// To be kept, sealed, under its [`handle`](Pending::handle), together with who began it, and to be taken out of there
/// by the first browser that comes back with it. It serves once.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pending {
    pub(crate) state: SecretString,
    pub(crate) verifier: SecretString,
    pub(crate) redirect_uri: String,
    issued_at: u64,
    provider: String,
}

impl Pending {
    pub(crate) fn new(provider: &Provider, redirect_uri: &str, now: u64) -> Result<Pending, Error> {
        Ok(Pending {
            state: random()?,
            verifier: random()?,
            redirect_uri: redirect_uri.to_owned(),
            issued_at: now,
            provider: provider.fingerprint(),
        })
    }

    /// A name to find this by when the browser comes back. It does not give the state away.
    pub fn handle(&self) -> String {
        handle_of(self.state.expose_secret())
    }

    /// After this moment it may be thrown away.
    pub fn ends_at(&self) -> u64 {
        self.issued_at.saturating_add(PENDING_SECONDS)
    }

    pub fn to_secret(&self) -> SecretString {
        #[derive(Serialize)]
        struct Written<'a> {
            state: &'a str,
            verifier: &'a str,
            redirect_uri: &'a str,
            issued_at: u64,
            provider: &'a str,
        }
        to_secret(&Written {
            state: self.state.expose_secret(),
            verifier: self.verifier.expose_secret(),
            redirect_uri: &self.redirect_uri,
            issued_at: self.issued_at,
            provider: &self.provider,
        })
    }

    pub fn from_secret(text: &SecretString) -> Result<Pending, Error> {
        serde_json::from_str(text.expose_secret()).map_err(|_| Error::Kept)
    }

    /// What the authorize URL says of the verifier (RFC 7636, S256).
    pub(crate) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.expose_secret()))
    }

    pub(crate) fn check_time(&self, now: u64) -> Result<(), Error> {
        let begun = now.saturating_add(BACKWARDS_SECONDS) >= self.issued_at;
        if begun && now <= self.ends_at() { Ok(()) } else { Err(Error::Late) }
    }

    pub(crate) fn check_provider(&self, provider: &Provider) -> Result<(), Error> {
        if self.provider == provider.fingerprint() { Ok(()) } else { Err(Error::Changed) }
    }

    /// Takes as long for every wrong state, so that nobody finds the right one piece by piece.
    pub(crate) fn check_state(&self, state: &str) -> Result<(), Error> {
        let same = self.state.expose_secret().as_bytes().ct_eq(state.as_bytes());
        if same.into() { Ok(()) } else { Err(Error::State) }
    }
}

pub(crate) fn handle_of(state: &str) -> String {
    let hash = Sha256::new_with_prefix(b"oauth state 1").chain_update(state);
    URL_SAFE_NO_PAD.encode(hash.finalize())
}

/// 256 bits, in 43 characters that fit into a URL and into a verifier.
fn random() -> Result<SecretString, Error> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(bytes.as_mut()).map_err(|_| Error::Random)?;
    let text = Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes.as_ref()));
    Ok(SecretString::from(text.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7636, appendix B.
    #[test]
    fn the_challenge_is_the_one_of_the_rfc() {
        let pending = Pending {
            state: "s".into(),
            verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".into(),
            redirect_uri: String::new(),
            issued_at: 0,
            provider: String::new(),
        };
        assert_eq!(pending.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn random_texts_are_long_and_differ() {
        let (one, other) = (random().unwrap(), random().unwrap());
        assert_eq!(one.expose_secret().len(), 43);
        assert_ne!(one.expose_secret(), other.expose_secret());
    }
}
