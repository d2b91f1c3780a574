//! Tokens for calls: renewed in time, by one at a time, and never somebody else's.

use crate::provider;
use crate::support;

use oauth::{ClientAuth, Error, Grant, Per, Provider, Revoked, TokenRequest};
use provider::{Running, Settings};
use secrecy::ExposeSecret;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use support::{Host, Loopback, agree, run, settings};
use url::Url;

async fn staged(there: Settings) -> (Running, Arc<Host>, Arc<Provider>) {
    let secret = there.client_secret.clone().unwrap_or_default();
    let there = provider::start(0, there).await;
    let here = settings(&there.url(""));
    (there, Host::new(Loopback, &secret), Arc::new(here))
}

/// So many calls at once.
async fn calls(count: usize, host: &Arc<Host>, here: &Arc<Provider>, subject: &str) -> Vec<Result<String, Error>> {
    let call = |_| {
        let (host, here, subject) = (host.clone(), here.clone(), subject.to_owned());
        tokio::spawn(async move { host.token("t", &here, &subject).await })
    };
    let calls: Vec<_> = (0..count).map(call).collect();
    let mut results = Vec::new();
    for call in calls {
        results.push(call.await.unwrap());
    }
    results
}

#[test]
fn renewed_when_little_time_is_left_and_the_old_refresh_token_is_dead() {
    run(async {
        let (there, host, here) = staged(Settings::default()).await;
        assert_eq!(host.token("t", &here, "alice").await, Err(Error::NotConnected));
        host.connect("t", &here, "alice").await;
        let first = host.token("t", &here, "alice").await.unwrap();
        let old = host.store.tokens("t", "alice").unwrap();
        host.clock.turn(3539);
        assert_eq!(host.token("t", &here, "alice").await.unwrap(), first);
        assert_eq!(there.asked("refresh_token"), 0);
        host.clock.turn(1);
        let second = host.token("t", &here, "alice").await.unwrap();
        assert_ne!(first, second);
        assert_eq!(there.owner(&second).as_deref(), Some("alice"));
        assert_eq!(host.token("t", &here, "alice").await.unwrap(), second);
        assert_eq!(there.asked("refresh_token"), 1);

        let replay = TokenRequest::refresh(&here, &old).unwrap();
        let error = replay.send(&Loopback, Some(&host.secret), 0).await.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(shown.contains("invalid_grant"));
        assert!(!shown.contains(old.refresh.unwrap().expose_secret()), "{shown}");
    });
}

#[test]
fn fifty_calls_at_expiry_ask_once() {
    run(async {
        let (there, host, here) = staged(Settings { delay: Duration::from_millis(100), ..Settings::default() }).await;
        host.connect("t", &here, "alice").await;
        host.clock.turn(4000);
        let tokens: HashSet<_> = calls(50, &host, &here, "alice").await.into_iter().map(Result::unwrap).collect();
        assert_eq!((tokens.len(), there.asked("refresh_token")), (1, 1));
        assert_eq!(there.owner(tokens.iter().next().unwrap()).as_deref(), Some("alice"));
    });
}

/// Many users of two tenants at once, some of whom have the same name, through expiry after expiry.
#[test]
fn nobody_ever_gets_the_token_of_another() {
    run(async {
        let (there, host, here) = staged(Settings { delay: Duration::from_millis(2), ..Settings::default() }).await;
        let subjects = ["alice", "bob", "carol", "alice/bob", "alice\0bob", "Alice", " "];
        for tenant in ["t", "u"] {
            for subject in subjects {
                host.connect_as(tenant, &here, subject, &format!("{tenant}'s {subject}")).await;
            }
        }
        for _ in 0..4 {
            let mut running = Vec::new();
            for number in 0..280 {
                let (host, here, there) = (host.clone(), here.clone(), there.clone());
                let (tenant, subject) = (["t", "u"][number % 2], subjects[number / 2 % subjects.len()]);
                running.push(tokio::spawn(async move {
                    let token = host.token(tenant, &here, subject).await.unwrap();
                    assert_eq!(there.owner(&token), Some(format!("{tenant}'s {subject}")));
                }));
            }
            for call in running {
                call.await.unwrap();
            }
            host.clock.turn(4000);
        }
        assert_eq!(there.asked("refresh_token"), 3 * 2 * subjects.len());
        assert_eq!(host.token("t", &here, "").await, Err(Error::NoSubject));
        assert_eq!(host.token("t", &here, "dave").await, Err(Error::NotConnected));
        assert_eq!(host.token("v", &here, "alice").await, Err(Error::NotConnected));
        let other = host.keeper.token("t", "other", &here, Some(&host.secret), "alice").await;
        assert_eq!(other.map(drop), Err(Error::NotConnected));
    });
}

