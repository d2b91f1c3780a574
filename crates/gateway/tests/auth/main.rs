//! Tokens of a real issuer, good ones and all the others.

#[path = "../issuer/mod.rs"]
mod issuer;
mod keys;

use axum::http::{HeaderMap, HeaderValue, header};
use gateway::auth::{AuthSettings, Authenticator, Caller, Denied, OAuthSettings, Resource};
use issuer::{Issuer, SigningKey, now, part};
use registry::{Directory, Quota, Role, Tenant};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

const HOST: &str = "https://mcp.example.com";
const PRICES: Resource<'_> = Resource::Server { tenant: "acme", server: "prices" };
const ACME: Resource<'_> = Resource::Tenant { tenant: "acme" };

/// Long enough for a busy machine, and an end for a test that hangs.
async fn in_time<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), test).await.expect("the test takes too long")
}

/// Waits for what happens on the side.
async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn directory() -> Directory {
    let mut directory = Directory::default();
    for name in ["acme", "evil"] {
        let tenant = Tenant {
            name: name.to_owned(),
            created_at: 0,
            weight: 1,
            quota: Quota::default(),
            recording: false,
            approval: false,
            step: 0,
            servers: BTreeMap::new(),
        };
        directory.tenants.insert(name.to_owned(), Arc::new(tenant));
    }
    directory
}

/// Nothing is fetched again by itself unless a test says so.
fn settings(issuer: &Issuer) -> OAuthSettings {
    let mut settings = OAuthSettings::new(&issuer.url);
    settings.jwks.timeout = Duration::from_secs(20);
    settings
}

fn authenticator(oauth: OAuthSettings) -> Authenticator {
    Authenticator::new(AuthSettings { public_url: Some(HOST.to_owned()), oauth: Some(oauth) }).unwrap()
}

fn claims(issuer: &Issuer) -> Value {
    json!({
        "iss": issuer.url, "sub": "ann", "tenant": "acme", "aud": format!("{HOST}/acme/prices/mcp"),
        "exp": now() + 600, "nbf": now() - 600, "iat": now(), "scope": "mcp:call"
    })
}

fn with(mut claims: Value, name: &str, value: Value) -> Value {
    claims[name] = value;
    claims
}

async fn ask(auth: &Authenticator, token: &str, resource: &Resource<'_>) -> Result<Caller, Denied> {
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}")).unwrap());
    auth.caller(&directory(), &headers, resource).await
}

fn why(answer: Result<Caller, Denied>) -> &'static str {
    match answer {
        Err(Denied::Invalid(why)) => why,
        other => panic!("{other:?}"),
    }
}

const EXPIRED: &str = "the token has expired";
const WRONG_SIGNATURE: &str = "the signature of the token is wrong";
const WRONG_ALGORITHM: &str = "the token is signed with an algorithm that is not allowed";
const WRONG_AUDIENCE: &str = "the token is not made out to this resource";
const UNKNOWN_KEY: &str = "the token is signed with an unknown key";
const MALFORMED: &str = "the token is malformed";

/// Whoever owns something here owns it as a subject of its issuer: another issuer gives its `sub`s to other people.
#[tokio::test]
async fn the_same_sub_of_another_issuer_is_somebody_else() {
    in_time(async {
        let key = SigningKey::ed("d");
        let mut subjects = Vec::new();
        for issuer in [Issuer::with_keys(&[&key]).await, Issuer::with_keys(&[&key]).await] {
            let auth = authenticator(settings(&issuer));
            let caller = ask(&auth, &key.token(&claims(&issuer)), &PRICES).await.unwrap();
            subjects.push((caller.subject, caller.quota_id));
        }
        assert_ne!(subjects[0].0, subjects[1].0);
        assert_ne!(subjects[0].1, subjects[1].1);
    })
    .await;
}

#[tokio::test]
async fn a_good_token_of_each_kind() {
    in_time(async {
        let keys = [SigningKey::rsa("r"), SigningKey::ec("c"), SigningKey::ed("d")];
        let issuer = Issuer::with_keys(&keys.each_ref()).await;
        let auth = authenticator(settings(&issuer));
        for key in &keys {
            let caller = ask(&auth, &key.token(&claims(&issuer)), &PRICES).await.unwrap();
            assert_eq!(
                (&caller.subject, caller.tenant.as_deref()),
                (&format!("oauth:{}#ann", issuer.url), Some("acme"))
            );
            assert_eq!((caller.role, caller.key.is_none()), (Role::Call, true));
            assert!(caller.expires_at.unwrap() >= now() + 600);
        }
        assert_eq!(issuer.asked("/keys"), 1, "all of them with one fetch");
    })
    .await;
}

