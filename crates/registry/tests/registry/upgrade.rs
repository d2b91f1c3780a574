//! A data directory of an earlier version.

use crate::common::audit_lines;
use crate::vault::{get, master, tokens};
use registry::Registry;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

/// As a host with version 6 of the schema left it.
fn old() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bulkhead.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch(include_str!("old/0006.sql")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    dir
}

fn policies(registry: &Registry) -> Value {
    let secrets = registry.secrets("acme").unwrap().into_iter().map(|info| (info.name, json!(info.policy)));
    let providers = registry.providers("acme").unwrap().into_iter().map(|info| (info.name, json!(info.policy)));
    Value::Object(secrets.chain(providers).collect())
}

/// What current deployments were bound to, and nothing else, stays allowed; the audit log says so once.
#[test]
fn what_current_deployments_are_bound_to_becomes_policy_once() {
    let dir = old();
    let registry = Registry::open(dir.path()).unwrap();
    registry.unlock(master(1)).unwrap();
    let wanted = json!({
        "API_TOKEN": {
            "bills": { "bills.example.com": ["header:x-key"] },
            "prices": {
                "*.example.org": ["header:authorization"],
                "api.example.com": ["header:authorization"],
                "api.github.com": ["query:key"],
            },
        },
        "UNUSED": {},
        "github": { "prices": { "api.github.com": ["header:authorization"] } },
        "unused": {},
    });
    assert_eq!(policies(&registry), wanted);
    assert_eq!(json!(registry.secret("other", "API_TOKEN").unwrap().unwrap().policy), json!({}));
    assert_eq!(get(&registry, "acme", "API_TOKEN").unwrap().as_deref(), Some("the value of API_TOKEN"));
    assert!(registry.provider("acme", "github").unwrap().unwrap().client_secret.is_some());
    assert!(tokens(&registry, "acme", "github", "tenant").unwrap().is_some());
    registry.close().unwrap();
    let lines = || {
        let lines = audit_lines(dir.path())
            .into_iter()
            .filter(|line| line["action"].as_str().is_some_and(|action| action.ends_with(".allow")));
        lines
            .map(|line| {
                (
                    line["tenant"].clone(),
                    line["actor"].clone(),
                    line["subject"].clone(),
                    line["detail"]["policy"].clone(),
                )
            })
            .collect::<Vec<_>>()
    };
    let mut logged = lines();
    logged.sort_by_key(|(tenant, _, subject, _)| (tenant.to_string(), subject.to_string()));
    let acme = ["API_TOKEN", "UNUSED", "github", "unused"]
        .map(|name| (json!("acme"), json!("host"), json!(name), wanted[name].clone()));
    assert_eq!(logged[..4], acme);
    assert_eq!(logged[4..], [(json!("other"), json!("host"), json!("API_TOKEN"), json!({}))]);
    // Not a second time: what an admin took away stays away.
    registry
        .allow_secret(&registry::Actor::host(), "acme", "API_TOKEN", &registry::PolicyChange::deny(["bills", "prices"]))
        .unwrap();
    drop(registry);
    let registry = Registry::open(dir.path()).unwrap();
    registry.unlock(master(1)).unwrap();
    assert_eq!(policies(&registry)["API_TOKEN"], json!({}));
    registry.close().unwrap();
    assert_eq!(lines().len(), 6);
}

/// Nobody wrote down who made a key: the tenant's first admin could have made all that did not come with the tenant.
#[test]
fn keys_from_before_count_as_made_by_the_first_admin() {
    let dir = old();
    let registry = Registry::open(dir.path()).unwrap();
    let database = rusqlite::Connection::open(dir.path().join("bulkhead.db")).unwrap();
    let query = "SELECT role || ' ' || name, (SELECT role FROM keys AS maker WHERE maker.id = keys.made_by) FROM keys WHERE tenant IS NOT 'other' ORDER BY number";
    let mut statement = database.prepare(query).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let made: Vec<(String, Option<String>)> = rows.collect::<Result<_, _>>().unwrap();
    let expected = [
        ("operator operator", None),
        ("admin admin", None),
        ("deploy deploy", None),
        ("call call", None),
        ("deploy ci", Some("admin")),
    ];
    assert_eq!(made, expected.map(|(key, maker)| (key.to_owned(), maker.map(str::to_owned))));
    let waiting = registry.deployments("acme", "prices").unwrap().into_iter().find(|one| one.pending).unwrap();
    assert_eq!(waiting.proposed_by.as_deref(), Some("key-of-the-test"));
}

/// Connections and sessions of tokens did not name their issuer: they go, and their owners are asked again.
#[test]
fn what_belongs_to_a_subject_of_an_unknown_issuer_goes() {
    let dir = old();
    let registry = Registry::open(dir.path()).unwrap();
    registry.unlock(master(1)).unwrap();
    assert_eq!(tokens(&registry, "acme", "github", "user:oauth:ann").unwrap(), None);
    let mut left: Vec<_> = registry.connections("acme").unwrap().into_iter().map(|info| info.subject).collect();
    left.sort();
    assert_eq!(left, ["tenant", "user:key-f468ee0caaed669e"]);
    let owners: Vec<_> = registry.sessions().unwrap().into_iter().map(|session| session.owner).collect();
    assert_eq!(owners, ["key-f468ee0caaed669e"]);
    registry.close().unwrap();
    let removed = audit_lines(dir.path()).into_iter().filter(|line| line["action"] == "connection.remove");
    let removed: Vec<_> = removed.map(|line| (line["tenant"].clone(), line["detail"]["subject"].clone())).collect();
    assert_eq!(removed, [(json!("acme"), json!("user:oauth:ann"))]);
}
