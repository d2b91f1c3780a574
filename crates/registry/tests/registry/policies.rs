//! Which servers may use a secret, and where it may go.

use crate::common::{actor, audit_lines};
use crate::vault::{code, database, get, master, set, tokens, unlocked, value};
use policy::egress::{Host, Origin, Scheme};
use registry::{PolicyChange, Registry};
use serde_json::{Value, json};
use std::sync::Arc;

fn allow(servers: &[&str], hosts: &[&str]) -> PolicyChange {
    PolicyChange::allow(servers.iter().copied(), hosts.iter().copied(), ["credentials"]).unwrap()
}

fn policy(registry: &Registry, name: &str) -> Value {
    let found = registry.secrets("acme").unwrap().into_iter().find(|info| info.name == name).unwrap();
    json!(found.policy)
}

#[test]
fn a_new_secret_may_be_used_by_no_server() {
    let host = unlocked();
    set(&host.registry, "acme", "API_TOKEN", "token-number-one");
    let secret = host.registry.secret("acme", "API_TOKEN").unwrap().unwrap();
    assert_eq!((secret.policy.is_empty(), secret.policy.hosts("prices").count()), (true, 0));
    host.registry.set_provider(&actor(), "acme", "github", json!({}), None).unwrap();
    assert!(host.registry.provider("acme", "github").unwrap().unwrap().policy.is_empty());
}

#[test]
fn each_server_has_its_own_hosts() {
    let host = unlocked();
    let registry = &host.registry;
    let first = allow(&["prices", "bills"], &["api.example.com"]);
    registry.set_secret_with(&actor(), "acme", "API_TOKEN", value("token-number-one"), &first).unwrap();
    registry.allow_secret(&actor(), "acme", "API_TOKEN", &allow(&["bills"], &["*.example.org"])).unwrap();
    registry.allow_secret(&actor(), "acme", "API_TOKEN", &allow(&["*"], &["http://localhost:81"])).unwrap();
    let secret = registry.secret("acme", "API_TOKEN").unwrap().unwrap();
    let hosts = |server| secret.policy.hosts(server).map(|(host, _)| host).collect::<Vec<_>>();
    assert_eq!(hosts("prices"), ["api.example.com", "http://localhost:81"]);
    assert_eq!(hosts("bills"), ["*.example.org", "api.example.com", "http://localhost:81"], "what is not named stays");
    assert_eq!(hosts("mail"), ["http://localhost:81"]);
    // Another value leaves the policy, and another policy the value.
    set(registry, "acme", "API_TOKEN", "token-number-two");
    let denied = registry.allow_secret(&actor(), "acme", "API_TOKEN", &PolicyChange::deny(["*", "bills"])).unwrap();
    assert_eq!(json!(denied.policy), json!({ "prices": { "api.example.com": ["credentials"] } }));
    assert_eq!(denied.version, 2, "it counts values");
    assert_eq!(get(registry, "acme", "API_TOKEN").unwrap().as_deref(), Some("token-number-two"));
    // It outlives the host and a rotation of its key.
    registry.rotate_tenant_key(&actor(), "acme").unwrap();
    let host = host.reopen();
    host.registry.unlock(master(1)).unwrap();
    assert_eq!(policy(&host.registry, "API_TOKEN"), json!({ "prices": { "api.example.com": ["credentials"] } }));
    assert_eq!(get(&host.registry, "acme", "API_TOKEN").unwrap().as_deref(), Some("token-number-two"));
    host.registry.close().unwrap();
    let actions: Vec<_> = audit_lines(host.dir.path()).iter().map(|line| line["action"].clone()).collect();
    assert_eq!(actions.iter().filter(|action| *action == "secret.allow").count(), 3);
}

