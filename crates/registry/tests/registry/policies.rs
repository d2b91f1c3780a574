//! Which servers may use a secret, and where it may go.

use crate::common::{actor, audit_lines};
use crate::vault::{code, database, get, master, set, tokens, unlocked, value};
use registry::{PolicyChange, Registry};
use serde_json::{Value, json};

fn allow(servers: &[&str], hosts: &[&str]) -> PolicyChange {
    PolicyChange::allow(servers.iter().copied(), hosts.iter().copied()).unwrap()
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
    let hosts = |server| secret.policy.hosts(server).collect::<Vec<_>>();
    assert_eq!(hosts("prices"), ["api.example.com", "http://localhost:81"]);
    assert_eq!(hosts("bills"), ["*.example.org", "http://localhost:81"], "it is replaced for a server that is named");
    assert_eq!(hosts("mail"), ["http://localhost:81"]);
    // Another value leaves the policy, and another policy the value.
    set(registry, "acme", "API_TOKEN", "token-number-two");
    let denied = registry.allow_secret(&actor(), "acme", "API_TOKEN", &PolicyChange::deny(["*", "bills"])).unwrap();
    assert_eq!(json!(denied.policy), json!({ "prices": ["api.example.com"] }));
    assert_eq!(denied.version, 2, "it counts values");
    assert_eq!(get(registry, "acme", "API_TOKEN").unwrap().as_deref(), Some("token-number-two"));
    // It outlives the host and a rotation of its key.
    registry.rotate_tenant_key(&actor(), "acme").unwrap();
    let host = host.reopen();
    host.registry.unlock(master(1)).unwrap();
    assert_eq!(policy(&host.registry, "API_TOKEN"), json!({ "prices": ["api.example.com"] }));
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
    assert_eq!(json!(made.policy), json!({ "bills": ["*.github.com"], "prices": ["api.github.com"] }));
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
    assert_eq!(try_it(json!({ "prices": ["api.example.com"] })), "ok");
    for host in ["*", "https://*", "https://api.example.com/v1", "GET api.example.com", "", "API.example.com", "*.com"]
    {
        assert_eq!(try_it(json!({ "prices": [host] })), "unreadable", "{host}");
        assert!(PolicyChange::allow(["prices"], [host]).is_err(), "{host}");
    }
    assert_eq!(try_it(json!({ "prices": [] })), "bad_value", "hosts are always named");
    assert_eq!(try_it(json!({ "Prices": ["api.example.com"] })), "bad_name");
    assert_eq!(try_it(json!({ "p*": ["api.example.com"] })), "bad_name");
    let many: Vec<_> = (0..65).map(|n| format!("h{n}.example.com")).collect();
    assert_eq!(try_it(json!({ "prices": many })), "bad_value");
    let long: Vec<_> = (0..64).map(|n| format!("{n}.{}.example.com", vec!["a".repeat(60); 3].join("."))).collect();
    assert_eq!(try_it(json!({ "prices": long, "bills": long })), "bad_value");
    assert_eq!(policy(registry, "API_TOKEN"), json!({ "prices": ["api.example.com"] }));
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
    for wider in ["'{\"evil\":[\"evil.example.com\"]}'", "'{}'", "NULL"] {
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