#[test]
fn a_tenants_connection_is_everybodys_and_no_users() {
    run(async {
        let (there, host, here) = staged(Settings::default()).await;
        let shared = Provider { per: Per::Tenant, ..(*here).clone() };
        host.connect("t", &shared, "alice").await;
        for subject in ["", "alice", "bob"] {
            let token = host.token("t", &shared, subject).await.unwrap();
            assert_eq!(there.owner(&token).as_deref(), Some("alice"));
        }
        assert!(host.store.tokens("t", "").is_some() && host.store.tokens("t", "alice").is_none());
        assert_eq!(host.token("u", &shared, "alice").await, Err(Error::NotConnected));
        assert_eq!(host.token("t", &here, "alice").await, Err(Error::NotConnected));
    });
}

#[test]
fn while_the_provider_is_down_a_valid_token_is_good_enough() {
    run(async {
        let (there, host, here) = staged(Settings { delay: Duration::from_millis(50), ..Settings::default() }).await;
        host.connect("t", &here, "alice").await;
        let first = host.token("t", &here, "alice").await.unwrap();
        there.set_down(true);
        host.clock.turn(3550);
        for result in calls(50, &host, &here, "alice").await {
            assert_eq!(result.as_ref(), Ok(&first));
        }
        assert_eq!(there.asked("refresh_token"), 1);
        host.clock.turn(100);
        for result in calls(50, &host, &here, "alice").await {
            assert!(matches!(result, Err(Error::Answer(_))), "{result:?}");
        }
        assert_eq!(there.asked("refresh_token"), 2);
        there.set_down(false);
        host.clock.turn(5);
        let second = host.token("t", &here, "alice").await.unwrap();
        assert_eq!(there.owner(&second).as_deref(), Some("alice"));
    });
}

#[test]
fn a_grant_that_is_taken_back_ends_the_connection() {
    run(async {
        let (there, host, here) = staged(Settings::default()).await;
        host.connect("t", &here, "alice").await;
        host.connect("t", &here, "bob").await;
        there.forget("alice");
        host.clock.turn(3550);
        let error = host.token("t", &here, "alice").await.unwrap_err();
        assert!(error == Error::Expired && error.wants_connection());
        assert!(host.store.tokens("t", "alice").is_none());
        assert_eq!(host.token("t", &here, "alice").await, Err(Error::NotConnected));
        assert!(host.token("t", &here, "bob").await.is_ok());
        host.connect("t", &here, "alice").await;
        assert!(host.token("t", &here, "alice").await.is_ok());
    });
}

#[test]
fn without_rotation_the_refresh_token_stays() {
    run(async {
        let (there, host, here) = staged(Settings { rotate: false, ..Settings::default() }).await;
        host.connect("t", &here, "alice").await;
        let refresh =
            |host: &Host| host.store.tokens("t", "alice").unwrap().refresh.unwrap().expose_secret().to_owned();
        let first = refresh(&host);
        for round in 1..4 {
            host.clock.turn(4000);
            let token = host.token("t", &here, "alice").await.unwrap();
            assert_eq!(there.owner(&token).as_deref(), Some("alice"));
            assert_eq!((refresh(&host), there.asked("refresh_token")), (first.clone(), round));
        }
        assert_eq!(host.store.tokens("t", "alice").unwrap().scope.as_deref(), Some("read write:all"));
    });
}

/// A provider that rotates has forgotten the old refresh token by then.
#[test]
fn what_a_cancelled_call_began_is_finished() {
    run(async {
        let (there, host, here) = staged(Settings { delay: Duration::from_millis(200), ..Settings::default() }).await;
        host.connect("t", &here, "alice").await;
        host.clock.turn(4000);
        let call = {
            let (host, here) = (host.clone(), here.clone());
            tokio::spawn(async move { host.token("t", &here, "alice").await })
        };
        while there.asked("refresh_token") == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        let token = host.token("t", &here, "alice").await.unwrap();
        assert_eq!((there.owner(&token).as_deref(), there.asked("refresh_token")), (Some("alice"), 1));
    });
}

