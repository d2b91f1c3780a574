//! Connecting: away to the provider and back, and everything that may come back instead.

use crate::provider;
use crate::support;

use oauth::{ClientAuth, Error, Pending, Provider, TokenRequest, begin, finish};
use provider::Settings;
use secrecy::{ExposeSecret, SecretString};
use std::collections::HashMap;
use support::{Loopback, NOW, REDIRECT, agree, copy, run, settings, visit};
use url::Url;

fn secret() -> SecretString {
    Settings::default().client_secret.unwrap().into()
}

#[test]
fn the_whole_way_for_every_kind_of_client() {
    run(async {
        for (auth, forms) in [(ClientAuth::Basic, false), (ClientAuth::Post, true), (ClientAuth::None, false)] {
            let client_secret = Settings::default().client_secret.filter(|_| auth != ClientAuth::None);
            let redirect_uris = vec![REDIRECT.to_owned()];
            let there = Settings { client_secret, forms, redirect_uris, ..Settings::default() };
            let there = provider::start(0, there).await;
            let mut here = settings(&there.url(""));
            (here.client_auth, here.issuer) = (auth, Some(there.url("")));
            here.check(true).unwrap();
            let tokens = agree(&here, "alice", NOW).await.send(&Loopback, Some(&secret()), NOW).await.unwrap();
            assert_eq!(there.owner(tokens.access.expose_secret()).as_deref(), Some("alice"));
            assert_eq!(tokens.expires_at, Some(NOW + 3600));
            assert_eq!(tokens.scope.as_deref(), Some("read write:all"));
            assert!(tokens.refresh.is_some());
        }
    });
}

#[test]
fn the_link_says_what_it_must() {
    let mut provider = settings("https://id.example.com");
    provider.authorize_url = Some(Url::parse("https://id.example.com/authorize?tenant=7").unwrap());
    provider.parameters = [("access_type".into(), "offline".into())].into();
    let (url, pending) = begin(&provider, REDIRECT, NOW).unwrap();
    let (other, _) = begin(&provider, REDIRECT, NOW).unwrap();
    let said: HashMap<String, String> = Url::parse(&url).unwrap().query_pairs().into_owned().collect();
    assert_eq!(said.len(), 9);
    for (name, value) in [
        ("tenant", "7"),
        ("response_type", "code"),
        ("client_id", "bulkhead"),
        ("redirect_uri", REDIRECT),
        ("code_challenge_method", "S256"),
        ("scope", "read write:all"),
        ("access_type", "offline"),
    ] {
        assert_eq!(said[name], value);
    }
    assert!(said["state"].len() >= 43 && said["code_challenge"].len() == 43);
    assert!(!other.contains(&said["state"]) && !other.contains(&said["code_challenge"]));
    assert_eq!(oauth::handle(&format!("state={}", said["state"])).unwrap(), pending.handle());
    assert!(!pending.handle().contains(&said["state"]));
    let printed = format!("{pending:?}");
    assert!(!printed.contains(&said["state"]), "{printed}");
    let kept: serde_json::Value = serde_json::from_str(pending.to_secret().expose_secret()).unwrap();
    assert!(!printed.contains(kept["verifier"].as_str().unwrap()) && !url.contains(kept["verifier"].as_str().unwrap()));
}

#[test]
fn browsers_come_back_to_pages_of_this_host_only() {
    let provider = settings("https://id.example.com");
    for bad in [
        "",
        "callback",
        "http://host.example/cb",
        "https://h/cb#x",
        "https://u@h/cb",
        "https://h/cb?x=1",
        "https://h/\ncb",
    ] {
        assert!(
            matches!(begin(&provider, bad, NOW), Err(Error::Invalid(invalid)) if invalid.field == "redirect_uri"),
            "{bad}"
        );
    }
    let nobody = Provider { grant: oauth::Grant::ClientCredentials, ..provider };
    assert!(matches!(begin(&nobody, REDIRECT, NOW), Err(Error::Invalid(_))));
}