#[tokio::test]
async fn what_the_token_says_must_be_right_each_time() {
    in_time(async {
        let key = SigningKey::ec("c");
        let issuer = Issuer::with_keys(&[&key]).await;
        let auth = authenticator(settings(&issuer));
        let good = claims(&issuer);
        let refused = async |name: &str, value: Value| {
            why(ask(&auth, &key.token(&with(good.clone(), name, value)), &PRICES).await)
        };
        assert_eq!(refused("iss", json!("https://idp.example")).await, "the token is of another issuer");
        assert_eq!(refused("iss", json!(format!("{}/", issuer.url))).await, "the token is of another issuer");
        assert_eq!(refused("aud", json!("https://other.example/acme/prices/mcp")).await, WRONG_AUDIENCE);
        assert_eq!(refused("aud", json!(format!("{HOST}/acme/bills/mcp"))).await, WRONG_AUDIENCE);
        assert_eq!(refused("aud", json!(null)).await, WRONG_AUDIENCE);
        assert_eq!(refused("exp", json!(now() - 31)).await, EXPIRED);
        assert_eq!(refused("exp", json!(null)).await, "a time in the token is no number");
        assert_eq!(refused("nbf", json!(now() + 120)).await, "the token is not valid yet");
        assert_eq!(refused("sub", json!("")).await, "the token names no usable subject");
        assert_eq!(refused("tenant", json!(null)).await, "the token names no tenant");
        assert_eq!(refused("tenant", json!("nobody")).await, "the token names no tenant of this host");
        let without_scope = key.token(&with(good.clone(), "scope", json!("openid")));
        assert_eq!(ask(&auth, &without_scope, &PRICES).await.unwrap_err(), Denied::InsufficientScope);
        // Within the leeway.
        assert!(ask(&auth, &key.token(&with(good.clone(), "exp", json!(now() - 5))), &PRICES).await.is_ok());
    })
    .await;
}

/// The second time round the signature is known; everything else is still looked at.
#[tokio::test]
async fn a_known_token_is_not_good_for_everything() {
    in_time(async {
        let key = SigningKey::ec("c");
        let issuer = Issuer::with_keys(&[&key]).await;
        let mut short = settings(&issuer);
        short.leeway_s = 0;
        let auth = authenticator(short);
        let token = key.token(&with(claims(&issuer), "exp", json!(now() + 3)));
        let first = ask(&auth, &token, &PRICES).await;
        assert!(first.is_ok());
        assert!(ask(&auth, &token, &PRICES).await.is_ok());
        assert_eq!(why(ask(&auth, &token, &ACME).await), WRONG_AUDIENCE);
        let nobody = Directory::default();
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}")).unwrap());
        assert!(auth.caller(&nobody, &headers, &PRICES).await.is_err(), "the tenant was deleted");
        let end = first.unwrap().expires_at.unwrap();
        until(|| now() >= end).await;
        assert_eq!(why(ask(&auth, &token, &PRICES).await), EXPIRED);
    })
    .await;
}

#[tokio::test]
async fn a_token_of_another_tenant() {
    in_time(async {
        let key = SigningKey::ec("c");
        let issuer = Issuer::with_keys(&[&key]).await;
        let mut oauth = settings(&issuer);
        oauth.audiences = vec!["the-whole-host".to_owned()];
        let auth = authenticator(oauth);
        let evil = with(claims(&issuer), "tenant", json!("evil"));
        // Made out to its own tenant's endpoint: no token for this one.
        let own = key.token(&with(evil.clone(), "aud", json!(format!("{HOST}/evil/mcp"))));
        assert_eq!(why(ask(&auth, &own, &PRICES).await), WRONG_AUDIENCE);
        assert_eq!(
            why(ask(&auth, &own, &Resource::Tenant { tenant: "nobody" }).await),
            WRONG_AUDIENCE,
            "exists or not"
        );
        // Made out to the host, or to what it has no business with: a caller of its own tenant, whom this one is hidden from.
        for audience in ["the-whole-host".to_owned(), format!("{HOST}/acme/prices/mcp")] {
            let caller = ask(&auth, &key.token(&with(evil.clone(), "aud", json!([audience]))), &PRICES).await.unwrap();
            assert!(caller.of_tenant("evil") && !caller.of_tenant("acme"));
        }
    })
    .await;
}