#[test]
fn a_store_that_stumbles_loses_no_token() {
    run(async {
        let (there, host, here) = staged(Settings::default()).await;
        host.connect("t", &here, "alice").await;
        host.clock.turn(4000);
        host.store.broken.store(2, Ordering::SeqCst);
        let token = host.token("t", &here, "alice").await.unwrap();
        assert_eq!(host.token("t", &here, "alice").await.unwrap(), token);
        assert_eq!(there.asked("refresh_token"), 1);

        // It fails for longer: the calls go on, and the tokens are saved when it can be done.
        let old = host.store.tokens("t", "alice").unwrap();
        host.clock.turn(4000);
        host.store.broken.store(4, Ordering::SeqCst);
        let token = host.token("t", &here, "alice").await.unwrap();
        assert_eq!(host.token("t", &here, "alice").await.unwrap(), token);
        assert_eq!(host.store.tokens("t", "alice").unwrap().access.expose_secret(), old.access.expose_secret());
        assert_eq!(host.token("t", &here, "alice").await.unwrap(), token);
        assert_eq!(host.store.tokens("t", "alice").unwrap().access.expose_secret(), token);
        assert_eq!(there.asked("refresh_token"), 2);

        // What is removed in the meantime does not come back.
        host.clock.turn(4000);
        host.store.broken.store(3, Ordering::SeqCst);
        let token = host.token("t", &here, "alice").await.unwrap();
        let revoked = host.keeper.revoke("t", "acme", &here, Some(&host.secret), "alice").await;
        assert_eq!((revoked, there.owner(&token)), (Ok(Revoked::AtProvider), None));
        assert_eq!(host.token("t", &here, "alice").await, Err(Error::NotConnected));
        assert!(host.store.tokens("t", "alice").is_none());
    });
}

#[test]
fn client_credentials_are_fetched_when_they_are_needed() {
    run(async {
        let (there, host, here) = staged(Settings { delay: Duration::from_millis(50), ..Settings::default() }).await;
        let parameters = [("audience".to_owned(), "billing".to_owned())].into();
        let (grant, per, client_auth) = (Grant::ClientCredentials, Per::Tenant, ClientAuth::Post);
        let here = Arc::new(Provider { grant, per, client_auth, parameters, authorize_url: None, ..(*here).clone() });
        here.check(true).unwrap();
        for round in 1..3 {
            let tokens: HashSet<_> = calls(50, &host, &here, "alice").await.into_iter().map(Result::unwrap).collect();
            assert_eq!((tokens.len(), there.asked("client_credentials")), (1, round));
            assert_eq!(there.owner(tokens.iter().next().unwrap()).as_deref(), Some("client billing"));
            let kept = host.store.tokens("t", "").unwrap();
            assert_eq!((kept.refresh.is_none(), kept.scope.as_deref()), (true, Some("read write:all")));
            host.clock.turn(3550);
        }
        there.set_down(true);
        assert!(host.token("t", &here, "").await.is_ok(), "it has a minute left");
        host.clock.turn(100);
        assert!(host.token("t", &here, "").await.is_err());
    });
}

#[test]
fn tokens_without_an_end_or_without_a_refresh_token() {
    run(async {
        let (there, host, here) = staged(Settings { life: None, ..Settings::default() }).await;
        host.connect("t", &here, "alice").await;
        host.clock.turn(1_000_000_000);
        assert!(host.token("t", &here, "alice").await.is_ok());
        assert_eq!(there.asked("refresh_token"), 0);

        let (there, host, here) = staged(Settings::default()).await;
        host.connect("t", &here, "alice").await;
        let mut tokens = host.store.tokens("t", "alice").unwrap();
        tokens.refresh = None;
        host.store.kept.lock().unwrap().values_mut().for_each(|kept| *kept = tokens.to_secret());
        host.clock.turn(3599);
        assert!(host.token("t", &here, "alice").await.is_ok());
        host.clock.turn(1);
        assert_eq!(host.token("t", &here, "alice").await, Err(Error::Expired));
        assert_eq!(there.asked("refresh_token"), 0);
    });
}

/// A tenant that points its provider elsewhere does not get its users' tokens sent there.
#[test]
fn tokens_go_to_the_provider_they_came_from() {
    run(async {
        let (there, host, here) = staged(Settings::default()).await;
        let elsewhere = provider::start(0, Settings::default()).await;
        let moved = settings(&elsewhere.url(""));
        host.connect("t", &here, "alice").await;
        host.clock.turn(4000);
        assert_eq!(host.token("t", &moved, "alice").await, Err(Error::NotConnected));
        assert!(TokenRequest::refresh(&moved, &host.store.tokens("t", "alice").unwrap()).is_none());
        let revoked = host.keeper.revoke("t", "acme", &moved, Some(&host.secret), "alice").await;
        assert_eq!(revoked, Ok(Revoked::HereOnly));
        assert_eq!((elsewhere.asked("refresh_token"), elsewhere.asked("revoke"), there.asked("revoke")), (0, 0, 0));
    });
}