/// An attempt, and the state that it expects.
fn attempt(provider: &Provider) -> (Pending, String) {
    let (url, pending) = begin(provider, REDIRECT, NOW).unwrap();
    let state = Url::parse(&url).unwrap().query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    (pending, state)
}

fn outcome(provider: &Provider, pending: &Pending, query: &str) -> Result<TokenRequest, Error> {
    let result = finish(provider, copy(pending), query, REDIRECT, NOW + 5);
    if let Err(error) = &result {
        assert!(!format!("{error} {error:?}").contains("SECRET-CODE"));
    }
    result
}

#[test]
fn answers_that_belong_to_nobody() {
    let provider = settings("https://id.example.com");
    let (pending, state) = attempt(&provider);
    let other = attempt(&provider).1;
    assert!(outcome(&provider, &pending, &format!("code=SECRET-CODE&state={state}")).is_ok());
    let cut = &state[..42];
    for query in [
        "".to_owned(),
        "code=SECRET-CODE".into(),
        "code=SECRET-CODE&state=".into(),
        format!("code=SECRET-CODE&state={other}"),
        format!("code=SECRET-CODE&state={cut}"),
        format!("code=SECRET-CODE&state={state}x"),
        format!("code=SECRET-CODE&state={}", state.to_lowercase()),
        format!("code=SECRET-CODE&state={state}%00"),
        format!("code=SECRET-CODE&State={state}"),
        format!("error=access_denied&state={other}"),
    ] {
        assert_eq!(outcome(&provider, &pending, &query).unwrap_err(), Error::State, "{query}");
    }
    for query in [
        format!("code=SECRET-CODE&state={state}&state={state}"),
        format!("code=SECRET-CODE&state={other}&state={state}"),
        format!("code=SECRET-CODE&code=b&state={state}"),
        format!("code=SECRET-CODE&c%6fde=b&state={state}"),
        format!("code=SECRET-CODE&state={state}&x=1&x=1"),
        format!("state={state}"),
        format!("code=&state={state}"),
        format!("code=SECRET-CODE%0d%0a&state={state}"),
        format!("code=SECRET-CODE%ff&state={state}"),
        format!("code={}&state={state}", "x".repeat(20_000)),
    ] {
        assert!(matches!(outcome(&provider, &pending, &query).unwrap_err(), Error::Callback(_)), "{query}");
    }
}

#[test]
fn too_late_elsewhere_or_of_another_provider() {
    let provider = settings("https://id.example.com");
    let (pending, state) = attempt(&provider);
    let query = format!("code=SECRET-CODE&state={state}");
    let at = |now: u64| finish(&provider, copy(&pending), &query, REDIRECT, now).map(drop);
    assert_eq!((at(NOW), at(NOW + 600), at(NOW - 60)), (Ok(()), Ok(()), Ok(())));
    assert_eq!((at(NOW + 601), at(NOW - 61), at(0)), (Err(Error::Late), Err(Error::Late), Err(Error::Late)));
    for seen in [
        "http://127.0.0.1:1/callback/",
        "http://127.0.0.1:1/Callback",
        "http://localhost:1/callback",
        "https://127.0.0.1:1/callback",
        "",
    ] {
        assert_eq!(finish(&provider, copy(&pending), &query, seen, NOW).map(drop), Err(Error::Redirect), "{seen}");
    }
    let moved = Provider { token_url: Url::parse("https://evil.example.com/token").unwrap(), ..provider.clone() };
    let renamed = Provider { client_id: "other".into(), ..provider.clone() };
    for other in [moved, renamed] {
        assert_eq!(outcome(&other, &pending, &query).map(drop), Err(Error::Changed));
    }
}

#[test]
fn the_issuer_is_the_one_that_was_asked() {
    let provider = Provider { issuer: Some("https://id.example.com".into()), ..settings("https://id.example.com") };
    let (pending, state) = attempt(&provider);
    let with = |more: &str| outcome(&provider, &pending, &format!("code=SECRET-CODE&state={state}{more}")).map(drop);
    assert_eq!(with("&iss=https%3A%2F%2Fid.example.com"), Ok(()));
    for wrong in ["", "&iss=", "&iss=https%3A%2F%2Fid.example.com%2F", "&iss=https://evil.example.com"] {
        assert_eq!(with(wrong), Err(Error::Issuer), "{wrong}");
    }
    let error = outcome(&provider, &pending, &format!("error=access_denied&state={state}"));
    assert_eq!(error.map(drop), Err(Error::Issuer));
}

