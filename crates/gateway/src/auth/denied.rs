//! How a stranger is answered.

use super::{Authenticator, Resource};
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};
use std::fmt;

/// Why somebody is not let in. Holds nothing of what they sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    NoCredentials,
    /// The text is for `error_description`: printable ASCII without quotes and backslashes.
    Invalid(&'static str),
    /// A good token that has no scope for anything here.
    InsufficientScope,
}

impl Denied {
    pub fn status(&self) -> StatusCode {
        match self {
            Denied::NoCredentials | Denied::Invalid(_) => StatusCode::UNAUTHORIZED,
            Denied::InsufficientScope => StatusCode::FORBIDDEN,
        }
    }

    pub fn code(&self) -> &'static str {
        match self {
            Denied::NoCredentials => "no_credentials",
            Denied::Invalid(_) => "invalid_token",
            Denied::InsufficientScope => "insufficient_scope",
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Denied::NoCredentials => "no key or token, which belongs into `Authorization: Bearer`",
            Denied::Invalid(why) => why,
            Denied::InsufficientScope => "the token has no scope for this",
        })
    }
}

impl std::error::Error for Denied {}

impl Authenticator {
    /// `WWW-Authenticate` after RFC 6750, with where to learn more after RFC 9728.
    pub fn challenge(&self, resource: &Resource<'_>, denied: &Denied) -> HeaderValue {
        let mut text = String::from("Bearer realm=\"bulkhead\"");
        let mut add = |name: &str, value: &str| {
            text.push_str(", ");
            text.push_str(name);
            text.push_str("=\"");
            text.extend(value.chars().filter(|c| !matches!(c, '"' | '\\')));
            text.push('"');
        };
        match denied {
            Denied::NoCredentials => {}
            Denied::Invalid(why) => {
                add("error", "invalid_token");
                add("error_description", why);
            }
            Denied::InsufficientScope => add("error", "insufficient_scope"),
        }
        if let Some(oauth) = &self.oauth
            && let Some(path) = resource.metadata_path()
        {
            // A client that has nothing yet asks for this scope and for no more.
            if let Some(scope) = oauth.call_scope()
                && !matches!(denied, Denied::Invalid(_))
            {
                add("scope", scope);
            }
            add("resource_metadata", &format!("{}{path}", oauth.public_url()));
        }
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("Bearer"))
    }

    /// RFC 9728. The same whether the resource exists or not. None without OAuth.
    pub fn metadata(&self, resource: &Resource<'_>) -> Option<Value> {
        let oauth = self.oauth.as_ref()?;
        resource.metadata_path()?;
        let mut document = json!({
            "resource": format!("{}{}", oauth.public_url(), resource.path()),
            "resource_name": resource.name(),
            "authorization_servers": [oauth.issuer_name()],
            "bearer_methods_supported": ["header"],
        });
        if let Some(scope) = oauth.call_scope() {
            // Clients ask for all that is listed, so what a client of MCP does not need is not.
            document["scopes_supported"] = json!([scope]);
        }
        Some(document)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AuthSettings, OAuthSettings};
    use super::*;

    const PRICES: Resource<'_> = Resource::Server { tenant: "acme", server: "prices" };

    fn keys_only() -> Authenticator {
        Authenticator::new(AuthSettings::default()).unwrap()
    }

    fn with_oauth() -> Authenticator {
        let oauth = OAuthSettings::new("http://127.0.0.1:1/realm");
        let public_url = Some("https://mcp.example.com/".to_owned());
        Authenticator::new(AuthSettings { public_url, oauth: Some(oauth) }).unwrap()
    }

    #[test]
    fn the_challenge_with_keys_only() {
        let auth = keys_only();
        assert_eq!(auth.challenge(&PRICES, &Denied::NoCredentials), "Bearer realm=\"bulkhead\"");
        assert_eq!(
            auth.challenge(&PRICES, &Denied::Invalid("the key has expired")),
            "Bearer realm=\"bulkhead\", error=\"invalid_token\", error_description=\"the key has expired\""
        );
        assert_eq!(auth.metadata(&PRICES), None);
    }

    #[test]
    fn the_challenge_with_oauth_says_where_to_get_a_token() {
        let auth = with_oauth();
        let metadata =
            "resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/acme/prices/mcp\"";
        assert_eq!(
            auth.challenge(&PRICES, &Denied::NoCredentials),
            format!("Bearer realm=\"bulkhead\", scope=\"mcp:call\", {metadata}").as_str()
        );
        assert_eq!(
            auth.challenge(&PRICES, &Denied::Invalid("the token has expired")),
            format!("Bearer realm=\"bulkhead\", error=\"invalid_token\", error_description=\"the token has expired\", {metadata}")
                .as_str()
        );
        assert_eq!(
            auth.challenge(&PRICES, &Denied::InsufficientScope),
            format!("Bearer realm=\"bulkhead\", error=\"insufficient_scope\", scope=\"mcp:call\", {metadata}").as_str()
        );
        assert_eq!(auth.challenge(&Resource::Host, &Denied::NoCredentials), "Bearer realm=\"bulkhead\"");
    }

    #[test]
    fn odd_names_stay_inside_their_quotes() {
        let odd = Resource::Server { tenant: "a\", evil=\"", server: "b\r\nSet-Cookie: x\u{e4}" };
        let challenge = with_oauth().challenge(&odd, &Denied::NoCredentials);
        let text = challenge.to_str().unwrap();
        assert_eq!(text.matches('"').count(), 6, "{text}");
        assert!(!text.contains("evil=") && text.contains("resource_metadata"), "{text}");
    }

    #[test]
    fn the_metadata_document() {
        let expected = json!({
            "resource": "https://mcp.example.com/acme/prices/mcp",
            "resource_name": "acme/prices",
            "authorization_servers": ["http://127.0.0.1:1/realm"],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["mcp:call"],
        });
        assert_eq!(with_oauth().metadata(&PRICES), Some(expected));
        let tenant = with_oauth().metadata(&Resource::Tenant { tenant: "acme" }).unwrap();
        assert_eq!(tenant["resource"], "https://mcp.example.com/acme/mcp");
        assert_eq!(with_oauth().metadata(&Resource::Host), None);
    }

    #[test]
    fn a_status_for_each() {
        assert_eq!(Denied::NoCredentials.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(Denied::Invalid("x").status(), StatusCode::UNAUTHORIZED);
        assert_eq!(Denied::InsufficientScope.status(), StatusCode::FORBIDDEN);
    }
}