/// Nor by saying only that they are revoked elsewhere.
#[test]
fn tokens_are_not_revoked_at_somebody_elses() {
    run(async {
        let (there, host, here) = staged(Settings::default()).await;
        let elsewhere = provider::start(0, Settings::default()).await;
        let revoke = async |provider: &Provider, subject: &str| {
            host.keeper.revoke("t", "acme", provider, Some(&host.secret), subject).await
        };
        let with = |url: String| Provider { revoke_url: Some(Url::parse(&url).unwrap()), ..(*here).clone() };
        let diverted = with(elsewhere.url("/revoke"));
        host.connect("t", &here, "alice").await;
        assert_eq!(host.token("t", &diverted, "alice").await, Err(Error::NotConnected));
        assert_eq!(revoke(&diverted, "alice").await, Ok(Revoked::HereOnly));
        assert_eq!((elsewhere.asked("revoke"), there.asked("revoke")), (0, 0));

        // Another path at the same place changes nothing, and who connected with both has agreed to both.
        host.connect("t", &with(there.url("/other")), "bob").await;
        assert_eq!(revoke(&here, "bob").await, Ok(Revoked::AtProvider));
        host.connect("t", &diverted, "carol").await;
        assert!(host.token("t", &diverted, "carol").await.is_ok());
        let _ = revoke(&diverted, "carol").await;
        assert_eq!((elsewhere.asked("revoke"), there.asked("revoke")), (1, 1));
    });
}

#[test]
fn revoked_there_and_here() {
    run(async {
        let (there, host, here) = staged(Settings { delay: Duration::from_millis(100), ..Settings::default() }).await;
        let revoke = async |provider: &Provider, secret: &str, subject: &str| {
            host.keeper.revoke("t", "acme", provider, Some(&secret.into()), subject).await
        };
        let secret = host.secret.expose_secret();
        assert_eq!(revoke(&here, secret, "alice").await, Err(Error::NotConnected));
        host.connect("t", &here, "alice").await;
        host.connect("t", &here, "bob").await;
        let token = host.token("t", &here, "alice").await.unwrap();
        assert_eq!(revoke(&here, secret, "alice").await, Ok(Revoked::AtProvider));
        assert_eq!((there.owner(&token), there.asked("revoke")), (None, 1));
        assert_eq!(host.token("t", &here, "alice").await, Err(Error::NotConnected));
        let bobs = host.token("t", &here, "bob").await.unwrap();
        assert_eq!(there.owner(&bobs).as_deref(), Some("bob"));

        // The provider says no: it is gone here all the same.
        let error = revoke(&here, "a wrong secret", "bob").await.unwrap_err();
        assert!(matches!(error, Error::Refused(refusal) if refusal.code == "invalid_client"));
        assert_eq!(host.token("t", &here, "bob").await, Err(Error::NotConnected));

        let silent = Provider { revoke_url: None, ..(*here).clone() };
        host.connect("t", &silent, "carol").await;
        assert_eq!(revoke(&silent, secret, "carol").await, Ok(Revoked::HereOnly));
        assert_eq!(host.token("t", &silent, "carol").await, Err(Error::NotConnected));
        assert_eq!(there.asked("revoke"), 2);
    });
}

#[test]
fn what_is_revoked_while_it_is_renewed_stays_away() {
    run(async {
        let (there, host, here) = staged(Settings { delay: Duration::from_millis(100), ..Settings::default() }).await;
        host.connect("t", &here, "alice").await;
        host.clock.turn(4000);
        let call = {
            let (host, here) = (host.clone(), here.clone());
            tokio::spawn(async move { host.token("t", &here, "alice").await })
        };
        while there.asked("refresh_token") == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let revoked = host.keeper.revoke("t", "acme", &here, Some(&host.secret), "alice").await;
        assert_eq!(revoked, Ok(Revoked::AtProvider));
        let token = call.await.unwrap().unwrap();
        assert_eq!(there.owner(&token), None);
        assert!(host.store.tokens("t", "alice").is_none());
    });
}

#[test]
fn tokens_that_are_not_kept_are_no_connection_and_can_be_given_back() {
    run(async {
        let (there, host, here) = staged(Settings::default()).await;
        let tokens = host.keeper.exchange(agree(&here, "alice", support::NOW).await, Some(&host.secret)).await;
        let tokens = tokens.unwrap();
        assert_eq!(host.token("t", &here, "alice").await, Err(Error::NotConnected));
        // Nor are they anything to another provider that has taken the name meanwhile.
        let mut other = Provider::clone(&here);
        other.token_url = "http://127.0.0.1:1/token".parse().unwrap();
        assert_eq!(host.keeper.keep("t", "acme", &other, tokens.clone(), "alice").await, Err(Error::Changed));
        assert_eq!(host.keeper.give_back(&here, &tokens, Some(&host.secret)).await, Ok(Revoked::AtProvider));
        assert_eq!(there.asked("revoke"), 1);
    });
}