#[tokio::test]
async fn scopes_and_audiences_for_less_and_more() {
    in_time(async {
        let key = SigningKey::ec("c");
        let issuer = Issuer::with_keys(&[&key]).await;
        let auth = authenticator(settings(&issuer));
        let narrowed = with(claims(&issuer), "scope", json!("mcp:call tool:prices/double server:bills"));
        let caller = ask(&auth, &key.token(&narrowed), &PRICES).await.unwrap();
        assert!(caller.may_use_tool("prices", "double") && !caller.may_use_tool("prices", "halve"));
        assert!(caller.may_use_tool("bills", "pay") && !caller.may_use_server("mail"));
        let tenant_wide = key.token(&with(claims(&issuer), "aud", json!(format!("{HOST}/acme/mcp"))));
        assert!(ask(&auth, &tenant_wide, &PRICES).await.is_ok());
        assert!(ask(&auth, &tenant_wide, &ACME).await.is_ok());
        assert_eq!(why(ask(&auth, &tenant_wide, &Resource::Host).await), WRONG_AUDIENCE);
        let admin = json!({"aud": format!("{HOST}/admin/v1"), "scope": "mcp:call mcp:admin"});
        let mut admin_claims = claims(&issuer);
        admin_claims.as_object_mut().unwrap().extend(admin.as_object().unwrap().clone());
        assert_eq!(ask(&auth, &key.token(&admin_claims), &Resource::Host).await.unwrap().role, Role::Admin);
    })
    .await;
}

#[tokio::test]
async fn nobody_else_can_sign() {
    in_time(async {
        let (rsa, ec, ed) = (SigningKey::rsa("r"), SigningKey::ec("c"), SigningKey::ed("d"));
        let issuer = Issuer::with_keys(&[&rsa, &ec, &ed]).await;
        let auth = authenticator(settings(&issuer));
        let good = claims(&issuer);
        // Another key under a known name.
        assert_eq!(why(ask(&auth, &SigningKey::ec("c").token(&good), &PRICES).await), WRONG_SIGNATURE);
        assert_eq!(why(ask(&auth, &SigningKey::ed("d").token(&good), &PRICES).await), WRONG_SIGNATURE);
        // A good signature, but not of this.
        let token = ec.token(&good);
        let (header, rest) = token.split_once('.').unwrap();
        let (_, signature) = rest.split_once('.').unwrap();
        let forged = format!("{header}.{}.{signature}", part(&with(good.clone(), "tenant", json!("evil"))));
        assert_eq!(why(ask(&auth, &forged, &PRICES).await), WRONG_SIGNATURE);
        // The key of one kind under the name of another.
        for (header, signer) in [(ec.header(), &ed), (ed.header(), &ec), (rsa.header(), &ec)] {
            assert_eq!(why(ask(&auth, &signer.token_with(&header, &good), &PRICES).await), WRONG_SIGNATURE);
        }
        let confused = with(ec.header(), "kid", json!("d"));
        assert_eq!(why(ask(&auth, &ec.token_with(&confused, &good), &PRICES).await), UNKNOWN_KEY);
        assert_eq!(issuer.asked("/keys"), 1);
    })
    .await;
}

#[tokio::test]
async fn algorithms_that_prove_nothing() {
    in_time(async {
        let key = SigningKey::rsa("r");
        let issuer = Issuer::with_keys(&[&key]).await;
        let auth = authenticator(settings(&issuer));
        let good = claims(&issuer);
        for alg in ["none", "None", "NONE", "", "HS256", "RS384", "PS256", "ES256K", "RS256 "] {
            let header = with(key.header(), "alg", json!(alg));
            for token in [key.token_with(&header, &good), format!("{}.{}.", part(&header), part(&good))] {
                assert_eq!(why(ask(&auth, &token, &PRICES).await), WRONG_ALGORITHM, "{alg}");
            }
        }
        // The public key as a shared secret, in the forms in which it may be lying around.
        let public = key.public();
        let secrets = [serde_json::to_vec(&public).unwrap(), public["n"].as_str().unwrap().as_bytes().to_vec()];
        for secret in secrets {
            let mut header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::HS256);
            header.kid = Some("r".to_owned());
            let token = jsonwebtoken::encode(&header, &good, &jsonwebtoken::EncodingKey::from_secret(&secret)).unwrap();
            assert_eq!(why(ask(&auth, &token, &PRICES).await), WRONG_ALGORITHM);
        }
        assert_eq!(issuer.asked("/keys"), 0, "for none of them anybody was asked");
        assert!(ask(&auth, &key.token(&good), &PRICES).await.is_ok());
    })
    .await;
}

