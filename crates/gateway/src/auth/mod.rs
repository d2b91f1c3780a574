//! Who is asking: keys of this host, and tokens of an OAuth 2.1 authorisation server.
//!
//! A key is found by the SHA-256 of its token in the registry's directory, so it stops working the moment it is revoked.
//! A token of the issuer is a JWT, checked against the issuer's keys; it ends when it expires. Neither is ever logged,
//! put into an error, kept, or passed on.

mod bearer;
mod caller;
mod claims;
mod denied;
mod issuer;
mod jwks;
mod oauth;
mod resource;
mod settings;

pub use caller::Caller;
pub use denied::Denied;
pub use issuer::IssuerHealth;
pub use resource::Resource;
pub use settings::{AuthSettings, JwksTiming, OAuthSettings, RoleScopes, SettingsError};

use http::HeaderMap;
use oauth::OAuth;
use registry::{Directory, token_hash};
use std::time::{SystemTime, UNIX_EPOCH};

/// What keys of this host begin with. No JWT does.
const KEY_PREFIX: &str = "bh_";

pub struct Authenticator {
    oauth: Option<OAuth>,
}

impl Authenticator {
    pub fn new(settings: AuthSettings) -> Result<Authenticator, SettingsError> {
        let AuthSettings { public_url, oauth } = settings;
        let oauth = oauth.map(|oauth| OAuth::new(oauth, public_url.as_deref())).transpose()?;
        Ok(Authenticator { oauth })
    }

    /// Who sent these headers. That they may do what they ask for is not said: a key of another tenant is a good key, and
    /// what it sees is for the asker to decide ([`Caller::of_tenant`]). A JWT must be made out to what is asked for.
    pub async fn caller(
        &self,
        directory: &Directory,
        headers: &HeaderMap,
        resource: &Resource<'_>,
    ) -> Result<Caller, Denied> {
        let token = bearer::token(headers)?;
        let now = wall_clock();
        if token.starts_with(KEY_PREFIX) {
            return by_key(directory, token, now);
        }
        match &self.oauth {
            Some(oauth) => oauth.caller(directory, token, resource, now).await,
            None => Err(Denied::Invalid("the key is unknown")),
        }
    }

    /// How the issuer is. None without OAuth.
    pub fn issuer_health(&self) -> Option<IssuerHealth> {
        self.oauth.as_ref().map(OAuth::health)
    }
}

/// Every key costs the same to refuse: a digest and a lookup by it. What a stranger could learn from the time of the
/// lookup is about the digest of what they sent, which is nothing.
fn by_key(directory: &Directory, token: &str, now: u64) -> Result<Caller, Denied> {
    let key = directory.keys.get(&token_hash(token)).filter(|key| key.revoked_at.is_none());
    let key = key.ok_or(Denied::Invalid("the key is unknown or was revoked"))?;
    if key.expires_at.is_some_and(|expires_at| expires_at <= now) {
        return Err(Denied::Invalid("the key has expired"));
    }
    Ok(Caller::of_key(key))
}

/// Seconds since 1970. On a clock that stands before that, everything that can expire has expired.
fn wall_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(u64::MAX, |time| time.as_secs())
}

#[cfg(test)]
mod tests;
