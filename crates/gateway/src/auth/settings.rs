//! Whom to believe.

use jsonwebtoken::Algorithm;
use reqwest::Url;
use std::net::IpAddr;
use std::time::Duration;
use thiserror::Error;

/// More than this and an expired token is not expired.
const MAX_LEEWAY_S: u64 = 600;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuthSettings {
    /// What clients call this host: tokens are made out to URLs below it. Needed for OAuth.
    pub public_url: Option<String>,
    /// None: keys only.
    pub oauth: Option<OAuthSettings>,
}

/// An OAuth 2.1 authorisation server whose tokens are good here.
#[derive(Clone, Debug, PartialEq)]
pub struct OAuthSettings {
    /// The `iss` of its tokens, exactly. HTTPS, or HTTP on loopback.
    pub issuer: String,
    /// Where its keys are. None: where its own metadata says (RFC 8414 or OpenID Connect Discovery).
    pub jwks_url: Option<String>,
    /// What a token may be made out to beside the URL of what is asked for.
    pub audiences: Vec<String>,
    /// The claim that names the tenant; with a leading `/`, a JSON pointer into the claims.
    pub tenant_claim: String,
    /// A claim that says `call`, `deploy` or `admin`, written like `tenant_claim`. None: the scopes say it.
    pub role_claim: Option<String>,
    /// Claims that hold scopes, as text with spaces between or as a list.
    pub scope_claims: Vec<String>,
    /// What the scopes are called that stand for roles.
    pub scopes: RoleScopes,
    /// How tokens may be signed. Names of RFC 7518; none of the symmetric ones.
    pub algorithms: Vec<String>,
    /// How far the issuer's clock may be off.
    pub leeway_s: u64,
    pub jwks: JwksTiming,
}

impl OAuthSettings {
    pub fn new(issuer: impl Into<String>) -> OAuthSettings {
        OAuthSettings {
            issuer: issuer.into(),
            jwks_url: None,
            audiences: Vec::new(),
            tenant_claim: "tenant".to_owned(),
            role_claim: None,
            scope_claims: vec!["scope".to_owned(), "scp".to_owned()],
            scopes: RoleScopes::default(),
            algorithms: ["RS256", "ES256", "EdDSA"].map(str::to_owned).to_vec(),
            leeway_s: 30,
            jwks: JwksTiming::default(),
        }
    }
}

/// A token with several of them has the highest. None of them makes an operator: who runs the host has a key.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleScopes {
    pub call: String,
    pub deploy: String,
    pub admin: String,
}

impl Default for RoleScopes {
    fn default() -> RoleScopes {
        RoleScopes { call: "mcp:call".to_owned(), deploy: "mcp:deploy".to_owned(), admin: "mcp:admin".to_owned() }
    }
}

/// When the issuer's keys are fetched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JwksTiming {
    /// All requests of one fetch together.
    pub timeout: Duration,
    /// A token with a key that is not known fetches the keys again, but not sooner than this after the last time.
    pub refetch: Duration,
    /// The same while there are no keys at all, so that a host that started before its issuer is not deaf for long.
    pub retry: Duration,
    /// Keys older than this are fetched again while the old ones go on working.
    pub refresh: Duration,
    /// Keys that could not be fetched again for so long count no more: an issuer that is down for longer takes its
    /// tokens with it, for nobody could tell which keys it has withdrawn.
    pub keep: Duration,
}

impl Default for JwksTiming {
    fn default() -> JwksTiming {
        JwksTiming {
            timeout: Duration::from_secs(5),
            refetch: Duration::from_secs(30),
            retry: Duration::from_secs(5),
            refresh: Duration::from_secs(10 * 60),
            keep: Duration::from_secs(24 * 60 * 60),
        }
    }
}