/// What a token says about its key is a name to look up and nothing else.
#[tokio::test]
async fn a_token_cannot_bring_its_key() {
    in_time(async {
        let (key, own) = (SigningKey::ec("c"), SigningKey::ec("mine"));
        let issuer = Issuer::with_keys(&[&key]).await;
        let attacker = Issuer::with_keys(&[&own]).await;
        let auth = authenticator(settings(&issuer));
        let good = claims(&issuer);
        for kid in [
            json!("mine"),
            json!(format!("{}/keys", attacker.url)),
            json!("../../../../dev/null"),
            json!("' OR '1'='1"),
            json!(""),
            json!("c\0"),
            json!("C"),
            json!("x".repeat(3000)),
        ] {
            let mut header = with(own.header(), "kid", kid);
            header["jku"] = json!(format!("{}/keys", attacker.url));
            header["x5u"] = json!(format!("{}/keys", attacker.url));
            header["jwk"] = own.public();
            assert_eq!(why(ask(&auth, &own.token_with(&header, &good), &PRICES).await), UNKNOWN_KEY);
        }
        for kid in [json!(["c"]), json!({"c": 1}), json!(1)] {
            let header = with(key.header(), "kid", kid);
            assert_eq!(why(ask(&auth, &key.token_with(&header, &good), &PRICES).await), MALFORMED);
        }
        let header = with(key.header(), "jwk", own.public());
        assert_eq!(why(ask(&auth, &own.token_with(&header, &good), &PRICES).await), WRONG_SIGNATURE);
        assert_eq!(attacker.asked("/keys"), 0);
        assert_eq!(issuer.asked("/keys"), 1, "made-up names make one fetch and not one each");
    })
    .await;
}

#[tokio::test]
async fn odd_headers() {
    in_time(async {
        let key = SigningKey::ec("c");
        let issuer = Issuer::with_keys(&[&key]).await;
        let auth = authenticator(settings(&issuer));
        let good = claims(&issuer);
        let answer = async |name: &str, value: Value| {
            ask(&auth, &key.token_with(&with(key.header(), name, value), &good), &PRICES).await
        };
        assert_eq!(why(answer("crit", json!(["exp"])).await), "the token needs an extension that is not understood");
        assert_eq!(why(answer("crit", json!([])).await), "the token needs an extension that is not understood");
        assert_eq!(why(answer("typ", json!("logout+jwt")).await), "the token is no access token");
        assert!(answer("typ", json!("at+jwt")).await.is_ok());
        assert!(answer("typ", json!("application/AT+JWT")).await.is_ok());
        let mut nameless = key.header();
        nameless.as_object_mut().unwrap().remove("kid");
        nameless.as_object_mut().unwrap().remove("typ");
        assert!(ask(&auth, &key.token_with(&nameless, &good), &PRICES).await.is_ok(), "there is only one it can mean");
        let twice = format!("{}.{}", base64_text(r#"{"alg":"ES256","alg":"none","kid":"c"}"#), part(&good));
        for token in [
            format!("{twice}.AAAA"),
            "a.b.c".to_owned(),
            "..".to_owned(),
            "e30".to_owned(),
            "e30.e30".to_owned(),
            "e30.e30.e30.e30".to_owned(),
            "e30.e30.e30".to_owned(),
            format!("{}=.e30.e30", part(&key.header())),
        ] {
            assert_eq!(why(ask(&auth, &token, &PRICES).await), MALFORMED, "{token}");
        }
    })
    .await;
}

fn base64_text(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
}

/// Nothing of a token is in what is said about it.
#[tokio::test]
async fn a_refusal_holds_nothing_of_the_token() {
    in_time(async {
        let (key, other) = (SigningKey::ec("c"), SigningKey::ec("c"));
        let issuer = Issuer::with_keys(&[&key]).await;
        let auth = authenticator(settings(&issuer));
        let secret = with(with(claims(&issuer), "sub", json!("s3cret-subject")), "exp", json!(1));
        for token in [key.token(&secret), other.token(&secret), "bh_call_s3cret".to_owned()] {
            let denied = ask(&auth, &token, &PRICES).await.unwrap_err();
            let challenge = auth.challenge(&PRICES, &denied);
            for text in [format!("{denied:?}"), denied.to_string(), challenge.to_str().unwrap().to_owned()] {
                assert!(!text.contains("s3cret") && !token.split('.').any(|part| text.contains(part)), "{text}");
            }
        }
    })
    .await;
}
