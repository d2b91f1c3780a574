//! Tenants, keys, servers, deployments and sessions: what is asked for is there, at once and after a restart.

use crate::common::{actor, audit_lines, call_key, code, deploy, deploy_well, fresh, sealed};
use registry::{
    Directory, NewDeployment, NewKey, Quota, Registry, Role, Scope, SessionRecord, TenantPatch, Token, token_hash,
};

/// The keys' owner for a token, if it is good.
fn role_of(directory: &Directory, token: &Token) -> Option<(Option<String>, Role)> {
    directory.keys.get(&token_hash(token.expose())).map(|key| (key.tenant.clone(), key.role))
}

/// Everything in a directory but its revision, as text.
fn image(directory: &Directory) -> String {
    let mut tenants: Vec<_> = directory.tenants.values().map(|tenant| format!("{tenant:?}")).collect();
    let mut keys: Vec<_> = directory.keys.iter().map(|(hash, key)| format!("{hash:?} {key:?}")).collect();
    tenants.sort();
    keys.sort();
    format!("{tenants:#?}\n{keys:#?}")
}

#[test]
fn a_tenant_comes_with_three_keys_and_takes_them_along() {
    let host = fresh();
    let registry = &host.registry;
    let new = registry.create_tenant(&actor(), "acme").unwrap();
    let directory = registry.directory();
    for (token, role) in [(&new.admin_key, Role::Admin), (&new.deploy_key, Role::Deploy), (&new.call_key, Role::Call)] {
        assert!(token.expose().starts_with(&format!("bh_{role}_")), "{}", token.expose());
        assert_eq!(role_of(&directory, token), Some((Some("acme".to_owned()), role)));
    }
    assert_eq!(code(registry.create_tenant(&actor(), "acme")), "exists");
    assert_eq!(code(registry.create_tenant(&actor(), "Acme")), "bad_name");
    assert_eq!(code(registry.create_tenant(&actor(), "admin")), "bad_name");

    registry.delete_tenant(&actor(), "acme").unwrap();
    let directory = registry.directory();
    assert!(directory.tenants.is_empty());
    assert_eq!(role_of(&directory, &new.admin_key), None);
    assert_eq!(code(registry.delete_tenant(&actor(), "acme")), "not_found");
    assert_eq!(code(registry.keys(Some("acme"), None, usize::MAX, |_| true)), "not_found");
}

#[test]
fn settings_of_a_tenant_change_only_where_asked() {
    let host = fresh();
    let quota = Quota { requests_per_s: Some(5.5), ..Quota::default() };
    let settings = TenantPatch { weight: Some(3), quota: Some(quota.clone()), ..TenantPatch::default() };
    host.registry.create_tenant_with(&actor(), "acme", settings).unwrap();
    let patch = TenantPatch { recording: Some(true), ..TenantPatch::default() };
    host.registry.update_tenant(&actor(), "acme", patch.clone()).unwrap();
    for _ in 0..2 {
        let tenant = host.registry.directory().tenants["acme"].clone();
        assert_eq!((tenant.weight, tenant.recording, &tenant.quota), (3, true, &quota));
    }
    assert_eq!(code(host.registry.update_tenant(&actor(), "nobody", patch)), "not_found");
    for bad in [
        TenantPatch { weight: Some(0), ..TenantPatch::default() },
        TenantPatch { quota: Some(Quota { cpu_s_per_min: Some(-1.0), ..Quota::default() }), ..TenantPatch::default() },
        TenantPatch {
            quota: Some(Quota { requests_per_s: Some(f64::NAN), ..Quota::default() }),
            ..TenantPatch::default()
        },
    ] {
        assert_eq!(code(host.registry.update_tenant(&actor(), "acme", bad)), "bad_value");
    }
    let host = host.reopen();
    let tenant = host.registry.directory().tenants["acme"].clone();
    assert_eq!((tenant.weight, tenant.recording, &tenant.quota), (3, true, &quota));
}