#[derive(Debug, Error)]
pub enum SettingsError {
    #[error("oauth needs `public_url`")]
    NoPublicUrl,
    #[error("`{value}` is no `{setting}`: {problem}")]
    BadUrl { setting: &'static str, value: String, problem: &'static str },
    #[error("`{0}` is no algorithm for tokens")]
    BadAlgorithm(String),
    #[error("no algorithm for tokens is allowed")]
    NoAlgorithm,
    #[error("`{0}` is empty")]
    Empty(&'static str),
    #[error("`leeway_s` is {0}, and at most {MAX_LEEWAY_S} is allowed")]
    TooMuchLeeway(u64),
    #[error("the certificates of this system cannot be used")]
    Tls(#[source] rustls::Error),
    #[error("no client for the issuer can be made")]
    Client(#[source] reqwest::Error),
}

impl SettingsError {
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            SettingsError::NoPublicUrl => Some("tokens are made out to it, as `https://mcp.example.com`"),
            SettingsError::BadAlgorithm(_) | SettingsError::NoAlgorithm => {
                Some("there are RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and EdDSA")
            }
            SettingsError::Tls(_) => Some("install the system's CA certificates, or name a file in SSL_CERT_FILE"),
            _ => None,
        }
    }
}

/// In the form in which everything is compared: lower case host, no default port, no slash at the end.
pub(super) fn public_url(value: &str) -> Result<String, SettingsError> {
    let url = web_url("public_url", value)?;
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// An address of the issuer. What comes over plain HTTP anybody on the way could have written, so that is for loopback.
pub(super) fn issuer_url(setting: &'static str, value: &str) -> Result<Url, SettingsError> {
    let url = web_url(setting, value)?;
    if url.scheme() == "http" && !is_loopback(&url) {
        return Err(bad_url(setting, value, "plain http is for loopback only"));
    }
    Ok(url)
}

fn web_url(setting: &'static str, value: &str) -> Result<Url, SettingsError> {
    let bad = |problem| bad_url(setting, value, problem);
    let url = Url::parse(value).map_err(|_| bad("not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(bad("not a web address"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("credentials do not belong into a URL"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("it has a query or a fragment"));
    }
    Ok(url)
}

fn bad_url(setting: &'static str, value: &str, problem: &'static str) -> SettingsError {
    SettingsError::BadUrl { setting, value: value.to_owned(), problem }
}

pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The asymmetric ones. With a symmetric one, whoever can check a token can make it.
pub(super) fn algorithm(name: &str) -> Option<Algorithm> {
    Some(match name {
        "RS256" => Algorithm::RS256,
        "RS384" => Algorithm::RS384,
        "RS512" => Algorithm::RS512,
        "PS256" => Algorithm::PS256,
        "PS384" => Algorithm::PS384,
        "PS512" => Algorithm::PS512,
        "ES256" => Algorithm::ES256,
        "ES384" => Algorithm::ES384,
        // RFC 9864 gave the one curve of EdDSA that anybody uses a name of its own.
        "EdDSA" | "Ed25519" => Algorithm::EdDSA,
        _ => return None,
    })
}

pub(super) fn algorithms(names: &[String]) -> Result<Vec<Algorithm>, SettingsError> {
    if names.is_empty() {
        return Err(SettingsError::NoAlgorithm);
    }
    names.iter().map(|name| algorithm(name).ok_or_else(|| SettingsError::BadAlgorithm(name.clone()))).collect()
}

impl OAuthSettings {
    /// An empty name would match what a careless issuer left empty.
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        let RoleScopes { call, deploy, admin } = &self.scopes;
        let names = [
            ("tenant_claim", Some(&self.tenant_claim)),
            ("role_claim", self.role_claim.as_ref()),
            ("scopes.call", Some(call)),
            ("scopes.deploy", Some(deploy)),
            ("scopes.admin", Some(admin)),
            ("audiences", self.audiences.iter().find(|a| a.is_empty())),
            ("scope_claims", self.scope_claims.iter().find(|c| c.is_empty())),
        ];
        if let Some((name, _)) = names.into_iter().find(|(_, value)| value.is_some_and(String::is_empty)) {
            return Err(SettingsError::Empty(name));
        }
        if self.leeway_s > MAX_LEEWAY_S {
            return Err(SettingsError::TooMuchLeeway(self.leeway_s));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_form_of_the_public_url() {
        for value in ["https://MCP.example.com", "https://mcp.example.com/", "https://mcp.example.com:443//"] {
            assert_eq!(public_url(value).unwrap(), "https://mcp.example.com");
        }
        assert_eq!(public_url("http://127.0.0.1:8470/under/").unwrap(), "http://127.0.0.1:8470/under");
        for value in
            ["", "mcp.example.com", "ftp://x", "https://", "https://a@x", "https://x?y", "https://x#y", "data:,x"]
        {
            assert!(public_url(value).is_err(), "{value}");
        }
    }

    #[test]
    fn plain_http_is_for_loopback() {
        for value in
            ["http://127.0.0.1:1", "http://127.9.9.9", "http://[::1]:80", "http://localhost:9/x", "https://idp.example"]
        {
            assert!(issuer_url("issuer", value).is_ok(), "{value}");
        }
        for value in ["http://idp.example", "http://localhost.evil.example", "http://10.0.0.1", "http://0.0.0.0"] {
            assert!(issuer_url("issuer", value).is_err(), "{value}");
        }
    }

    #[test]
    fn symmetric_algorithms_cannot_be_allowed() {
        for name in ["HS256", "HS384", "HS512", "none", "None", "", "rs256", "ES512"] {
            assert!(algorithms(&["RS256".to_owned(), name.to_owned()]).is_err(), "{name}");
        }
        assert!(algorithms(&[]).is_err());
    }

    #[test]
    fn nothing_may_be_empty() {
        let good = OAuthSettings::new("https://idp.example");
        assert!(good.check().is_ok());
        let bad: [fn(&mut OAuthSettings); 6] = [
            |s| s.tenant_claim.clear(),
            |s| s.role_claim = Some(String::new()),
            |s| s.scopes.call.clear(),
            |s| s.audiences.push(String::new()),
            |s| s.scope_claims.push(String::new()),
            |s| s.leeway_s = MAX_LEEWAY_S + 1,
        ];
        for spoil in bad {
            let mut settings = good.clone();
            spoil(&mut settings);
            assert!(settings.check().is_err(), "{settings:?}");
        }
    }
}