#[test]
fn a_provider_has_a_policy_too() {
    let host = unlocked();
    let registry = &host.registry;
    let settings = json!({ "client_id": "one" });
    let secret = || Some(value("client-secret"));
    let change = allow(&["prices"], &["api.github.com"]);
    registry.set_provider_with(&actor(), "acme", "github", settings.clone(), secret(), &change).unwrap();
    registry.set_connection(&actor(), "acme", "github", "user:ann", value("{}"), None).unwrap();
    registry.set_provider(&actor(), "acme", "github", settings.clone(), secret()).unwrap();
    let made = registry.allow_provider(&actor(), "acme", "github", &allow(&["bills"], &["*.github.com"])).unwrap();
    assert_eq!(
        json!(made.policy),
        json!({ "bills": { "*.github.com": ["credentials"] }, "prices": { "api.github.com": ["credentials"] } })
    );
    assert!(made.confidential && made.settings == settings);
    let host = host.reopen();
    host.registry.unlock(master(1)).unwrap();
    let found = host.registry.provider("acme", "github").unwrap().unwrap();
    assert!(found.client_secret.is_some() && found.policy == made.policy);
    assert!(tokens(&host.registry, "acme", "github", "user:ann").unwrap().is_some());
}

#[test]
fn a_policy_that_makes_no_sense_is_refused() {
    let host = unlocked();
    let registry = &host.registry;
    set(registry, "acme", "API_TOKEN", "token-number-one");
    let try_it = |change: Value| match serde_json::from_value(change) {
        Ok(change) => code(registry.allow_secret(&actor(), "acme", "API_TOKEN", &change)),
        Err(_) => "unreadable",
    };
    assert_eq!(try_it(json!({ "prices": { "api.example.com": ["credentials"] } })), "ok");
    for host in ["*", "https://*", "https://api.example.com/v1", "GET api.example.com", "", "API.example.com", "*.com"]
    {
        assert_eq!(try_it(json!({ "prices": { host: ["credentials"] } })), "unreadable", "{host}");
        assert!(PolicyChange::allow(["prices"], [host], ["credentials"]).is_err(), "{host}");
    }
    assert_eq!(try_it(json!({ "prices": {} })), "bad_value", "hosts are always named");
    assert_eq!(try_it(json!({ "prices": { "api.example.com": [] } })), "bad_value", "places are always named");
    assert_eq!(try_it(json!({ "prices": ["api.example.com"] })), "unreadable", "places are always named");
    assert_eq!(try_it(json!({ "prices": { "api.example.com": ["body"] } })), "unreadable");
    assert_eq!(try_it(json!({ "Prices": { "api.example.com": ["credentials"] } })), "bad_name");
    assert_eq!(try_it(json!({ "p*": { "api.example.com": ["credentials"] } })), "bad_name");
    assert_eq!(try_it(json!({ "bills": null })), "bad_value", "there is nothing to take away");
    assert_eq!(try_it(json!({ "prices": { "b.example.com": null } })), "bad_value", "there is nothing to take away");
    let hosts =
        |names: Vec<String>| Value::Object(names.into_iter().map(|name| (name, json!(["credentials"]))).collect());
    let many = hosts((0..65).map(|n| format!("h{n}.example.com")).collect());
    assert_eq!(try_it(json!({ "prices": many })), "bad_value");
    let places: Vec<_> = (0..17).map(|n| format!("query:k{n}")).collect();
    assert_eq!(try_it(json!({ "prices": { "api.example.com": places } })), "bad_value");
    let long = hosts((0..63).map(|n| format!("{n}.{}.example.com", vec!["a".repeat(60); 3].join("."))).collect());
    let servers: serde_json::Map<_, _> = (0..4).map(|n| (format!("s{n}"), long.clone())).collect();
    assert_eq!(try_it(servers.into()), "bad_value");
    assert_eq!(policy(registry, "API_TOKEN"), json!({ "prices": { "api.example.com": ["credentials"] } }));
    assert_eq!(
        code(registry.allow_secret(&actor(), "acme", "OTHER", &allow(&["prices"], &["a.example.com"]))),
        "not_found"
    );
    assert_eq!(
        code(registry.allow_provider(&actor(), "acme", "hub", &allow(&["prices"], &["a.example.com"]))),
        "not_found"
    );
}