#[test]
fn a_revoked_key_is_gone_when_the_call_returns() {
    let host = fresh();
    let registry = &host.registry;
    registry.create_tenant(&actor(), "acme").unwrap();
    let mut watch = registry.watch();
    let (key, token) = registry.create_key(&actor(), call_key("acme", "laptop")).unwrap();
    assert!(watch.has_changed().unwrap());
    assert_eq!(*watch.borrow_and_update(), registry.directory().revision);
    assert!(role_of(&registry.directory(), &token).is_some());

    assert_eq!(code(registry.revoke_key(&actor(), None, &key.id)), "not_found", "not the operator's");
    registry.create_tenant(&actor(), "other").unwrap();
    assert_eq!(code(registry.revoke_key(&actor(), Some("other"), &key.id)), "not_found", "not the other's");
    assert!(role_of(&registry.directory(), &token).is_some());

    registry.revoke_key(&actor(), Some("acme"), &key.id).unwrap();
    assert_eq!(role_of(&registry.directory(), &token), None);
    registry.revoke_key(&actor(), Some("acme"), &key.id).unwrap();
    let known = registry.keys(Some("acme"), None, usize::MAX, |_| true).unwrap().unwrap();
    assert_eq!(known.len(), 4);
    assert_eq!(known[0].id, key.id, "newest first");
    assert!(known[0].revoked_at.is_some() && known[1].revoked_at.is_none());
    let page = |after, most| registry.keys(Some("acme"), after, most, |key| key.id != known[2].id).unwrap();
    let ids =
        |keys: Option<Vec<registry::Key>>| keys.map(|keys| keys.into_iter().map(|key| key.id).collect::<Vec<_>>());
    assert_eq!(ids(page(None, 2)).unwrap(), [&*known[0].id, &known[1].id]);
    assert_eq!(ids(page(Some(&known[1].id), 2)).unwrap(), [&*known[3].id], "without the one that is not wanted");
    assert_eq!(ids(page(Some(&known[3].id), 2)).unwrap(), [""; 0]);
    assert_eq!((ids(page(Some("key-0"), 2)), ids(page(Some(&known[2].id), 2))), (None, None));
    assert_eq!(ids(registry.keys(Some("other"), Some(&key.id), 2, |_| true).unwrap()), None, "not the other's");
    assert_eq!(registry.key(Some("acme"), &key.id).unwrap().unwrap().id, key.id);
    assert!(registry.key(Some("other"), &key.id).unwrap().is_none());

    let host = host.reopen();
    assert_eq!(role_of(&host.registry.directory(), &token), None);
}

#[test]
fn keys_are_what_they_may_be_and_nothing_else() {
    let host = fresh();
    let registry = &host.registry;
    registry.create_tenant(&actor(), "acme").unwrap();
    let good = call_key("acme", "x");
    let bad: Vec<(&str, NewKey)> = vec![
        ("bad_value", NewKey { role: Role::Operator, ..good.clone() }),
        ("bad_value", NewKey { tenant: None, ..good.clone() }),
        ("bad_value", NewKey { name: "a\nb".to_owned(), ..good.clone() }),
        ("bad_value", NewKey { name: "x".repeat(201), ..good.clone() }),
        ("bad_value", NewKey { expires_at: Some(u64::MAX), ..good.clone() }),
        (
            "bad_value",
            NewKey { scope: Scope { servers: Some(vec![String::new(); 1001]), tools: None }, ..good.clone() },
        ),
        ("not_found", NewKey { tenant: Some("nobody".to_owned()), ..good.clone() }),
    ];
    for (expected, key) in bad {
        assert_eq!(code(registry.create_key(&actor(), key.clone())), expected, "{key:?}");
    }
    let scope = Scope { servers: Some(vec!["prices".to_owned()]), tools: Some(vec!["prices/double*".to_owned()]) };
    let key = NewKey { scope: scope.clone(), expires_at: Some(4_000_000_000), ..good };
    let (made, token) = registry.create_key(&actor(), key).unwrap();
    let host = host.reopen();
    let kept = host.registry.directory().keys[&token_hash(token.expose())].clone();
    assert_eq!((&made, &kept.scope, kept.expires_at), (&*kept, &scope, Some(4_000_000_000)));
}

