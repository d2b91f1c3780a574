//! The keys of an issuer: how they are found, fetched again and given up.

use crate::issuer::{Answer, Issuer, SigningKey};
use crate::{PRICES, UNKNOWN_KEY, ask, authenticator, claims, in_time, settings, until, why, with};
use gateway::auth::{JwksTiming, OAuthSettings};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

const NO_KEYS: &str = "the keys of the issuer cannot be fetched";

fn quick() -> JwksTiming {
    JwksTiming { refetch: Duration::ZERO, retry: Duration::ZERO, ..JwksTiming::default() }
}

#[tokio::test]
async fn a_new_key_is_found_and_an_old_one_forgotten() {
    in_time(async {
        let (old, new) = (SigningKey::ec("old"), SigningKey::ec("new"));
        let issuer = Issuer::with_keys(&[&old]).await;
        let auth = authenticator(OAuthSettings { jwks: quick(), ..settings(&issuer) });
        let good = claims(&issuer);
        let (by_old, by_new) = (old.token(&good), new.token(&good));
        assert!(ask(&auth, &by_old, &PRICES).await.is_ok());
        assert_eq!(why(ask(&auth, &by_new, &PRICES).await), UNKNOWN_KEY);
        issuer.publish(&[&old, &new]);
        assert!(ask(&auth, &by_new, &PRICES).await.is_ok());
        assert!(ask(&auth, &by_old, &PRICES).await.is_ok());
        // Withdrawn: what it once signed was looked at already, and counts no more all the same.
        issuer.publish(&[&new]);
        assert_eq!(why(ask(&auth, &SigningKey::ec("third").token(&good), &PRICES).await), UNKNOWN_KEY);
        assert_eq!(why(ask(&auth, &by_old, &PRICES).await), UNKNOWN_KEY);
        assert!(ask(&auth, &by_new, &PRICES).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn unknown_keys_do_not_make_a_flood() {
    in_time(async {
        let (key, new) = (SigningKey::ec("c"), SigningKey::ec("new"));
        let issuer = Issuer::with_keys(&[&key]).await;
        let auth = Arc::new(authenticator(settings(&issuer)));
        let good = claims(&issuer);
        let tasks: Vec<_> = (0..40)
            .map(|_| {
                let (auth, token) = (auth.clone(), key.token(&good));
                tokio::spawn(async move { ask(&auth, &token, &PRICES).await.is_ok() })
            })
            .collect();
        for task in tasks {
            assert!(task.await.unwrap(), "all of them wait for one fetch and get in");
        }
        issuer.publish(&[&key, &new]);
        for _ in 0..20 {
            assert_eq!(
                why(ask(&auth, &new.token(&good), &PRICES).await),
                UNKNOWN_KEY,
                "it is not yet time to ask again"
            );
        }
        assert_eq!(issuer.asked("/keys"), 1);
    })
    .await;
}

#[tokio::test]
async fn documents_that_are_too_long_or_none() {
    in_time(async {
        let key = SigningKey::ec("c");
        let issuer = Issuer::with_keys(&[&key]).await;
        let auth = authenticator(OAuthSettings { jwks: quick(), ..settings(&issuer) });
        let token = key.token(&claims(&issuer));
        let long = json!({"keys": [key.public()], "padding": "x".repeat(256 * 1024)});
        issuer.serve("/elsewhere", Answer::Json(json!({"keys": [key.public()]})));
        for (answer, problem) in [
            (Answer::Json(long.clone()), "its answer is longer than 262144 bytes"),
            (Answer::Endless, "its answer is longer than 262144 bytes"),
            (Answer::Text("<html>".to_owned()), "its answer is no set of keys"),
            (Answer::Status(500), "it answered with status 500"),
            (Answer::Redirect("/elsewhere".to_owned()), "it answered with status 307"),
        ] {
            issuer.serve("/keys", answer);
            assert_eq!(why(ask(&auth, &token, &PRICES).await), NO_KEYS);
            assert_eq!(auth.issuer_health().unwrap().problem.as_deref(), Some(problem));
        }
        issuer.publish(&[&key]);
        assert!(ask(&auth, &token, &PRICES).await.is_ok());
        assert_eq!(auth.issuer_health().unwrap().problem, None);
        // A set that was replaced by rubbish does not take the good one with it.
        issuer.serve("/keys", Answer::Json(long));
        assert_eq!(why(ask(&auth, &SigningKey::ec("x").token(&claims(&issuer)), &PRICES).await), UNKNOWN_KEY);
        assert!(ask(&auth, &token, &PRICES).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn an_issuer_that_withdraws_all_its_keys_means_it() {
    in_time(async {
        let key = SigningKey::ec("c");
        let issuer = Issuer::with_keys(&[&key]).await;
        let auth = authenticator(OAuthSettings { jwks: quick(), ..settings(&issuer) });
        let token = key.token(&claims(&issuer));
        assert!(ask(&auth, &token, &PRICES).await.is_ok());
        for keys in [json!([]), json!([{"kty": "OKP", "crv": "Ed25519", "x": "AA", "kid": "c"}])] {
            issuer.serve("/keys", Answer::Json(json!({"keys": keys})));
            assert_eq!(why(ask(&auth, &SigningKey::ec("x").token(&claims(&issuer)), &PRICES).await), UNKNOWN_KEY);
            assert_eq!(why(ask(&auth, &token, &PRICES).await), UNKNOWN_KEY);
            assert_eq!(auth.issuer_health().unwrap().problem.as_deref(), Some("its set holds no key that can be used"));
        }
        issuer.publish(&[&key]);
        assert!(ask(&auth, &token, &PRICES).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn an_issuer_that_never_answers_holds_nobody_for_ever() {
    in_time(async {
        let key = SigningKey::ec("c");
        let issuer = Issuer::with_keys(&[&key]).await;
        issuer.serve("/keys", Answer::Never);
        let timing = JwksTiming { timeout: Duration::from_millis(300), retry: Duration::ZERO, ..JwksTiming::default() };
        let auth = authenticator(OAuthSettings { jwks: timing, ..settings(&issuer) });
        let token = key.token(&claims(&issuer));
        assert_eq!(why(ask(&auth, &token, &PRICES).await), NO_KEYS);
        assert_eq!(auth.issuer_health().unwrap().problem.as_deref(), Some("it did not answer in time"));
        issuer.publish(&[&key]);
        assert!(ask(&auth, &token, &PRICES).await.is_ok());
    })
    .await;
}

/// Whoever hangs up while the keys are fetched for them must not keep the others from getting them.
#[tokio::test]
async fn a_client_that_hangs_up_does_not_end_the_fetch() {
    in_time(async {
        let key = SigningKey::ec("c");
        let issuer = Issuer::with_keys(&[&key]).await;
        let auth = authenticator(settings(&issuer));
        let token = key.token(&claims(&issuer));
        {
            let gone = ask(&auth, &token, &PRICES);
            tokio::pin!(gone);
            assert!(futures_util::poll!(&mut gone).is_pending());
        }
        until(|| auth.issuer_health().unwrap().keys == 1).await;
        assert!(ask(&auth, &token, &PRICES).await.is_ok());
        assert_eq!(issuer.asked("/keys"), 1);
    })
    .await;
}

#[tokio::test]
async fn while_the_issuer_is_down_its_keys_go_on_until_they_are_too_old() {
    in_time(async {
        let key = SigningKey::ec("c");
        let mut issuer = Issuer::with_keys(&[&key]).await;
        let keep = Duration::from_secs(3);
        let timing = JwksTiming { refresh: Duration::ZERO, keep, ..quick() };
        let auth = authenticator(OAuthSettings { jwks: timing, ..settings(&issuer) });
        let first = key.token(&claims(&issuer));
        assert!(ask(&auth, &first, &PRICES).await.is_ok());
        issuer.stop().await;
        let (before, mut asked) = (auth.issuer_health().unwrap().age.unwrap(), 0);
        assert!(before < keep, "the machine is too slow for this test");
        let mut other = with(claims(&issuer), "jti", json!(0));
        while auth.issuer_health().unwrap().age.unwrap() + Duration::from_millis(500) < keep {
            other["jti"] = json!(asked);
            assert!(ask(&auth, &first, &PRICES).await.is_ok(), "known");
            assert!(ask(&auth, &key.token(&other), &PRICES).await.is_ok(), "new, with a known key");
            asked += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(asked > 0);
        assert!(auth.issuer_health().unwrap().problem.unwrap().starts_with("it cannot be reached"));
        until(|| auth.issuer_health().unwrap().age.unwrap() >= keep).await;
        assert_eq!(why(ask(&auth, &first, &PRICES).await), NO_KEYS);
        assert_eq!(why(ask(&auth, &key.token(&other), &PRICES).await), NO_KEYS);
    })
    .await;
}

#[tokio::test]
async fn keys_that_are_old_are_fetched_on_the_side() {
    in_time(async {
        let (key, new) = (SigningKey::ec("c"), SigningKey::ec("new"));
        let issuer = Issuer::with_keys(&[&key]).await;
        let timing = JwksTiming { refresh: Duration::ZERO, ..quick() };
        let auth = authenticator(OAuthSettings { jwks: timing, ..settings(&issuer) });
        let token = key.token(&claims(&issuer));
        assert!(ask(&auth, &token, &PRICES).await.is_ok());
        issuer.publish(&[&key, &new]);
        // Each use of a known key asks again, and waits for nothing.
        while auth.issuer_health().unwrap().keys < 2 {
            assert!(ask(&auth, &token, &PRICES).await.is_ok());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn where_the_keys_are() {
    in_time(async {
        let key = SigningKey::ec("c");
        let keys = Answer::Json(json!({"keys": [key.public()]}));
        // OpenID Connect, with a path, when there is nothing of RFC 8414.
        let issuer = Issuer::start().await;
        let name = format!("{}/realms/acme", issuer.url);
        let metadata = |name: &str, at: &str| Answer::Json(json!({"issuer": name, "jwks_uri": at}));
        issuer.serve(
            "/realms/acme/.well-known/openid-configuration",
            metadata(&name, &format!("{}/oidc-keys", issuer.url)),
        );
        issuer.serve("/oidc-keys", keys.clone());
        let oauth = OAuthSettings { issuer: name.clone(), ..settings(&issuer) };
        let token = key.token(&with(claims(&issuer), "iss", json!(name)));
        assert!(ask(&authenticator(oauth.clone()), &token, &PRICES).await.is_ok());
        assert_eq!(issuer.asked("/.well-known/oauth-authorization-server/realms/acme"), 1);
        // Said outright, nobody's metadata is asked for.
        issuer.serve("/said-keys", keys);
        let said = OAuthSettings { jwks_url: Some(format!("{}/said-keys", issuer.url)), ..oauth.clone() };
        assert!(ask(&authenticator(said), &token, &PRICES).await.is_ok());
        assert_eq!((issuer.asked("/said-keys"), issuer.asked("/oidc-keys")), (1, 1));
        // Somebody else's metadata, and keys where they could be changed on the way.
        for (bad, problem) in [
            (metadata(&issuer.url, &format!("{}/oidc-keys", issuer.url)), "its metadata is that of another issuer"),
            (metadata(&name, "http://idp.example/keys"), "its metadata names no address"),
            (metadata(&name, "file:///etc/passwd"), "its metadata names no address"),
            (Answer::Json(json!({"issuer": name})), "its metadata names no address"),
            (Answer::Json(json!({})), "its metadata cannot be read"),
            (Answer::Status(404), "it answered with status 404"),
        ] {
            issuer.serve("/realms/acme/.well-known/openid-configuration", bad);
            let auth = authenticator(oauth.clone());
            assert_eq!(why(ask(&auth, &token, &PRICES).await), NO_KEYS);
            let said = auth.issuer_health().unwrap().problem.unwrap();
            assert!(said.starts_with(problem), "{said}");
        }
        assert_eq!(issuer.asked("/oidc-keys"), 1);
    })
    .await;
}
