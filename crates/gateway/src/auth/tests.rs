use super::*;
use http::{HeaderValue, header};
use registry::{Key, Quota, Role, Scope};
use std::sync::Arc;

const PRICES: Resource<'_> = Resource::Server { tenant: "acme", server: "prices" };
const TOKEN: &str = "bh_call_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";

fn directory(change: impl FnOnce(&mut Key)) -> Directory {
    let mut key = Key {
        id: "k1".to_owned(),
        tenant: Some("acme".to_owned()),
        role: Role::Call,
        name: "a key".to_owned(),
        scope: Scope::default(),
        quota: Quota { burst: Some(7), ..Quota::default() },
        created_at: 0,
        expires_at: None,
        revoked_at: None,
    };
    change(&mut key);
    let mut directory = Directory::default();
    directory.keys.insert(token_hash(TOKEN), Arc::new(key));
    directory
}

async fn caller(directory: &Directory, token: &str) -> Result<Caller, Denied> {
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}")).unwrap());
    Authenticator::new(AuthSettings::default()).unwrap().caller(directory, &headers, &PRICES).await
}

#[tokio::test]
async fn a_key_gives_what_the_registry_says_of_it() {
    let caller = caller(&directory(|_| {}), TOKEN).await.unwrap();
    assert_eq!(caller.key.as_ref().unwrap().id, "k1");
    assert_eq!((caller.subject.as_str(), caller.quota_id.as_str()), ("k1", "k1"));
    assert_eq!((caller.tenant.as_deref(), caller.role), (Some("acme"), Role::Call));
    assert_eq!(caller.quota.burst, Some(7));
}

#[tokio::test]
async fn a_key_of_another_tenant_is_a_good_key_of_another_tenant() {
    let caller = caller(&directory(|key| key.tenant = Some("evil".to_owned())), TOKEN).await.unwrap();
    assert!(caller.of_tenant("evil") && !caller.of_tenant("acme"));
}

#[tokio::test]
async fn unknown_expired_and_revoked_keys_are_refused() {
    let unknown = TOKEN.replace('0', "1");
    assert!(caller(&directory(|_| {}), &unknown).await.is_err());
    assert!(caller(&directory(|_| {}), &TOKEN[..TOKEN.len() - 1]).await.is_err());
    assert!(caller(&directory(|_| {}), "bh_call_").await.is_err());
    assert!(caller(&directory(|key| key.revoked_at = Some(1)), TOKEN).await.is_err());
    let now = wall_clock();
    assert_eq!(
        caller(&directory(|key| key.expires_at = Some(now)), TOKEN).await.unwrap_err(),
        Denied::Invalid("the key has expired")
    );
    assert!(caller(&directory(|key| key.expires_at = Some(now + 60)), TOKEN).await.is_ok());
}

#[tokio::test]
async fn without_oauth_no_jwt_is_looked_at() {
    assert_eq!(caller(&directory(|_| {}), "e30.e30.e30").await.unwrap_err(), Denied::Invalid("the key is unknown"));
}

#[test]
fn oauth_that_could_not_be_checked_is_no_oauth() {
    let new = |public_url: Option<&str>, issuer: &str, change: fn(&mut OAuthSettings)| {
        let mut oauth = OAuthSettings::new(issuer);
        change(&mut oauth);
        Authenticator::new(AuthSettings { public_url: public_url.map(str::to_owned), oauth: Some(oauth) })
    };
    let (host, issuer) = (Some("https://mcp.example.com"), "http://127.0.0.1:1");
    assert!(new(host, issuer, |_| {}).is_ok());
    assert!(new(None, issuer, |_| {}).is_err());
    assert!(new(Some("mcp.example.com"), issuer, |_| {}).is_err());
    assert!(new(host, "http://idp.example", |_| {}).is_err());
    assert!(new(host, "idp", |_| {}).is_err());
    assert!(new(host, issuer, |s| s.jwks_url = Some("http://idp.example/keys".to_owned())).is_err());
    assert!(new(host, issuer, |s| s.algorithms = vec!["HS256".to_owned()]).is_err());
    assert!(new(host, issuer, |s| s.tenant_claim.clear()).is_err());
}

/// What goes into a quoted string of a header must not need escapes.
#[test]
fn descriptions_are_plain() {
    let sources =
        [include_str!("bearer.rs"), include_str!("claims.rs"), include_str!("oauth.rs"), include_str!("mod.rs")];
    let found = sources.iter().flat_map(|source| source.split("Denied::Invalid(\"").skip(1));
    let texts: Vec<&str> = found.map(|rest| rest.split_once("\")").unwrap().0).collect();
    assert!(texts.len() > 15, "{texts:?}");
    for text in texts {
        assert!(text.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'"' && b != b'\\'), "{text}");
    }
}