/// Thousands of keys are in memory at a time.
#[test]
fn the_names_in_a_scope_are_bounded_together() {
    let host = fresh();
    let registry = &host.registry;
    registry.create_tenant(&actor(), "acme").unwrap();
    let make = |length: usize, servers: usize, tools: usize| {
        let names = |count: usize| Some(vec!["x".repeat(length); count]);
        let scope = Scope { servers: names(servers), tools: names(tools) };
        registry.create_key(&actor(), NewKey { scope, ..call_key("acme", "x") }).map(drop)
    };
    assert_eq!((code(make(256, 26, 27)), code(make(256, 0, 53)), code(make(1, 334, 0))), ("ok", "ok", "ok"));
    assert_eq!((code(make(256, 54, 0)), code(make(1, 0, 335))), ("bad_value", "bad_value"));
    let said = make(256, 26, 28).unwrap_err().to_string();
    assert!(said.contains("at most 16384 bytes together, with 48 more for each"), "{said}");
}

#[test]
fn the_last_operator_cannot_lock_everybody_out() {
    let host = fresh();
    let registry = &host.registry;
    let first = registry.keys(None, None, usize::MAX, |_| true).unwrap().unwrap().remove(0);
    assert_eq!(code(registry.revoke_key(&actor(), None, &first.id)), "conflict");
    let operator = NewKey { tenant: None, role: Role::Operator, ..call_key("x", "second") };
    let expiring = NewKey { expires_at: Some(4_000_000_000), ..operator.clone() };
    registry.create_key(&actor(), expiring).unwrap();
    assert_eq!(code(registry.revoke_key(&actor(), None, &first.id)), "conflict");
    registry.create_key(&actor(), operator).unwrap();
    registry.revoke_key(&actor(), None, &first.id).unwrap();
}

#[test]
fn the_same_content_is_the_same_deployment() {
    let host = fresh();
    let registry = &host.registry;
    registry.create_tenant(&actor(), "acme").unwrap();
    assert_eq!(code(deploy(registry, "nobody", "prices", "1")), "not_found");
    let first = deploy(registry, "acme", "prices", "one").unwrap();
    let revision = registry.directory().revision;
    let again = deploy(registry, "acme", "prices", "one").unwrap();
    assert_eq!((&first.id, registry.directory().revision), (&again.id, revision), "nothing to do");

    let second = deploy_well(registry, "acme", "prices", "two");
    assert_ne!(first.id, second.id);
    let elsewhere = deploy(registry, "acme", "rates", "one").unwrap();
    assert_ne!(first.id, elsewhere.id, "of another server");
    assert_eq!(first.digest, elsewhere.digest);
    let other = sealed(registry, "acme", "prices", "one", "[limits]\ncpu_ms = 7", "key", "token");
    assert_ne!(registry.deploy(&actor(), other).unwrap().id, first.id, "other limits");

    let ids: Vec<_> = registry.deployments("acme", "prices").unwrap().into_iter().map(|d| d.id).collect();
    assert_eq!((ids.len(), &ids[2]), (3, &first.id), "newest first");
    deploy(registry, "acme", "prices", "one").unwrap();
    assert_eq!(registry.deployments("acme", "prices").unwrap().len(), 3, "an old one came back");
    let current = |registry: &Registry| registry.directory().server("acme", "prices").unwrap().current.clone().unwrap();
    assert_eq!(current(registry).id, first.id);

    let host = host.reopen();
    assert_eq!(current(&host.registry).id, first.id);
    assert_eq!(&host.registry.bundle("acme", "prices", &second.id).unwrap().source[..], b"two");
}

