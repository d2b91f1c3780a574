//! What a tenant says about a provider.

use crate::error::Invalid;
use crate::text::{is_plain, shown};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use url::{Host, Url};

const LONGEST_URL: usize = 2048;
const LONGEST_ID: usize = 512;
const LONGEST_VALUE: usize = 1024;
const MOST_SCOPES: usize = 64;
const MOST_PARAMETERS: usize = 32;

/// What the protocol itself says in its requests. `request` and `request_uri` would replace all of it (RFC 9101), and
/// with another `response_mode` the answer would not come back in the query.
const OWN_PARAMETERS: [&str; 20] = [
    "client_assertion",
    "client_assertion_type",
    "client_id",
    "client_secret",
    "code",
    "code_challenge",
    "code_challenge_method",
    "code_verifier",
    "grant_type",
    "iss",
    "redirect_uri",
    "refresh_token",
    "request",
    "request_uri",
    "response_mode",
    "response_type",
    "scope",
    "state",
    "token",
    "token_type_hint",
];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorize_url: Option<Url>,
    pub token_url: Url,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoke_url: Option<Url>,
    pub client_id: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    #[serde(default)]
    pub grant: Grant,
    #[serde(default)]
    pub per: Per,
    #[serde(default)]
    pub client_auth: ClientAuth,
    /// More for the authorize URL, such as `access_type=offline`. Client credentials have no such URL; for them it goes
    /// into the token request, such as `audience`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Answers must come from this issuer (RFC 9207). For providers that send `iss`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
}

/// How a token is come by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// A person agrees, in a browser.
    #[default]
    Code,
    /// The client asks for itself.
    ClientCredentials,
}

/// Whose a connection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    #[default]
    User,
    /// All callers of the tenant share one.
    Tenant,
}

/// How the client shows who it is at the token endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    #[default]
    Basic,
    Post,
    /// A public client: only its id.
    None,
}

impl Provider {
    /// Whether this can be used. `dev` lets plain HTTP through to loopback hosts, and to those alone.
    pub fn check(&self, dev: bool) -> Result<(), Invalid> {
        check_url("token_url", &self.token_url, dev)?;
        if let Some(url) = &self.authorize_url {
            check_url("authorize_url", url, dev)?;
        }
        if let Some(url) = &self.revoke_url {
            check_url("revoke_url", url, dev)?;
        }
        if !is_plain(&self.client_id, LONGEST_ID) {
            return Err(Invalid::new("client_id", format!("must be 1 to {LONGEST_ID} visible ASCII characters")));
        }
        if self.issuer.as_ref().is_some_and(|issuer| !is_plain(issuer, LONGEST_ID)) {
            return Err(Invalid::new("issuer", format!("must be 1 to {LONGEST_ID} visible ASCII characters")));
        }
        self.check_grant()?;
        self.check_scopes()?;
        self.check_parameters()
    }

    fn check_grant(&self) -> Result<(), Invalid> {
        match self.grant {
            Grant::Code if self.authorize_url.is_none() => {
                Err(Invalid::new("authorize_url", "is missing: people have to be sent somewhere to agree"))
            }
            Grant::ClientCredentials if self.client_auth == ClientAuth::None => {
                Err(Invalid::new("client_auth", "cannot be `none` with client credentials"))
            }
            Grant::ClientCredentials if self.per == Per::User => {
                Err(Invalid::new("per", "must be `tenant` with client credentials: they are nobody's own"))
            }
            _ => Ok(()),
        }
    }

    fn check_scopes(&self) -> Result<(), Invalid> {
        if self.scopes.len() > MOST_SCOPES {
            return Err(Invalid::new("scopes", format!("has more than {MOST_SCOPES} entries")));
        }
        let is_scope = |scope: &&String| is_plain(scope, LONGEST_ID) && !scope.contains(['"', '\\']);
        match self.scopes.iter().find(|scope| !is_scope(scope)) {
            Some(scope) => Err(Invalid::new("scopes", format!("has `{}`, which is no scope", shown(scope, 80)))),
            None => Ok(()),
        }
    }

    fn check_parameters(&self) -> Result<(), Invalid> {
        let wrong = |problem: String| Err(Invalid::new("parameters", problem));
        if self.parameters.len() > MOST_PARAMETERS {
            return wrong(format!("has more than {MOST_PARAMETERS} entries"));
        }
        let asked_at = if self.grant == Grant::Code { self.authorize_url.as_ref() } else { Some(&self.token_url) };
        for (name, value) in &self.parameters {
            let quoted = shown(name, 80);
            if !is_plain(name, LONGEST_ID) {
                return wrong(format!("has `{quoted}`, which is no name of a parameter"));
            }
            if is_own(name) {
                return wrong(format!("may not say `{quoted}`: the protocol does"));
            }
            if asked_at.is_some_and(|url| url.query_pairs().any(|(key, _)| key == name.as_str())) {
                return wrong(format!("has `{quoted}`, which the URL says already"));
            }
            if value.len() > LONGEST_VALUE || value.chars().any(bundle::is_hidden) {
                return wrong(format!("has a value for `{quoted}` that is too long or has hidden characters"));
            }
        }
        Ok(())
    }

    pub(crate) fn scope(&self) -> Option<String> {
        (!self.scopes.is_empty()).then(|| self.scopes.join(" "))
    }

    /// Tokens and attempts to connect belong to this; with another one they are worthless, and not to be sent there.
    /// Tokens are sent to be revoked, too: a `revoke_url` elsewhere than the `token_url` counts.
    pub(crate) fn fingerprint(&self) -> String {
        let mut hash = Sha256::new_with_prefix(b"oauth provider 1");
        let grant = format!("{:?}", self.grant);
        let issuer = self.issuer.as_deref().unwrap_or_default();
        let elsewhere = self.revoke_url.as_ref().filter(|url| url.origin() != self.token_url.origin());
        let parts = [self.token_url.as_str(), &self.client_id, &grant, issuer];
        for part in parts.into_iter().chain(elsewhere.map(Url::as_str)) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        URL_SAFE_NO_PAD.encode(hash.finalize())
    }
}

fn is_own(name: &str) -> bool {
    OWN_PARAMETERS.iter().any(|own| name.eq_ignore_ascii_case(own))
}

fn check_url(field: &'static str, url: &Url, dev: bool) -> Result<(), Invalid> {
    let wrong = |problem: &str| Err(Invalid::new(field, problem));
    if url.as_str().len() > LONGEST_URL {
        return wrong(&format!("has more than {LONGEST_URL} characters"));
    }
    match url.scheme() {
        "https" => {}
        "http" if dev && is_loopback(url) => {}
        "http" if is_loopback(url) => return wrong("must be https; plain http to loopback is for development"),
        _ => return wrong("must be https"),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("has a user or password in it");
    }
    if url.fragment().is_some() {
        return wrong("has a fragment (`#`)");
    }
    match url.query_pairs().find(|(name, _)| is_own(name)) {
        Some((name, _)) => wrong(&format!("may not say `{}`: the protocol does", shown(&name, 80))),
        None => Ok(()),
    }
}

/// Where the browser comes back to: a page of this host, so plain HTTP is fine on loopback.
pub(crate) fn check_redirect(redirect_uri: &str) -> Result<(), Invalid> {
    let url = Url::parse(redirect_uri).ok().filter(|_| is_plain(redirect_uri, LONGEST_URL));
    let url = url.ok_or_else(|| Invalid::new("redirect_uri", "is no URL"))?;
    if url.query().is_some() {
        return Err(Invalid::new("redirect_uri", "has a query, where the answer will be"));
    }
    check_url("redirect_uri", &url, true)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}
