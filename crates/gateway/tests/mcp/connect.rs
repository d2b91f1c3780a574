//! Tokens of a provider: everybody's own, had in a browser, used by nobody else.

#[path = "../../../oauth/tests/provider/mod.rs"]
mod provider;

use crate::egress::{call, text};
use crate::host::{Client, Got, Tenant, data, host_actor, pools, start_with, tenant_at, test};
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
    let allow = PolicyChange::allow(["s"], [base.as_str()], ["credentials"]).unwrap();
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
/// The host's question that has the link.
const OPEN: &str = "bulkhead/connect/hub";

/// A client that shows links and forms.
fn able() -> Value {
    json!({ CAN: { "elicitation": { "url": {}, "form": {} } } })
}

/// What a modern client is told to show.
async fn link(client: &Client, stage: &Stage) -> (String, Value) {
    let asked =
        client.modern_with("tools/call", json!({ "name": "whoami", "arguments": stage.whoami() }), able()).await;
    assert_eq!(asked.result()["resultType"], "input_required", "{asked:?}");
    let question = &asked.result()["inputRequests"][OPEN];
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

/// Opens the link, agrees, and gives the code that the browser shows.
async fn consent(link: &str, user: &str) -> String {
    let (back, cookie) = agree(link, user).await;
    let (status, page) = come_back(&back, &cookie).await;
    assert_eq!(status, 200, "{page}");
    code_in(&page)
}

fn code_in(page: &str) -> String {
    let (_, rest) = page.split_once("id=\"code\">").unwrap_or_else(|| panic!("{page}"));
    let code = rest.split('<').next().unwrap().to_owned();
    assert_eq!(code.len(), 9, "{code}");
    code
}

/// A code that is surely another one.
fn wrong(code: &str) -> String {
    if code.starts_with('B') { code.replacen('B', "C", 1) } else { format!("B{}", &code[1..]) }
}

impl Stage {
    /// Shows a code over the admin API, with the key of this client.
    async fn confirm(&self, client: &Client, code: &str) -> (u16, Value) {
        let path = format!("{}/admin/v1/tenants/acme/providers/hub/confirm", self.tenant.base);
        let key = client.headers["authorization"].clone();
        let body = json!({ "code": code }).to_string();
        let sent = client.http.post(path).header("authorization", key).header("content-type", "application/json");
        let answer = sent.body(body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// The host tells the provider in the background.
    async fn given_back(&self, times: usize) {
        while self.provider.asked("revoke") < times {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(self.provider.asked("revoke"), times);
    }
}

#[test]
fn everybody_uses_their_own_connection_and_nobody_elses() {
    test(async {
        let stage = stage("user").await;
        let (ann, bob) = (stage.somebody(), stage.somebody());
        let (to_open, state) = link(&ann, &stage).await;
        let code = consent(&to_open, "ann").await;
        // The client goes on where it was asked, and is asked for the code.
        let answer = json!({ "name": "whoami", "arguments": stage.whoami(), "requestState": state,
            "inputResponses": { OPEN: { "action": "accept" } } });
        let asked = ann.modern_with("tools/call", answer, able()).await;
        let (key, state) = code_question(&asked);
        let answer = |key: &str, state: &Value, code: &str| {
            json!({ "name": "whoami", "arguments": stage.whoami(), "requestState": state,
                "inputResponses": { key: { "action": "accept", "content": { "code": code } } } })
        };
        // A typing error is asked for again, by another name.
        let asked = ann.modern_with("tools/call", answer(&key, &state, &wrong(&code)), able()).await;
        let (again, state) = code_question(&asked);
        assert_ne!(key, again);
        let got = ann.modern_with("tools/call", answer(&again, &state, &code.to_lowercase()), able()).await;
        assert_eq!(text(&got), "ann");
        let no = json!({ "name": "whoami", "arguments": stage.whoami(), "requestState": link(&bob, &stage).await.1,
            "inputResponses": { OPEN: { "action": "decline" } } });
        let declined = bob.modern_with("tools/call", no, able()).await;
        assert_eq!(declined.result()["isError"], true, "{declined:?}");
        assert_eq!(got.result()["_meta"]["bulkhead/receipt"]["credentials"], json!(["HUB"]));
        // Ann is connected, and Bob is not.
        let (to_open, _) = link(&bob, &stage).await;
        let code = consent(&to_open, "bob").await;
        assert_eq!(stage.confirm(&bob, &code).await, (200, json!({ "connected": "hub" })));
        for _ in 0..3 {
            let (one, other) = tokio::join!(call(&ann, "whoami", stage.whoami()), call(&bob, "whoami", stage.whoami()));
            assert_eq!((text(&one), text(&other)), ("ann".to_owned(), "bob".to_owned()));
        }
        stage.host.shutdown().await;
    });
}

/// The name of the host's question for the code, and the state to go on with.
fn code_question(asked: &Got) -> (String, Value) {
    assert_eq!(asked.result()["resultType"], "input_required", "{asked:?}");
    let (key, question) = asked.result()["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert!(key.starts_with("bulkhead/connect/hub/code/"), "{key}");
    assert!(question["params"]["message"].as_str().unwrap().starts_with("[bulkhead] "), "{question}");
    assert_eq!(question["params"]["mode"], "form");
    (key.clone(), asked.result()["requestState"].clone())
}

/// A client of the older protocol is asked for the code while its call waits.
#[test]
fn a_session_is_asked_for_the_code_on_the_stream_of_its_call() {
    test(async {
        let stage = stage("user").await;
        let mut ann = stage.somebody();
        ann.begin("2025-11-25", json!({ "elicitation": { "form": {}, "url": {} } })).await;
        let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call",
            "params": { "name": "whoami", "arguments": stage.whoami() } });
        let sent = ann.http.post(&ann.url).headers(ann.headers.clone()).header("content-type", "application/json");
        let mut response = sent.body(call.to_string()).send().await.unwrap();
        let (mut heard, mut answered, mut code) = (String::new(), 0, String::new());
        while let Some(chunk) = response.chunk().await.unwrap() {
            heard.push_str(std::str::from_utf8(&chunk).unwrap());
            let messages = heard.split("\n\n").filter_map(|event| serde_json::from_str::<Value>(data(event)?).ok());
            let questions = messages.filter(|message| message["method"] == "elicitation/create").collect::<Vec<_>>();
            for question in &questions[answered..] {
                let content = match question["params"]["mode"].as_str().unwrap() {
                    "url" => {
                        code = consent(question["params"]["url"].as_str().unwrap(), "ann").await;
                        json!({ "action": "accept" })
                    }
                    _ => json!({ "action": "accept", "content": { "code": code } }),
                };
                let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": content });
                assert_eq!(ann.json(answer).await.status, 202);
            }
            answered = questions.len();
        }
        assert_eq!(answered, 2, "{heard}");
        assert!(heard.contains("\"text\":\"ann\""), "{heard}");
        stage.host.shutdown().await;
    });
}

/// The attack: a caller has a link made for themselves and sends it to somebody who is signed in at the provider.
#[test]
fn a_link_that_somebody_else_agreed_to_gives_its_caller_nothing() {
    test(async {
        let stage = stage("user").await;
        let (attacker, victim) = (stage.somebody(), stage.somebody());
        let (to_open, state) = link(&attacker, &stage).await;
        let code = consent(&to_open, "victim").await;
        // Nothing of what the attacker has makes it theirs: not the call, not the link, not the victim's code in other hands.
        let retry = json!({ "name": "whoami", "arguments": stage.whoami(), "requestState": state,
            "inputResponses": { OPEN: { "action": "accept" } } });
        code_question(&attacker.modern_with("tools/call", retry, able()).await);
        let got = call(&attacker, "whoami", stage.whoami()).await;
        assert!(got.result()["isError"] == true && text(&got).contains("--code CODE"), "{got:?}");
        let refused = |(status, body): (u16, Value)| (status, body["error"]["code"].as_str().unwrap().to_owned());
        assert_eq!(refused(stage.confirm(&victim, &code).await), (422, "nothing_to_confirm".to_owned()));
        assert!(stage.host.app.registry().connections("acme").unwrap().is_empty());
        // Guesses are few. Then the token is given back, and not even the right code helps.
        for left in [4, 3, 2, 1] {
            let (status, body) = stage.confirm(&attacker, &wrong(&code)).await;
            assert_eq!((status, &body["error"]["code"]), (422, &json!("wrong_code")));
            assert!(body["error"]["message"].as_str().unwrap().contains(&format!("{left} more")), "{body}");
        }
        assert_eq!(stage.provider.asked("revoke"), 0);
        assert_eq!(refused(stage.confirm(&attacker, &wrong(&code)).await), (422, "too_many_codes".to_owned()));
        assert_eq!(refused(stage.confirm(&attacker, &code).await), (422, "nothing_to_confirm".to_owned()));
        stage.given_back(1).await;
        assert!(stage.host.app.registry().connections("acme").unwrap().is_empty());

        // Whoever is surprised by the page cancels.
        let (to_open, _) = link(&attacker, &stage).await;
        let (back, cookie) = agree(&to_open, "victim").await;
        let (_, page) = come_back(&back, &cookie).await;
        let cancel = |cookie: &str| {
            let path = format!("{}/connect/cancel", stage.tenant.base);
            browser().post(path).header("cookie", cookie.to_owned()).send()
        };
        assert_eq!(cancel("bulkhead_connect=0000").await.unwrap().status(), 404);
        assert_eq!(cancel(&cookie).await.unwrap().status(), 200);
        assert_eq!(cancel(&cookie).await.unwrap().status(), 404);
        assert_eq!(refused(stage.confirm(&attacker, &code_in(&page)).await), (422, "nothing_to_confirm".to_owned()));
        stage.given_back(2).await;

        // What waits when its provider is removed, or the host ends, is given back as well.
        let (to_open, _) = link(&attacker, &stage).await;
        consent(&to_open, "victim").await;
        let provider = stage.provider.clone();
        stage.host.shutdown().await;
        assert_eq!(provider.asked("revoke"), 3);
    });
}

#[test]
fn the_pages_say_who_asks_for_what() {
    test(async {
        let stage = stage("user").await;
        let mut ann = stage.tenant.at("s");
        let key = stage.tenant.key_with(Scope::default());
        ann.set("authorization", &format!("Bearer {key}"));
        let (to_open, _) = link(&ann, &stage).await;
        let page = browser().get(&to_open).send().await.unwrap();
        let rules = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(rules.contains("default-src 'none'") && !rules.contains("unsafe"), "{rules}");
        let page = page.text().await.unwrap();
        let id = stage.host.app.registry().keys(Some("acme"), None, 1, |key| key.name == "scoped").unwrap().unwrap();
        // The server that asks, and the hosts that the policy lets it send the token to.
        let used = format!("<dd>s, at http://{}</dd>", stage.provider.address);
        for said in ["the key “scoped”", &id[0].id, "acme", "hub (127.0.0.1)", "read", &used, "asked for this yourself"]
        {
            assert!(page.contains(said), "{said}: {page}");
        }
        let (back, cookie) = agree(&to_open, "ann").await;
        let (_, page) = come_back(&back, &cookie).await;
        for said in [
            "Give this code to nobody else: whoever has it can act as you at hub",
            "the key “scoped”",
            "connect acme/hub",
        ] {
            assert!(page.contains(said), "{said}: {page}");
        }
        stage.host.shutdown().await;
    });
}

#[test]
fn the_cookie_is_of_this_host_alone_where_it_can_be() {
    test(async {
        let stage = stage("user").await;
        let begun = |link: String| async move { browser().post(&link).send().await.unwrap() };
        let ticket = |link: &str| link.rsplit_once('/').unwrap().1.to_owned();
        let (to_open, _) = link(&stage.somebody(), &stage).await;
        let plain = begun(to_open).await.headers()["set-cookie"].to_str().unwrap().to_owned();
        assert!(plain.starts_with("bulkhead_connect=") && !plain.contains("Secure"), "{plain}");
        assert!(plain.ends_with("; Path=/; Max-Age=1200; HttpOnly; SameSite=Lax"), "{plain}");
        // Behind a proxy that speaks https.
        let mut settings = (*stage.host.app.settings()).clone();
        settings.auth.public_url = Some("https://mcp.example".to_owned());
        stage.host.app.apply(settings).unwrap();
        let (to_open, _) = link(&stage.somebody(), &stage).await;
        assert!(to_open.starts_with("https://mcp.example/connect/"), "{to_open}");
        let begun = begun(format!("{}/connect/{}", stage.tenant.base, ticket(&to_open))).await;
        let secure = begun.headers()["set-cookie"].to_str().unwrap().to_owned();
        assert!(secure.starts_with("__Host-bulkhead_connect="), "{secure}");
        assert!(secure.ends_with("; Path=/; Max-Age=1200; HttpOnly; SameSite=Lax; Secure"), "{secure}");
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
        let code = consent(answer["url"].as_str().unwrap(), "robot").await;
        // Another admin cannot confirm what this one asked for; nor can whoever is no admin.
        let other = stage.host.app.registry().create_key(&host_actor(), admin_key(None)).unwrap().1;
        let mut them = ann.clone();
        assert_eq!(stage.confirm(&them, &code).await.0, 403);
        them.set("authorization", &format!("Bearer {}", other.expose()));
        assert_eq!(stage.confirm(&them, &code).await.1["error"]["code"], "nothing_to_confirm");
        them.set("authorization", &format!("Bearer {}", admin.expose()));
        assert_eq!(stage.confirm(&them, &code).await.0, 200);
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
        let elsewhere = PolicyChange::allow(["s"], ["api.example.com"], ["credentials"]).unwrap();
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
            let code = consent(&to_open, "ann").await;
            assert_eq!(stage.confirm(client, &code).await.0, 200);
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
