//! Tokens of a provider: everybody's own, had in a browser, used by nobody else.

#[path = "../../../oauth/tests/provider/mod.rs"]
mod provider;

use crate::egress::{call, text};
use crate::host::{Client, Tenant, host_actor, pools, start_with, tenant_at, test};
use egress::{Dev, Door, Settings as DoorSettings};
use gateway::{Egress, Running, Settings};
use policy::Boundary;
use registry::{PolicyChange, Scope};
use serde_json::{Value, json};
use std::sync::Arc;

/// Says whose token the provider sees.
const SOURCE: &str = r#"export default { tools: {
    whoami: { run: async ({ url }) => { const r = await fetch(url); return r.status === 200 ? (await r.json()).user : `status ${r.status}`; } },
    why: { run: async ({ url }) => { try { await fetch(url); return "reached"; } catch (error) { return `${error.cause?.message ?? error.message}`; } } },
} }"#;

struct Stage {
    provider: provider::Running,
    host: Running,
    tenant: Tenant,
    _dir: tempfile::TempDir,
}

async fn stage(per: &str) -> Stage {
    let provider = provider::start(0, provider::Settings::default()).await;
    let port = provider.address.port();
    let door: Door<Dev> = Door::dev(vec![port], DoorSettings::default()).unwrap();
    let open: Egress = Arc::new(door);
    let dir = tempfile::tempdir().unwrap();
    let host = start_with(dir.path(), Settings::default(), pools().await, Some(open)).await;
    let tenant = tenant_at(&host, "acme");
    let settings = json!({
        "authorize_url": provider.url("/authorize"), "token_url": provider.url("/token"), "revoke_url": provider.url("/revoke"),
        "client_id": "bulkhead", "scopes": ["read"], "per": per,
    });
    let secret = provider::Settings::default().client_secret.map(Into::into);
    let base = format!("http://127.0.0.1:{port}");
    let allow = PolicyChange::allow(["s"], [base.as_str()]).unwrap();
    host.app.registry().set_provider_with(&host_actor(), "acme", "hub", settings, secret, &allow).unwrap();
    let manifest = format!(
        "egress = [\"http://127.0.0.1:{port}\"]\nsecrets = [{{ name = \"HUB\", hosts = [\"http://127.0.0.1:{port}\"], \
         header = \"authorization\", format = \"Bearer {{}}\", connection = \"hub\" }}]"
    );
    tenant.deploy_with("s", Boundary::Call, SOURCE, &manifest).await;
    Stage { provider, host, tenant, _dir: dir }
}

impl Stage {
    /// Another caller of the tenant's.
    fn somebody(&self) -> Client {
        let mut client = self.tenant.at("s");
        client.set("authorization", &format!("Bearer {}", self.tenant.key_with(Scope::default())));
        client
    }

    fn whoami(&self) -> Value {
        json!({ "url": self.provider.url("/whoami") })
    }
}

fn admin_key(expires_at: Option<u64>) -> registry::NewKey {
    registry::NewKey {
        tenant: Some("acme".to_owned()),
        role: registry::Role::Admin,
        name: String::new(),
        scope: Scope::default(),
        quota: registry::Quota::default(),
        expires_at,
    }
}

const CAN: &str = "io.modelcontextprotocol/clientCapabilities";

/// What a modern client is told to show.
async fn link(client: &Client, stage: &Stage) -> (String, Value) {
    let able = json!({ CAN: { "elicitation": { "url": {} } } });
    let asked = client.modern_with("tools/call", json!({ "name": "whoami", "arguments": stage.whoami() }), able).await;
    assert_eq!(asked.result()["resultType"], "input_required", "{asked:?}");
    let question = &asked.result()["inputRequests"]["connect/hub"];
    assert_eq!(question["params"]["mode"], "url", "{question}");
    (question["params"]["url"].as_str().unwrap().to_owned(), asked.result()["requestState"].clone())
}

