//! Tenants and keys.

use crate::support::fake::{Asked, FakeHost, Reply, json as answer, nothing};
use crate::{KEY, always, output, run};
use insta::assert_snapshot;
use serde_json::{Value, json};

pub fn made() -> Reply {
    let keys =
        json!({ "tenant": "acme", "admin_key": "bh_admin_A", "deploy_key": "bh_deploy_D", "call_key": "bh_call_C" });
    answer(201, keys)
}

#[test]
fn tenant_create_prints_the_keys_once() {
    let host = always(made);
    let text = run(&host, ["tenant", "create", "acme"]);
    assert_eq!((text.code, text.stdout.as_str()), (0, "admin   bh_admin_A\ndeploy  bh_deploy_D\ncall    bh_call_C\n"));
    assert_snapshot!(text.stderr, @"tenant `acme` is there; its keys are shown this once, so keep them");
    let asked = host.asked().remove(0);
    assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/admin/v1/tenants"));
    assert_eq!(asked.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(asked.json(), json!({ "name": "acme" }));

    let args = ["tenant", "create", "acme", "--weight", "3", "--recording", "--requests-per-s", "0.5", "--json"];
    let json = run(&host, args);
    assert_eq!((json.code, json.stderr.as_str()), (0, ""));
    assert_eq!(
        output(&json),
        json!({ "tenant": "acme", "admin_key": "bh_admin_A", "deploy_key": "bh_deploy_D", "call_key": "bh_call_C" })
    );
    let order = json!({ "name": "acme", "weight": 3, "recording": true, "quota": { "requests_per_s": 0.5 } });
    assert_eq!(host.asked()[0].json(), order);
}

#[test]
fn names_are_checked_before_anything_is_sent() {
    let host = always(made);
    for args in [
        &["tenant", "create", "Acme"][..],
        &["tenant", "show", "../keys"],
        &["server", "show", "acme"],
        &["server", "show", "acme/.."],
        &["call", "acme/prices/x", "t"],
        &["key", "revoke", "acme", "a/b"],
        &["key", "revoke", "acme"],
        &["key", "revoke", "--operator", "acme", "id"],
        &["key", "create"],
        &["tenant", "set", "acme"],
        &["rollback", "acme/prices", "../x"],
    ] {
        let run = run(&host, args.iter().copied());
        assert_eq!((run.code, run.stdout.as_str()), (64, ""), "{run:?}");
    }
    assert!(host.asked().is_empty());
}

#[test]
fn lists_are_read_to_their_last_page() {
    let host = FakeHost::start(|asked: &Asked| match asked.target.contains("cursor=one") {
        false => answer(200, json!({ "tenants": [tenant("one", 1)], "next": "one" })),
        true => answer(200, json!({ "tenants": [tenant("two", 0)], "next": null })),
    });
    let run_ = run(&host, ["tenant", "list"]);
    assert_snapshot!(run_.stdout, @r"
    tenant  servers  weight  recording  created
    one     1        1       off        2026-07-28T00:00:00Z
    two     0        1       off        2026-07-28T00:00:00Z
    ");
    let json = run(&host, ["tenant", "list", "--json"]);
    let names: Vec<_> = output(&json)["tenants"].as_array().unwrap().iter().map(|t| t["name"].clone()).collect();
    assert_eq!(names, ["one", "two"]);
}

fn tenant(name: &str, servers: u32) -> Value {
    json!({ "name": name, "created_at": 1_785_196_800, "weight": 1, "quota": { "burst": 7, "concurrent": null }, "recording": false, "servers": servers })
}

#[test]
fn tenant_set_keeps_the_quota_it_does_not_name() {
    let host = always(|| answer(200, tenant("acme", 1)));
    let run_ = run(&host, ["tenant", "set", "acme", "--concurrent", "5", "--recording", "on"]);
    assert_eq!(run_.code, 0, "{run_:?}");
    let asked = host.asked();
    assert_eq!((asked[0].method.as_str(), asked[1].method.as_str()), ("GET", "PATCH"));
    assert_eq!(asked[1].json(), json!({ "recording": true, "quota": { "burst": 7, "concurrent": 5 } }));
    run(&host, ["tenant", "set", "acme", "--reset-quota"]);
    assert_eq!(host.asked()[1].json(), json!({ "quota": {} }));
    let shown = run(&host, ["tenant", "show", "acme"]);
    assert_snapshot!(shown.stdout, @r"
    created_at        2026-07-28T00:00:00Z
    name              acme
    quota.burst       7
    quota.concurrent  -
    recording         false
    servers           1
    weight            1
    ");
}

#[test]
fn keys_are_created_listed_and_revoked() {
    let key = || json!({ "id": "k1", "tenant": "acme", "role": "call", "name": "ci", "state": "active", "scope": { "servers": ["prices"], "tools": null }, "quota": {}, "created_at": 1_785_196_800, "expires_at": null, "revoked_at": null });
    let host = FakeHost::start(move |asked: &Asked| match asked.method.as_str() {
        "POST" => answer(201, json!({ "key": key(), "token": "bh_call_T" })),
        "DELETE" => nothing(204),
        _ => answer(200, json!({ "keys": [key()], "next": null })),
    });
    let args =
        ["key", "create", "acme", "--name", "ci", "--server", "prices", "--tool", "prices/get*", "--expires", "30d"];
    let created = run(&host, args);
    assert_eq!((created.code, created.stdout.as_str()), (0, "bh_call_T\n"));
    let asked = host.asked().remove(0);
    assert_eq!(asked.target, "/admin/v1/tenants/acme/keys");
    let order = json!({ "role": "call", "name": "ci", "scope": { "servers": ["prices"], "tools": ["prices/get*"] }, "quota": {}, "expires_in_s": 2_592_000 });
    assert_eq!(asked.json(), order);

    run(&host, ["key", "create", "--operator", "--name", "backup"]);
    let asked = host.asked().remove(0);
    assert_eq!((asked.target.as_str(), asked.json()), ("/admin/v1/keys", json!({ "name": "backup" })));

    let list = run(&host, ["key", "list", "acme"]);
    assert_snapshot!(list.stdout, @r"
    id  role  state   name  scope   created               expires
    k1  call  active  ci    prices  2026-07-28T00:00:00Z  -
    ");
    host.asked();
    let revoked = run(&host, ["key", "revoke", "acme", "k1", "--json"]);
    assert_eq!((revoked.code, output(&revoked)), (0, json!({ "revoked": "k1" })));
    run(&host, ["key", "revoke", "--operator", "k9"]);
    let targets: Vec<_> = host.asked().into_iter().map(|asked| asked.target).collect();
    assert_eq!(targets, ["/admin/v1/tenants/acme/keys/k1", "/admin/v1/keys/k9"]);
}
