//! A deploy key has an allowed host store a secret as data, to read it back through a server that is not bound to it.

use crate::egress::{call, text};
use crate::host::{Tenant, host_actor, pools, start_with, tenant_at, test};
use axum::routing::{get, post};
use egress::{Dev, Door, Settings as DoorSettings};
use gateway::{Egress, Running, Settings};
use policy::{Boundary, Limits};
use registry::PolicyChange;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const VALUE: &str = "sk-live-7f3a91c2d4";

const SOURCE: &str = r#"export default { tools: {
    ask: { run: async ({ url, init }) => { const r = await fetch(url, init); return { status: r.status, text: await r.text() }; } },
    why: { run: async ({ url, init }) => { try { await fetch(url, init); return "reached"; } catch (error) { return `${error.cause?.message ?? error.message}`; } } },
} }"#;

type Stored = Arc<Mutex<String>>;

/// An ordinary service: it keeps what is posted, and shows it to whoever asks.
async fn notes() -> (Stored, u16) {
    let stored = Stored::default();
    let (keep, show) = (stored.clone(), stored.clone());
    let take = move |body: String| {
        *keep.lock().unwrap() = body;
        std::future::ready("kept")
    };
    let give = move || std::future::ready(show.lock().unwrap().clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let service = axum::Router::new().route("/", post(take)).route("/", get(give));
    tokio::spawn(async move { axum::serve(listener, service).await });
    (stored, port)
}

struct Stage {
    stored: Stored,
    base: String,
    host: Running,
    tenant: Tenant,
    _dir: tempfile::TempDir,
}

impl Stage {
    async fn new() -> Stage {
        let (stored, port) = notes().await;
        let door: Door<Dev> = Door::dev(vec![port], DoorSettings::default()).unwrap();
        let open: Egress = Arc::new(door);
        let dir = tempfile::tempdir().unwrap();
        let host = start_with(dir.path(), Settings::default(), pools().await, Some(open)).await;
        let tenant = tenant_at(&host, "acme");
        Stage { stored, base: format!("http://127.0.0.1:{port}"), host, tenant, _dir: dir }
    }

    /// Sets `TOKEN` for one server and these places of the notes.
    fn allow(&self, server: &str, places: &[&str]) {
        let change = PolicyChange::allow([server], [self.base.as_str()], places.iter().copied()).unwrap();
        let registry = self.host.app.registry();
        registry.set_secret_with(&host_actor(), "acme", "TOKEN", VALUE.into(), &change).unwrap();
    }

    /// A manifest that binds `TOKEN`, or nothing.
    fn manifest(&self, place: Option<&str>) -> String {
        let bound = |place| format!("\nsecrets = [{{ name = \"TOKEN\", hosts = [\"{}\"], {place} }}]", self.base);
        format!("egress = [\"{}\"]{}", self.base, place.map(bound).unwrap_or_default())
    }

    /// What becomes of an upload with the deploy key.
    async fn upload(&self, server: &str, place: Option<&str>) -> Value {
        let limits = Limits { cpu_ms: 1000, ..Limits::default() };
        let draft = self.tenant.draft_with(server, Boundary::Call, limits, SOURCE, &self.manifest(place)).await;
        let order = draft.order(self.host.app.registry(), &self.tenant.deploy_key);
        let url = format!("{}/admin/v1/tenants/acme/servers/{server}/deployments", self.tenant.base);
        let sent = self.tenant.at(server).http.post(url).bearer_auth(&self.tenant.deploy_key).json(&order);
        sent.send().await.unwrap().json().await.unwrap()
    }

    fn post(&self) -> Value {
        let init = json!({ "method": "POST", "body": "{}", "headers": { "content-type": "application/json" } });
        json!({ "url": self.base, "init": init })
    }
}

/// The policy lets `prices` send the secret to the notes as a credential. A deploy key binds it to what the notes store.
#[test]
fn a_secret_is_not_rebound_to_a_place_that_its_host_stores() {
    test(async {
        let stage = Stage::new().await;
        stage.allow("prices", &["credentials"]);
        for (place, named) in [
            ("body = \"/note\"", "body:/note"),
            ("query = \"note\"", "query:note"),
            ("cookie = \"note\"", "cookie:note"),
            ("header = \"x-note\"", "header:x-note"),
            ("header = \"x-note\", asked = true", "header:x-note"),
            (
                "header = \"authorization\", format = \"Digest username={}\"",
                "header:authorization as Digest username={}",
            ),
        ] {
            let refused = stage.upload("prices", Some(place)).await;
            assert_eq!(refused["error"]["code"], "secret_not_allowed", "{place}: {refused}");
            let places = format!("--in 'credentials' --in '{named}'");
            let command = format!("bulkhead secret allow acme TOKEN --for prices --to '{}' {places}", stage.base);
            assert!(refused["error"]["hint"].as_str().unwrap().contains(&command), "{refused}");
        }
        assert_eq!(stage.stored.lock().unwrap().as_str(), "");
        // What is meant goes on.
        let fine = stage.upload("prices", Some("header = \"authorization\", format = \"Bearer {}\"")).await;
        assert_eq!(fine["error"], Value::Null, "{fine}");
        stage.host.shutdown().await;
    });
}

/// Deployments that were there before the policy was narrowed are held against it with each request.
#[test]
fn a_place_that_was_taken_away_is_refused_with_the_next_request() {
    test(async {
        let stage = Stage::new().await;
        stage.allow("prices", &["body:/note"]);
        stage.tenant.deploy_with("prices", Boundary::Call, SOURCE, &stage.manifest(Some("body = \"/note\""))).await;
        let asked = stage.manifest(Some("header = \"authorization\", asked = true"));
        stage.tenant.deploy_with("asks", Boundary::Call, SOURCE, &asked).await;
        call(&stage.tenant.at("prices"), "ask", stage.post()).await;
        assert!(stage.stored.lock().unwrap().contains(VALUE));
        stage.stored.lock().unwrap().clear();
        stage.allow("prices", &["credentials"]);
        stage.allow("asks", &["credentials"]);
        let why = text(&call(&stage.tenant.at("prices"), "why", stage.post()).await);
        assert!(why.contains("`body:/note`") && why.contains("--in 'body:/note'"), "{why}");
        assert_eq!(stage.stored.lock().unwrap().as_str(), "", "nothing left");
        // The text around a placeholder is the code's, and so is held against the policy too.
        for (value, fine) in [
            ("{{secret:TOKEN}}", true),
            ("Bearer {{secret:TOKEN}}", true),
            ("Digest username={{secret:TOKEN}}", false),
            ("Bearer {{secret:TOKEN}} {{secret:TOKEN}}", false),
        ] {
            let init = json!({ "headers": { "authorization": value } });
            let why = text(&call(&stage.tenant.at("asks"), "why", json!({ "url": stage.base, "init": init })).await);
            assert_eq!(why == "reached", fine, "{value}: {why}");
        }
        stage.host.shutdown().await;
    });
}

/// Two placeholders in one text: a refusal of the second does not repeat the value of the first.
#[test]
fn a_refusal_repeats_no_value_that_is_in_the_request_already() {
    test(async {
        let stage = Stage::new().await;
        stage.allow("asks", &["header:x-key as *"]);
        let other = PolicyChange::allow(["asks"], [stage.base.as_str()], ["credentials"]).unwrap();
        let registry = stage.host.app.registry();
        registry.set_secret_with(&host_actor(), "acme", "ZOTHER", "another-secret-value".into(), &other).unwrap();
        let base = &stage.base;
        let bind = |name| format!("{{ name = \"{name}\", hosts = [\"{base}\"], header = \"x-key\", asked = true }}");
        let manifest = format!("egress = [\"{base}\"]\nsecrets = [{}, {}]", bind("TOKEN"), bind("ZOTHER"));
        stage.tenant.deploy_with("asks", Boundary::Call, SOURCE, &manifest).await;
        let init = json!({ "headers": { "x-key": "a={{secret:TOKEN}} b={{secret:ZOTHER}}" } });
        let why = text(&call(&stage.tenant.at("asks"), "why", json!({ "url": base, "init": init })).await);
        assert!(why.contains("`ZOTHER`") && why.contains("not allowed") && !why.contains(VALUE), "{why}");
        stage.host.shutdown().await;
    });
}

/// What one server had stored comes back masked to every server of the tenant, and to no other tenant's search.
#[test]
fn what_a_host_stored_is_masked_for_servers_that_are_not_bound_to_it() {
    test(async {
        let stage = Stage::new().await;
        stage.allow("writer", &["body:/note"]);
        let wrote = stage.upload("writer", Some("body = \"/note\"")).await;
        assert_eq!(wrote["error"], Value::Null, "{wrote}");
        let read = stage.upload("reader", None).await;
        assert_eq!(read["error"], Value::Null, "{read}");
        call(&stage.tenant.at("writer"), "ask", stage.post()).await;
        assert!(stage.stored.lock().unwrap().contains(VALUE));
        let got = call(&stage.tenant.at("reader"), "ask", json!({ "url": stage.base })).await;
        let said = text(&got);
        assert!(!said.contains(VALUE) && said.contains(&"*".repeat(VALUE.len())), "{said}");
        let receipt = &got.result()["_meta"]["bulkhead/receipt"];
        assert_eq!((&receipt["masked"], &receipt["credentials"]), (&json!(1), &json!([])), "{receipt}");
        // A secret that may not go there is not searched for: it never went there.
        let registry = stage.host.app.registry();
        let elsewhere = PolicyChange::allow(["writer"], ["elsewhere.example.com"], ["credentials"]).unwrap();
        registry
            .set_secret_with(&host_actor(), "acme", "ELSEWHERE", "another-secret-value".into(), &elsewhere)
            .unwrap();
        *stage.stored.lock().unwrap() = "another-secret-value".to_owned();
        let said = text(&call(&stage.tenant.at("reader"), "ask", json!({ "url": stage.base })).await);
        assert!(said.contains("another-secret-value"), "{said}");
        // It counts at once when it is allowed there.
        let here = PolicyChange::allow(["writer"], [stage.base.as_str()], ["credentials"]).unwrap();
        registry.allow_secret(&host_actor(), "acme", "ELSEWHERE", &here).unwrap();
        let said = text(&call(&stage.tenant.at("reader"), "ask", json!({ "url": stage.base })).await);
        assert!(!said.contains("another-secret-value"), "{said}");
        stage.host.shutdown().await;
    });
}

/// Tokens of connections come back masked too: the caller's own always, others' where the provider's tokens may be stored.
#[test]
fn what_a_host_stored_of_a_token_is_masked() {
    test(async {
        let stage = Stage::new().await;
        let registry = stage.host.app.registry();
        let allow =
            |places: &[&str]| PolicyChange::allow(["writer"], [stage.base.as_str()], places.iter().copied()).unwrap();
        let settings =
            json!({ "authorize_url": "https://hub.example/a", "token_url": "https://hub.example/t", "client_id": "c" });
        let hub = allow(&["credentials"]);
        registry.set_provider_with(&host_actor(), "acme", "hub", settings, None, &hub).unwrap();
        let key = stage.tenant.key_with(Default::default());
        let id = registry.keys(Some("acme"), None, 1, |key| key.name == "scoped").unwrap().unwrap().remove(0).id;
        for (subject, token) in [(format!("user:{id}"), "token-of-the-caller"), ("user:bob".into(), "token-of-another")]
        {
            let tokens = json!({ "access": token, "refresh": null, "expires_at": null, "scope": null, "received_at": 1, "provider": "p" });
            let tokens = tokens.to_string().into();
            registry.set_connection(&host_actor(), "acme", "hub", &subject, tokens, None).unwrap();
        }
        stage.upload("reader", None).await;
        let mut reader = stage.tenant.at("reader");
        reader.set("authorization", &format!("Bearer {key}"));
        *stage.stored.lock().unwrap() = "token-of-the-caller token-of-another".to_owned();
        let read = async || text(&call(&reader, "ask", json!({ "url": stage.base })).await);
        let said = read().await;
        assert!(!said.contains("of-the-caller") && said.contains("token-of-another"), "{said}");
        registry.allow_provider(&host_actor(), "acme", "hub", &allow(&["body:/note"])).unwrap();
        let said = read().await;
        assert!(!said.contains("of-the-caller") && !said.contains("of-another"), "{said}");
        stage.host.shutdown().await;
    });
}

/// More than can be searched for is not sent for at all.
#[test]
fn a_host_that_too_many_secrets_may_go_to_is_not_asked() {
    test(async {
        let stage = Stage::new().await;
        stage.upload("reader", None).await;
        let registry = stage.host.app.registry();
        let change = PolicyChange::allow(["writer"], [stage.base.as_str()], ["credentials"]).unwrap();
        for number in 0..3 {
            let value = format!("{number}{}", "x".repeat(16_000));
            registry.set_secret_with(&host_actor(), "acme", &format!("LONG_{number}"), value.into(), &change).unwrap();
        }
        let why = text(&call(&stage.tenant.at("reader"), "why", json!({ "url": stage.base })).await);
        for part in ["bytes", "32768", "bulkhead secret list acme", "bulkhead secret deny acme"] {
            assert!(why.contains(part), "{part}: {why}");
        }
        registry.remove_secret(&host_actor(), "acme", "LONG_0").unwrap();
        let why = text(&call(&stage.tenant.at("reader"), "why", json!({ "url": stage.base })).await);
        assert_eq!(why, "reached");
        stage.host.shutdown().await;
    });
}
