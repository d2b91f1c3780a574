//! What a tenant may say about a provider.

use crate::support;

use oauth::{ClientAuth, Grant, Per, Provider};
use serde_json::json;
use support::settings;
use url::Url;

fn good() -> Provider {
    settings("https://id.example.com")
}

fn wrong(change: impl FnOnce(&mut Provider)) -> (&'static str, String) {
    let mut provider = good();
    change(&mut provider);
    let invalid = provider.check(false).unwrap_err();
    assert!(invalid.to_string().chars().count() < 200);
    (invalid.field, invalid.to_string())
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

#[test]
fn urls_are_https_and_nothing_else() {
    good().check(false).unwrap();
    for bad in [
        "http://id.example.com/x",
        "http://127.0.0.1:8080/x",
        "ftp://id.example.com/x",
        "javascript:alert(1)",
        "https://user@id.example.com/x",
        "https://:password@id.example.com/x",
        "https://id.example.com/x#fragment",
        "https://id.example.com/x#",
        "https://id.example.com/x?a=1&client_id=other",
        "https://id.example.com/x?Redirect_URI=other",
        &format!("https://id.example.com/{}", "x".repeat(3000)),
    ] {
        assert_eq!(wrong(|p| p.authorize_url = Some(url(bad))).0, "authorize_url", "{bad}");
        assert_eq!(wrong(|p| p.token_url = url(bad)).0, "token_url", "{bad}");
        assert_eq!(wrong(|p| p.revoke_url = Some(url(bad))).0, "revoke_url", "{bad}");
    }
}

#[test]
fn plain_http_is_for_loopback_in_development() {
    for host in ["127.0.0.1:1", "127.9.9.9", "localhost:8080", "[::1]:1", "2130706433"] {
        settings(&format!("http://{host}")).check(true).unwrap();
        assert!(settings(&format!("http://{host}")).check(false).is_err());
    }
    for host in ["id.example.com", "localhost.example.com", "10.0.0.1", "[::2]", "0.0.0.0", "127.0.0.1.nip.io"] {
        assert!(settings(&format!("http://{host}")).check(true).is_err(), "{host}");
    }
}

#[test]
fn every_other_field_is_named_when_it_is_wrong() {
    assert_eq!(wrong(|p| p.client_id.clear()).0, "client_id");
    assert_eq!(wrong(|p| p.client_id = "a\nb".into()).0, "client_id");
    assert_eq!(wrong(|p| p.client_id = "x".repeat(513)).0, "client_id");
    assert_eq!(wrong(|p| p.issuer = Some(String::new())).0, "issuer");
    assert_eq!(wrong(|p| p.authorize_url = None).0, "authorize_url");
    for scope in ["", "two words", "a\"b", "a\\b", "ä", "a\u{202e}"] {
        assert_eq!(wrong(|p| p.scopes.push(scope.into())).0, "scopes", "{scope}");
    }
    assert_eq!(wrong(|p| p.scopes = vec!["x".into(); 65]).0, "scopes");
    let credentials = |p: &mut Provider| {
        (p.grant, p.per, p.authorize_url) = (Grant::ClientCredentials, Per::Tenant, None);
    };
    let mut whole = good();
    credentials(&mut whole);
    whole.check(false).unwrap();
    let public = wrong(|p| {
        credentials(p);
        p.client_auth = ClientAuth::None;
    });
    assert_eq!(public.0, "client_auth");
    let users = wrong(|p| {
        credentials(p);
        p.per = Per::User;
    });
    assert_eq!(users.0, "per");
}

#[test]
fn parameters_add_and_never_override() {
    let mut provider = good();
    provider.parameters = [("access_type".into(), "offline".into()), ("prompt".into(), "consent".into())].into();
    provider.check(false).unwrap();
    for name in
        ["state", "STATE", "request", "request_uri", "response_mode", "code_challenge_method", "scope", "", "a b"]
    {
        let (field, text) = wrong(|p| drop(p.parameters.insert(name.into(), "x".into())));
        assert_eq!(field, "parameters", "{name}");
        assert!(text.contains(&format!("`{name}`")), "{text}");
    }
    for value in ["\r\n", "\u{202e}", &"x".repeat(1025)] {
        assert_eq!(wrong(|p| drop(p.parameters.insert("x".into(), value.into()))).0, "parameters");
    }
    let twice = wrong(|p| {
        p.authorize_url = Some(url("https://id.example.com/authorize?prompt=none"));
        p.parameters.insert("prompt".into(), "login".into());
    });
    assert_eq!(twice.0, "parameters");
    assert_eq!(wrong(|p| p.parameters = (0..33).map(|n| (n.to_string(), String::new())).collect()).0, "parameters");
}

#[test]
fn read_from_json_with_careful_defaults() {
    let least = json!({ "authorize_url": "https://a.example/", "token_url": "https://a.example/t", "client_id": "x" });
    let provider: Provider = serde_json::from_value(least.clone()).unwrap();
    assert_eq!((provider.grant, provider.per, provider.client_auth), (Grant::Code, Per::User, ClientAuth::Basic));
    let again: Provider = serde_json::from_value(serde_json::to_value(&provider).unwrap()).unwrap();
    assert_eq!(again, provider);
    for (name, value) in [("client_secret", json!("x")), ("per", json!("everybody")), ("token_url", json!("not a url"))]
    {
        let mut more = least.clone();
        more[name] = value;
        assert!(serde_json::from_value::<Provider>(more).is_err(), "{name}");
    }
}