fn browser() -> reqwest::Client {
    reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

fn location(response: &reqwest::Response) -> String {
    let location = response.headers().get("location");
    location.unwrap_or_else(|| panic!("{response:?}")).to_str().unwrap().to_owned()
}

/// Opens the link, goes on, signs in, and comes back; gives the way back and the browser's cookie.
async fn agree(link: &str, user: &str) -> (String, String) {
    let browser = browser();
    let page = browser.get(link).send().await.unwrap();
    assert!(page.headers()["content-security-policy"].to_str().unwrap().contains("default-src 'none'"));
    assert!(page.text().await.unwrap().contains("<form method=\"post\">"));
    let begun = browser.post(link).send().await.unwrap();
    assert_eq!(begun.status(), 303);
    let cookie = begun.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let authorize = location(&begun);
    let query = authorize.split_once('?').unwrap().1;
    assert!(query.contains("code_challenge_method=S256"), "{query}");
    let form = format!("{query}&user={user}&decision=allow");
    let signed = browser.post(authorize.split('?').next().unwrap()).body(form).send().await.unwrap();
    (location(&signed), cookie)
}

async fn come_back(back: &str, cookie: &str) -> (u16, String) {
    let response = browser().get(back).header("cookie", cookie).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[test]
fn everybody_uses_their_own_connection_and_nobody_elses() {
    test(async {
        let stage = stage("user").await;
        let (ann, bob) = (stage.somebody(), stage.somebody());
        let (to_open, state) = link(&ann, &stage).await;
        let (back, cookie) = agree(&to_open, "ann").await;
        assert_eq!(come_back(&back, &cookie).await.0, 200);
        // The client goes on where it was asked.
        let able = json!({ CAN: { "elicitation": { "url": {} } } });
        let answer = json!({ "name": "whoami", "arguments": stage.whoami(), "requestState": state,
            "inputResponses": { "connect/hub": { "action": "accept" } } });
        let got = ann.modern_with("tools/call", answer, able).await;
        assert_eq!(text(&got), "ann");
        let no = json!({ "name": "whoami", "arguments": stage.whoami(), "requestState": link(&bob, &stage).await.1,
            "inputResponses": { "connect/hub": { "action": "decline" } } });
        let able = json!({ CAN: { "elicitation": { "url": {} } } });
        let declined = bob.modern_with("tools/call", no, able).await;
        assert_eq!(declined.result()["isError"], true, "{declined:?}");
        assert_eq!(got.result()["_meta"]["bulkhead/receipt"]["credentials"], json!(["HUB"]));
        // Ann is connected, and Bob is not.
        let (to_open, _) = link(&bob, &stage).await;
        let (back, cookie) = agree(&to_open, "bob").await;
        assert_eq!(come_back(&back, &cookie).await.0, 200);
        for _ in 0..3 {
            let (one, other) = tokio::join!(call(&ann, "whoami", stage.whoami()), call(&bob, "whoami", stage.whoami()));
            assert_eq!((text(&one), text(&other)), ("ann".to_owned(), "bob".to_owned()));
        }
        stage.host.shutdown().await;
    });
}

#[test]
fn a_client_that_cannot_be_asked_gets_the_link_and_the_code_does_not() {
    test(async {
        let stage = stage("user").await;
        let ann = stage.somebody();
        let got = call(&ann, "whoami", stage.whoami()).await;
        assert_eq!(got.result()["isError"], true, "{got:?}");
        assert!(text(&got).contains("/connect/"), "{got:?}");
        let got = call(&ann, "why", stage.whoami()).await;
        assert!(text(&got).contains("not connected") && !text(&got).contains("/connect/"), "{got:?}");
        stage.host.shutdown().await;
    });
}

#[test]
fn a_link_is_good_once_and_for_the_browser_that_opened_it() {
    test(async {
        let stage = stage("user").await;
        let ann = stage.somebody();
        let (to_open, _) = link(&ann, &stage).await;
        let (back, cookie) = agree(&to_open, "ann").await;
        assert_eq!(browser().post(&to_open).send().await.unwrap().status(), 404, "the link was used");
        let (status, page) = come_back(&back, "bulkhead_connect=0000").await;
        assert!(status == 400 && page.contains("another browser"), "{page}");
        let (status, _) = come_back(&back, &cookie).await;
        assert_eq!(status, 404, "and what was begun is over");
        assert_eq!(stage.provider.asked("authorization_code"), 0);
        // Answers that nobody asked for, and those that were changed on the way.
        let (to_open, _) = link(&ann, &stage).await;
        let (back, cookie) = agree(&to_open, "ann").await;
        for wrong in [
            back.replace("state=", "state=x"),
            back.split('?').next().unwrap().to_owned(),
            format!("{back}&state=1"),
            back.replace("code=", "nothing="),
        ] {
            let (status, page) = come_back(&wrong, &cookie).await;
            assert!(status >= 400, "{wrong}: {page}");
        }
        assert_eq!(browser().get(format!("{to_open}0")).send().await.unwrap().status(), 404);
        link(&ann, &stage).await;
        stage.host.shutdown().await;
    });
}

#[test]
fn what_all_share_is_for_an_admin_to_connect() {
    test(async {
        let stage = stage("tenant").await;
        let (ann, bob) = (stage.somebody(), stage.somebody());
        let got = call(&ann, "why", stage.whoami()).await;
        assert!(text(&got).contains("the tenant is not connected"), "{got:?}");
        let path = format!("{}/admin/v1/tenants/acme/providers/hub/connect", stage.tenant.base);
        let ask = |token: &str| ann.http.post(&path).bearer_auth(token).send();
        assert_eq!(ask(&stage.tenant.key).await.unwrap().status(), 403);
        let admin = stage.host.app.registry().create_key(&host_actor(), admin_key(None)).unwrap().1;
        let answer: Value = ask(admin.expose()).await.unwrap().json().await.unwrap();
        let (back, cookie) = agree(answer["url"].as_str().unwrap(), "robot").await;
        assert_eq!(come_back(&back, &cookie).await.0, 200);
        for client in [&ann, &bob] {
            assert_eq!(text(&call(client, "whoami", stage.whoami()).await), "robot");
        }
        // Removed, and told to the provider.
        let gone = ann.http.delete(&path).bearer_auth(admin.expose()).send().await.unwrap();
        let gone: Value = gone.json().await.unwrap();
        assert_eq!((&gone["revoked"], stage.provider.asked("revoke")), (&json!(true), 1));
        assert!(text(&call(&ann, "why", stage.whoami()).await).contains("not connected"));
        stage.host.shutdown().await;
    });
}

/// A server that the provider is not allowed for gets no token, and nobody is asked to connect.
#[test]
fn a_provider_is_for_the_servers_and_hosts_of_its_policy() {
    test(async {
        let stage = stage("tenant").await;
        let registry = stage.host.app.registry();
        registry.allow_provider(&host_actor(), "acme", "hub", &PolicyChange::deny(["s"])).unwrap();
        let why = text(&call(&stage.somebody(), "why", stage.whoami()).await);
        assert!(why.contains("not allowed") && why.contains("bulkhead provider allow acme/hub --for s --to"), "{why}");
        let elsewhere = PolicyChange::allow(["s"], ["api.example.com"]).unwrap();
        registry.allow_provider(&host_actor(), "acme", "hub", &elsewhere).unwrap();
        let why = text(&call(&stage.somebody(), "why", stage.whoami()).await);
        assert!(why.contains("not allowed") && !why.contains("not connected"), "{why}");
        stage.host.shutdown().await;
    });
}

/// Tokens do not outlive the key that they were given for: revoked, expired, or with its tenant.
#[test]
fn tokens_go_with_their_key_and_the_provider_is_told() {
    test(async {
        let stage = stage("user").await;
        let registry = stage.host.app.registry();
        let kept = || registry.connections("acme").map(|all| all.len()).unwrap_or_default();
        let connect = async |client: &Client| {
            let (to_open, _) = link(client, &stage).await;
            let (back, cookie) = agree(&to_open, "ann").await;
            assert_eq!(come_back(&back, &cookie).await.0, 200);
        };
        let made = registry.create_key(&host_actor(), admin_key(None)).unwrap().1;
        let ann = stage.somebody();
        let id = registry.keys(Some("acme"), None, 1, |_| true).unwrap().unwrap().remove(0).id;
        connect(&ann).await;
        // A link that was opened before the key ended.
        let path = format!("{}/admin/v1/tenants/acme/providers/hub/connect", stage.tenant.base);
        let asked = ann.http.post(&path).header("authorization", ann.headers["authorization"].clone()).send().await;
        let asked: Value = asked.unwrap().json().await.unwrap();
        let (late, cookie) = agree(asked["url"].as_str().unwrap(), "ann").await;
        assert_eq!((kept(), stage.provider.asked("revoke")), (1, 0));
        let path = format!("{}/admin/v1/tenants/acme/keys/{id}", stage.tenant.base);
        let gone = ann.http.delete(&path).bearer_auth(made.expose()).send().await.unwrap();
        assert_eq!(gone.status(), 204);
        assert_eq!((kept(), stage.provider.asked("revoke")), (0, 1), "revoked");
        assert_eq!(come_back(&late, &cookie).await.0, 404, "nobody is connected for a key that ended");
        // A key that expires: the sweep comes by itself, later.
        let soon = registry.create_key(&host_actor(), admin_key(Some(registry::now() + 8))).unwrap().1;
        let mut bob = stage.tenant.at("s");
        bob.set("authorization", &format!("Bearer {}", soon.expose()));
        connect(&bob).await;
        stage.host.app.sweep_connections().await;
        assert_eq!(kept(), 1, "it still lives");
        while registry.directory().keys.values().any(|key| key.expires_at.is_some_and(|at| at > registry::now())) {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        stage.host.app.sweep_connections().await;
        assert_eq!((kept(), stage.provider.asked("revoke")), (0, 2), "expired");
        // With the tenant.
        connect(&stage.somebody()).await;
        assert_eq!(kept(), 1);
        let operator = std::fs::read_to_string(stage._dir.path().join("operator.key")).unwrap();
        let path = format!("{}/admin/v1/tenants/acme", stage.tenant.base);
        let gone = ann.http.delete(&path).bearer_auth(operator.trim()).send().await.unwrap();
        assert_eq!((gone.status().as_u16(), stage.provider.asked("revoke")), (204, 3));
        stage.host.shutdown().await;
    });
}