#[test]
fn a_no_is_shown_safely() {
    let provider = settings("https://id.example.com");
    let (pending, state) = attempt(&provider);
    let text = format!("%1b%5b2J%e2%80%ae%0asee+{state}{}", "x".repeat(5000));
    let query = format!("error=access_denied&error_description={text}&state={state}");
    let Err(Error::Refused(refusal)) = outcome(&provider, &pending, &query) else { panic!() };
    let shown = refusal.to_string();
    assert!(shown.starts_with("access_denied (\u{fffd}[2J\u{fffd}\u{fffd}see *****"), "{shown}");
    assert!(!shown.chars().any(bundle::is_hidden) && shown.chars().count() < 280, "{shown}");
    run(async {
        let there = provider::start(0, Settings::default()).await;
        let here = settings(&there.url(""));
        let (url, pending) = begin(&here, REDIRECT, NOW).unwrap();
        let query = visit(&url, "", "deny").await;
        let Err(Error::Refused(refusal)) = finish(&here, pending, &query, REDIRECT, NOW) else { panic!() };
        assert_eq!(refusal.to_string(), "access_denied (the user said no)");
    });
}

/// Sends it, and makes sure that nothing secret is in the error.
async fn refused(request: TokenRequest, query: &str) -> Error {
    assert!(!format!("{request:?}").contains("code-"));
    let error = request.send(&Loopback, Some(&secret()), NOW).await.unwrap_err();
    let shown = format!("{error} {error:?}");
    let code = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "code").unwrap().1;
    assert!(!shown.contains(code.as_ref()), "{shown}");
    error
}

#[test]
fn a_code_serves_once_and_only_whom_it_was_made_for() {
    run(async {
        let there = provider::start(0, Settings::default()).await;
        let here = settings(&there.url(""));
        let is_invalid_grant =
            |error: Error| matches!(error, Error::Refused(refusal) if refusal.code == "invalid_grant");

        // Replayed: what the first use got is taken back, too.
        let (url, pending) = begin(&here, REDIRECT, NOW).unwrap();
        let query = visit(&url, "alice", "allow").await;
        let first = finish(&here, copy(&pending), &query, REDIRECT, NOW).unwrap();
        let tokens = first.send(&Loopback, Some(&secret()), NOW).await.unwrap();
        let second = finish(&here, pending, &query, REDIRECT, NOW).unwrap();
        assert!(is_invalid_grant(refused(second, &query).await));
        assert_eq!(there.owner(tokens.access.expose_secret()), None);

        // Stolen: another attempt has another verifier.
        let (url, _) = begin(&here, REDIRECT, NOW).unwrap();
        let stolen = visit(&url, "alice", "allow").await;
        let (pending, state) = attempt(&here);
        let mut said: HashMap<String, String> = url::form_urlencoded::parse(stolen.as_bytes()).into_owned().collect();
        said.insert("state".into(), state);
        let injected = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(said).finish();
        let request = finish(&here, pending, &injected, REDIRECT, NOW).unwrap();
        assert!(is_invalid_grant(refused(request, &injected).await));

        // Without the client's secret.
        let request = agree(&here, "alice", NOW).await;
        assert_eq!(request.send(&Loopback, None, NOW).await.unwrap_err(), Error::NoClientSecret);
        let request = agree(&here, "alice", NOW).await;
        let error = request.send(&Loopback, Some(&"a wrong client secret".into()), NOW).await.unwrap_err();
        assert!(matches!(&error, Error::Refused(refusal) if refusal.code == "invalid_client"), "{error}");
        assert!(!error.is_passing() && !format!("{error:?}").contains("a wrong"));
    });
}