#[test]
fn a_tenant_made_anew_has_other_deployments() {
    let host = fresh();
    let mut ids = Vec::new();
    for _ in 0..2 {
        host.registry.create_tenant(&actor(), "acme").unwrap();
        ids.push(deploy(&host.registry, "acme", "prices", "one").unwrap().id.clone());
        host.registry.delete_tenant(&actor(), "acme").unwrap();
    }
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn an_earlier_deployment_can_be_made_current() {
    let host = fresh();
    let registry = &host.registry;
    registry.create_tenant(&actor(), "acme").unwrap();
    let first = deploy(registry, "acme", "prices", "one").unwrap();
    deploy(registry, "acme", "prices", "two").unwrap();
    let elsewhere = deploy(registry, "acme", "rates", "one").unwrap();
    assert_eq!(code(registry.activate(&actor(), "acme", "prices", &elsewhere.id)), "not_found");
    assert_eq!(code(registry.activate(&actor(), "acme", "nothing", &first.id)), "not_found");
    registry.activate(&actor(), "acme", "prices", &first.id).unwrap();
    let server = registry.directory().server("acme", "prices").unwrap().clone();
    assert_eq!(server.current.as_ref().unwrap().id, first.id);
}

#[test]
fn a_deleted_server_leaves_no_source() {
    let host = fresh();
    let registry = &host.registry;
    registry.create_tenant(&actor(), "acme").unwrap();
    let shared = "shared source";
    deploy(registry, "acme", "one", shared).unwrap();
    let kept = deploy_well(registry, "acme", "two", shared);
    let lost = deploy(registry, "acme", "one", "only here").unwrap();
    registry.delete_server(&actor(), "acme", "one").unwrap();
    assert_eq!(code(registry.delete_server(&actor(), "acme", "one")), "not_found");
    assert_eq!(code(registry.bundle("acme", "one", &lost.id)), "not_found");
    assert_eq!(&registry.bundle("acme", "two", &kept.id).unwrap().source[..], shared.as_bytes());
    let dir = host.stop();
    let database = rusqlite::Connection::open(dir.path().join("bulkhead.db")).unwrap();
    let files: i64 = database.query_row("SELECT count(*) FROM files", [], |row| row.get(0)).unwrap();
    assert_eq!(files, 2, "a manifest and a source");
}

#[test]
fn old_deployments_make_room_but_never_the_current_one() {
    let host = fresh();
    let registry = &host.registry;
    registry.create_tenant(&actor(), "acme").unwrap();
    let source = |fill: char| fill.to_string().repeat(30 << 20);
    let first = deploy(registry, "acme", "prices", &source('0')).unwrap();
    for fill in '1'..='9' {
        deploy(registry, "acme", "prices", &source(fill)).unwrap();
    }
    // 256 MiB hold eight of 30 MiB.
    assert_eq!(registry.deployments("acme", "prices").unwrap().len(), 8);
    assert_eq!(code(registry.bundle("acme", "prices", &first.id)), "not_found");
    let oldest = registry.deployments("acme", "prices").unwrap().pop().unwrap();
    registry.activate(&actor(), "acme", "prices", &oldest.id).unwrap();
    let large = "x".repeat((33 << 20) + 1);
    assert_eq!(code(deploy(registry, "acme", "prices", &large)), "bad_value");
}

/// Whatever is changed on the disk, what was deployed does not run as something else.
#[test]
fn what_was_changed_on_the_disk_is_not_run() {
    let changes = [
        "UPDATE files SET bytes = CAST('return 2' AS BLOB) WHERE bytes = CAST('return 1' AS BLOB)",
        "UPDATE files SET bytes = CAST(bytes || ' ' AS BLOB) WHERE bytes != CAST('return 1' AS BLOB)",
        "DELETE FROM files",
        "UPDATE deployments SET lock = replace(lock, '\"cpu_ms\":', '\"cpu_ms\":9')",
        "UPDATE deployments SET lock = replace(lock, '\"step\":{\"accepts\":null,\"number\":1', '\"step\":{\"accepts\":null,\"number\":2')",
        "UPDATE deployments SET lock = lock || ' '",
        "UPDATE deployments SET seal = replace(seal, '\"mac\":\"', '\"mac\":\"0')",
        "UPDATE deployments SET seal = '{}'",
        "UPDATE deployments SET surface = '{\"tools\":[{\"name\":\"more\"}]}'",
        "UPDATE deployments SET surface = 'nonsense'",
        "UPDATE deployments SET approval = '{}'",
        "UPDATE deployments SET approval = replace(seal, '\"lock\":\"', '\"lock\":\"0')",
        "UPDATE keys SET hash = randomblob(32)",
    ];
    for change in changes {
        let host = fresh();
        host.registry.create_tenant(&actor(), "acme").unwrap();
        let deployed = deploy_well(&host.registry, "acme", "prices", "return 1");
        assert_eq!(code(host.registry.bundle("other", "prices", &deployed.id)), "not_found");
        assert_eq!(code(host.registry.bundle("acme", "prices", &deployed.id)), "ok");
        let database = rusqlite::Connection::open(host.dir.path().join("bulkhead.db")).unwrap();
        database.execute_batch("PRAGMA foreign_keys = off").unwrap();
        assert!(database.execute(change, []).unwrap() > 0, "{change}");
        assert_eq!(code(host.registry.bundle("acme", "prices", &deployed.id)), "corrupt", "{change}");
        // Whoever starts on it again starts, with the others.
        let host = host.reopen();
        let server = host.registry.directory().server("acme", "prices").unwrap().clone();
        assert!(server.quarantine.is_some() || code(host.registry.bundle("acme", "prices", &deployed.id)) == "corrupt");
    }
}

#[test]
fn an_upload_is_good_for_one_step() {
    let host = fresh();
    let registry = &host.registry;
    registry.create_tenant(&actor(), "acme").unwrap();
    let make = |source: &str| sealed(registry, "acme", "prices", source, "", "key", "token");
    let uploads: Vec<_> = ["one", "two", "three"]
        .into_iter()
        .map(|source| {
            let upload = make(source);
            registry.deploy(&actor(), upload.clone()).unwrap();
            upload
        })
        .collect();
    let again = |upload: &NewDeployment| code(registry.deploy(&actor(), upload.clone()));
    assert_eq!((again(&uploads[0]), again(&uploads[1])), ("replayed", "replayed"));
    assert_eq!(again(&uploads[2]), "ok", "nothing to do");
    // Two at once: the second was made for what the first has replaced.
    let (one, other) = (make("four"), make("five"));
    assert_eq!((again(&one), again(&other)), ("ok", "replayed"));
    // Back at an earlier deployment, what once replaced it is no good again.
    let first = registry.deployments("acme", "prices").unwrap().pop().unwrap();
    registry.activate(&actor(), "acme", "prices", &first.id).unwrap();
    assert_eq!(again(&uploads[1]), "replayed");
    assert_eq!(again(&make("two")), "ok");
    // Nor is the first upload of a server that was removed.
    registry.delete_server(&actor(), "acme", "prices").unwrap();
    assert_eq!(again(&uploads[0]), "replayed");
    assert_eq!(again(&make("one")), "ok");
    let host = host.reopen();
    assert_eq!(code(host.registry.deploy(&actor(), uploads[1].clone())), "replayed");
}

#[test]
fn a_server_in_quarantine_stays_there_until_something_else_is_deployed() {
    let host = fresh();
    let quarantine = |registry: &Registry| registry.directory().server("acme", "prices").unwrap().quarantine.clone();
    let registry = &host.registry;
    registry.create_tenant(&actor(), "acme").unwrap();
    let first = deploy(registry, "acme", "prices", "one").unwrap();
    registry.quarantine(&actor(), "acme", "prices", "another", "no reason").unwrap();
    assert_eq!(quarantine(registry), None, "that is not what runs");
    registry.quarantine(&actor(), "acme", "prices", &first.id, "it shows something else").unwrap();
    assert_eq!(quarantine(registry).as_deref(), Some("it shows something else"));
    let host = host.reopen();
    let registry = &host.registry;
    assert!(quarantine(registry).is_some());
    deploy(registry, "acme", "prices", "two").unwrap();
    assert_eq!(quarantine(registry), None);
    let current = registry.directory().server("acme", "prices").unwrap().current.clone().unwrap();
    registry.quarantine(&actor(), "acme", "prices", &current.id, "again").unwrap();
    registry.activate(&actor(), "acme", "prices", &current.id).unwrap();
    assert_eq!(quarantine(registry), None);
    let lines = audit_lines(host.stop().path());
    assert_eq!(lines.iter().filter(|line| line["action"] == "server.quarantine").count(), 2);
}

#[test]
fn sessions_outlive_the_host_but_not_their_server() {
    let host = fresh();
    host.registry.create_tenant(&actor(), "acme").unwrap();
    deploy(&host.registry, "acme", "prices", "one").unwrap();
    let session = |id: &str, server: Option<&str>, used_at| SessionRecord {
        id: id.to_owned(),
        tenant: "acme".to_owned(),
        server: server.map(str::to_owned),
        owner: "key-1".to_owned(),
        protocol_version: "2025-11-25".to_owned(),
        capabilities: "{}".to_owned(),
        created_at: 1,
        used_at,
    };
    let (one, all, orphan) = (session("a", Some("prices"), 5), session("b", None, 4), session("c", Some("gone"), 3));
    host.registry.save_sessions(&[one.clone(), all.clone(), orphan], &[]).unwrap();
    let host = host.reopen();
    assert_eq!(host.registry.sessions().unwrap(), [one, all.clone()]);
    let later = session("a", Some("prices"), 9);
    host.registry.save_sessions(std::slice::from_ref(&later), &["b".to_owned()]).unwrap();
    assert_eq!(host.registry.sessions().unwrap(), [later]);
    host.registry.save_sessions(std::slice::from_ref(&all), &[]).unwrap();
    host.registry.delete_server(&actor(), "acme", "prices").unwrap();
    assert_eq!(host.registry.sessions().unwrap(), [all]);
    host.registry.delete_tenant(&actor(), "acme").unwrap();
    assert_eq!(host.registry.sessions().unwrap(), []);
}

#[test]
fn a_host_key_is_made_once() {
    let host = fresh();
    let key = host.registry.host_key("request-state").unwrap();
    assert_eq!(host.registry.host_key("request-state").unwrap(), key);
    assert_ne!(host.registry.host_key("something-else").unwrap(), key);
    let host = host.reopen();
    assert_eq!(host.registry.host_key("request-state").unwrap(), key);
}

#[test]
fn every_change_is_in_the_audit_log_once_and_without_secrets() {
    let host = fresh();
    let registry = &host.registry;
    let new = registry.create_tenant(&actor(), "acme").unwrap();
    let (key, token) = registry.create_key(&actor(), call_key("acme", "laptop")).unwrap();
    registry.revoke_key(&actor(), Some("acme"), &key.id).unwrap();
    deploy(registry, "acme", "prices", "one").unwrap();
    registry.update_tenant(&actor(), "acme", TenantPatch { weight: Some(2), ..TenantPatch::default() }).unwrap();
    registry.delete_server(&actor(), "acme", "prices").unwrap();
    registry.delete_tenant(&actor(), "acme").unwrap();
    let operator = std::fs::read_to_string(host.dir.path().join("operator.key")).unwrap();
    let dir = host.reopen().stop();
    let lines = audit_lines(dir.path());
    let actions: Vec<_> = lines.iter().map(|line| line["action"].as_str().unwrap_or("-")).collect();
    let expected =
        "key.create tenant.create key.create key.revoke server.deploy tenant.update server.delete tenant.delete";
    assert_eq!(actions.join(" "), expected);
    assert!(lines[1..].iter().all(|line| line["actor"] == "key-of-the-test" && line["tenant"] == "acme"));
    assert_eq!(lines[0]["actor"], "host");
    let text = serde_json::to_string(&lines).unwrap();
    for secret in [new.admin_key.expose(), new.call_key.expose(), token.expose(), operator.trim()] {
        assert!(!text.contains(secret));
    }
}

#[test]
fn many_at_once_disturb_nobody() {
    let host = fresh();
    let registry = &host.registry;
    registry.create_tenant(&actor(), "shared").unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            scope.spawn(move || {
                for round in 0..25 {
                    let tenant = format!("t{writer}-{round}");
                    let new = registry.create_tenant(&actor(), &tenant).unwrap();
                    assert!(role_of(&registry.directory(), &new.call_key).is_some());
                    let source = format!("{writer} {round}");
                    let made = deploy_well(registry, "shared", &format!("s{writer}"), &source);
                    assert_eq!(
                        &registry.bundle("shared", &made.server, &made.id).unwrap().source[..],
                        source.as_bytes()
                    );
                    if round % 2 == 0 {
                        registry.delete_tenant(&actor(), &tenant).unwrap();
                        assert!(role_of(&registry.directory(), &new.call_key).is_none());
                    }
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(move || {
                let mut revision = 0;
                while registry.directory().tenants.len() < 4 * 12 + 1 {
                    let directory = registry.directory();
                    assert!(directory.revision >= revision, "never backwards");
                    revision = directory.revision;
                    let tenants = &directory.tenants;
                    let whole = directory.keys.values().filter_map(|key| key.tenant.as_ref());
                    whole.for_each(|tenant| assert!(tenants.contains_key(tenant), "a key without its tenant"));
                }
            });
        }
    });
    let before = image(&registry.directory());
    let host = host.reopen();
    assert_eq!(image(&host.registry.directory()), before);
    let dir = host.stop();
    registry::verify(dir.path(), None).unwrap();
    assert_eq!(audit_lines(dir.path()).iter().filter(|line| line["action"] == "server.deploy").count(), 100);
}

#[test]
fn thousands_of_tenants_are_fine() {
    let host = fresh();
    let begun = std::time::Instant::now();
    for number in 0..2000 {
        host.registry.create_tenant(&actor(), &format!("t{number}")).unwrap();
    }
    println!("a change with up to 2000 tenants and 6000 keys: {:?}", begun.elapsed() / 2000);
    let host = host.reopen();
    assert_eq!(host.registry.directory().tenants.len(), 2000);
    assert_eq!(host.registry.directory().keys.len(), 6001);
}

mod random {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        CreateTenant(u8),
        UpdateTenant(u8, u32),
        DeleteTenant(u8),
        CreateKey(u8),
        RevokeKey(u8, usize),
        Deploy(u8, u8, u8),
        Activate(u8, u8, usize),
        DeleteServer(u8, u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        let tenant = 0..3u8;
        let server = 0..2u8;
        prop_oneof![
            3 => tenant.clone().prop_map(Step::CreateTenant),
            1 => (tenant.clone(), 1..9u32).prop_map(|(t, w)| Step::UpdateTenant(t, w)),
            1 => tenant.clone().prop_map(Step::DeleteTenant),
            2 => tenant.clone().prop_map(Step::CreateKey),
            2 => (tenant.clone(), 0..6usize).prop_map(|(t, k)| Step::RevokeKey(t, k)),
            4 => (tenant.clone(), server.clone(), 0..3u8).prop_map(|(t, s, c)| Step::Deploy(t, s, c)),
            2 => (tenant.clone(), server.clone(), 0..3usize).prop_map(|(t, s, d)| Step::Activate(t, s, d)),
            1 => (tenant, server).prop_map(|(t, s)| Step::DeleteServer(t, s)),
        ]
    }

    /// The code of what came of it.
    fn take(registry: &Registry, step: &Step) -> &'static str {
        let by = actor();
        let t = |tenant: &u8| format!("t{tenant}");
        let s = |server: &u8| format!("s{server}");
        match step {
            Step::CreateTenant(tenant) => code(registry.create_tenant(&by, &t(tenant))),
            Step::UpdateTenant(tenant, weight) => {
                let patch = TenantPatch { weight: Some(*weight), ..TenantPatch::default() };
                code(registry.update_tenant(&by, &t(tenant), patch))
            }
            Step::DeleteTenant(tenant) => code(registry.delete_tenant(&by, &t(tenant))),
            Step::CreateKey(tenant) => code(registry.create_key(&by, call_key(&t(tenant), "k"))),
            Step::RevokeKey(tenant, index) => match registry.keys(Some(&t(tenant)), None, usize::MAX, |_| true) {
                Ok(keys) => {
                    let keys = keys.expect("from the first");
                    code(registry.revoke_key(&by, Some(&t(tenant)), &keys[index % keys.len()].id))
                }
                Err(error) => error.code(),
            },
            Step::Deploy(tenant, server, content) => {
                code(deploy(registry, &t(tenant), &s(server), &content.to_string()))
            }
            Step::Activate(tenant, server, index) => match registry.deployments(&t(tenant), &s(server)) {
                Ok(all) => code(registry.activate(&by, &t(tenant), &s(server), &all[index % all.len()].id)),
                Err(error) => error.code(),
            },
            Step::DeleteServer(tenant, server) => code(registry.delete_server(&by, &t(tenant), &s(server))),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        /// The directory that is changed step by step is the one that is read from the disk.
        #[test]
        fn the_directory_is_what_the_database_says(steps in proptest::collection::vec(step(), 1..40)) {
            let host = fresh();
            for step in &steps {
                let code = take(&host.registry, step);
                prop_assert!(["ok", "exists", "not_found"].contains(&code), "{:?}: {}", step, code);
            }
            let before = image(&host.registry.directory());
            let host = host.reopen();
            prop_assert_eq!(image(&host.registry.directory()), before);
        }
    }
}