/// Somebody who can write to the database cannot widen a policy: it is sealed with the value.
#[test]
fn a_policy_that_was_edited_behind_the_hosts_back_opens_nothing() {
    for wider in [
        "'{\"evil\":{\"evil.example.com\":[\"credentials\"]}}'",
        "'{\"prices\":{\"api.example.com\":[\"body:/a\"]}}'",
        "'{}'",
        "NULL",
    ] {
        let host = unlocked();
        let change = allow(&["prices"], &["api.example.com"]);
        host.registry.set_secret_with(&actor(), "acme", "API_TOKEN", value("token-number-one"), &change).unwrap();
        host.registry.set_secret_with(&actor(), "other", "API_TOKEN", value("token-number-two"), &change).unwrap();
        host.registry.set_provider_with(&actor(), "acme", "github", json!({}), None, &change).unwrap();
        let dir = host.stop();
        for table in ["secrets", "providers"] {
            let edited = database(dir.path())
                .execute(&format!("UPDATE {table} SET policy = {wider} WHERE tenant = 'acme'"), [])
                .unwrap();
            assert_eq!(edited, 1);
        }
        let registry = Registry::open(dir.path()).unwrap();
        registry.unlock(master(1)).unwrap();
        assert_eq!(code(registry.secret("acme", "API_TOKEN")), "corrupt", "{wider}");
        assert_eq!(code(registry.provider("acme", "github")), "corrupt", "{wider}");
        assert_eq!(get(&registry, "other", "API_TOKEN").unwrap().as_deref(), Some("token-number-two"));
    }
}

#[test]
fn a_host_is_taken_from_a_server_alone() {
    let host = unlocked();
    let registry = &host.registry;
    let change = allow(&["prices"], &["a.example.com", "b.example.com"]);
    registry.set_secret_with(&actor(), "acme", "API_TOKEN", value("token-number-one"), &change).unwrap();
    let change = |change: Value| {
        let change = serde_json::from_value(change).unwrap();
        json!(registry.allow_secret(&actor(), "acme", "API_TOKEN", &change).unwrap().policy)
    };
    let left = json!({ "prices": { "b.example.com": ["credentials"] } });
    assert_eq!(change(json!({ "prices": { "a.example.com": null } })), left);
    let other = json!({ "prices": { "b.example.com": ["query:key"] } });
    assert_eq!(change(other.clone()), other, "the places of a host are replaced");
    assert_eq!(change(json!({ "prices": { "b.example.com": null } })), json!({}));
}

/// What may come back from an origin is found out once, and anew after each change.
#[test]
fn what_may_go_to_an_origin_is_known() {
    let host = unlocked();
    let registry = &host.registry;
    let origin = |name: &str| Origin { scheme: Scheme::Https, host: Host::Name(name.to_owned()), port: 443 };
    let reach = |name: &str| {
        let reach = registry.reach("acme", &origin(name)).unwrap();
        reach.secrets.iter().chain(&reach.providers).map(|one| one.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(reach("api.example.com"), [""; 0]);
    let change = allow(&["prices"], &["*.example.com"]);
    registry.set_secret_with(&actor(), "acme", "API_TOKEN", value("token-number-one"), &change).unwrap();
    registry.set_secret_with(&actor(), "other", "OTHER", value("token-number-two"), &change).unwrap();
    set(registry, "acme", "UNUSED", "token-number-three");
    assert_eq!((reach("api.example.com"), reach("example.org")), (vec!["API_TOKEN".to_owned()], vec![]));
    let at = |name: &str| registry.reach("acme", &origin(name)).unwrap();
    assert!(Arc::ptr_eq(&at("api.example.com"), &at("api.example.com")), "it is kept");
    registry.set_provider_with(&actor(), "acme", "hub", json!({}), None, &change).unwrap();
    assert_eq!(reach("api.example.com"), ["API_TOKEN", "hub"]);
    // Other callers' tokens count where the provider's tokens may be stored, and only the newest.
    for number in 0..20 {
        registry.set_connection(&actor(), "acme", "hub", &format!("user:{number}"), value("{}"), None).unwrap();
    }
    assert_eq!(at("api.example.com").connections, []);
    let stored = PolicyChange::allow(["bills"], ["api.example.com"], ["body:/note"]).unwrap();
    registry.allow_provider(&actor(), "acme", "hub", &stored).unwrap();
    assert_eq!(at("api.example.com").connections.len(), 16);
    assert_eq!(at("www.example.com").connections, []);
    registry.allow_secret(&actor(), "acme", "API_TOKEN", &PolicyChange::deny(["prices"])).unwrap();
    assert_eq!(reach("api.example.com"), ["hub"]);
}
