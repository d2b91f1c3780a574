//! Servers and deployments.

use crate::support::fake::{Asked, FakeHost, json as answer, nothing, refusal};
use crate::support::{Dir, example};
use crate::{always, output, prepared, run};
use insta::assert_snapshot;
use serde_json::{Value, json};

#[test]
fn deploy_sends_what_was_asked_for_and_prints_the_url() {
    let host = FakeHost::deploying(|_| {
        let surface = json!({ "tools": [{ "name": "double_price" }] });
        answer(
            201,
            json!({ "server": "prices", "deployment": "d1", "url": "http://h/acme/prices/mcp", "surface": surface }),
        )
    });
    let plain = run(&host, ["deploy", &example("prices.js"), "--server", "acme/prices"]);
    assert_eq!((plain.code, plain.stdout.as_str()), (0, "http://h/acme/prices/mcp\n"));
    assert_snapshot!(plain.stderr, @"`acme/prices`: deployment d1 runs, with 1 tool");
    let asked = host.asked().pop().unwrap();
    assert_eq!(asked.target, "/admin/v1/tenants/acme/servers/prices/deployments");
    let files = &asked.json()["files"];
    assert_eq!(files["bulkhead.toml"], "entry = \"prices.js\"\nname = \"prices\"\n");
    assert_eq!(files["prices.js"], std::fs::read_to_string(example("prices.js")).unwrap());

    let file = example("prices.js");
    let args =
        ["deploy", &file, "--server", "acme/prices", "--boundary", "session", "--jit", "--limit", "cpu_ms=9", "--json"];
    let run_ = run(&host, args);
    assert_eq!(
        output(&run_),
        json!({ "server": "acme/prices", "deployment": "d1", "url": "http://h/acme/prices/mcp" })
    );
    let lock = host.asked().pop().unwrap().json()["lock"].clone();
    assert_eq!(
        (&lock["entry"], &lock["boundary"], &lock["jit"], &lock["limits"]["cpu_ms"]),
        (&json!("prices.js"), &json!("session"), &json!(true), &json!(9))
    );
}

#[test]
fn a_file_that_cannot_be_deployed_is_told_apart() {
    let host = always(|| refusal(422, "never", "it came to nobody's ears", None));
    let dir = Dir::new();
    let (script, typed) = (dir.file("server.js", "nope nope"), dir.file("server.ts", "const x: = 1"));
    let refused = run(&host, ["deploy", &script, "--server", "acme/x", "--json"]);
    assert_eq!((refused.code, output(&refused)["error"]["code"].as_str()), (1, Some("init_failed")));
    assert!(refused.stdout.contains("server.js:1:"), "{refused:?}");
    for (file, exit, code) in
        [(typed.as_str(), 1, "build_failed"), ("/no/such/file.js", 64, "bad_file"), ("/dev/zero", 64, "bad_file")]
    {
        let run = run(&host, ["deploy", file, "--server", "acme/x", "--json"]);
        assert_eq!((run.code, output(&run)["error"]["code"].as_str()), (exit, Some(code)), "{run:?}");
    }
    std::fs::write(dir.path("bytes.js"), b"\xff\xfe").unwrap();
    let bytes = run(&host, ["deploy", dir.path("bytes.js").to_str().unwrap(), "--server", "acme/x"]);
    assert!(bytes.code == 64 && bytes.stderr.contains("it is not UTF-8"), "{bytes:?}");
    assert!(host.asked().is_empty());
}

fn deployment(id: &str, current: bool) -> Value {
    let state = if current { "current" } else { "earlier" };
    json!({ "id": id, "server": "prices", "current": current, "state": state, "activated_at": 1, "created_at": 1_785_196_800, "created_by": "k1", "digest": "00", "size": 12, "manifest": { "wall": "isolate", "boundary": "call" } })
}

#[test]
fn rollback_goes_to_the_deployment_before() {
    let list = || json!({ "deployments": [deployment("d3", false), deployment("d2", true), deployment("d1", false)], "next": null });
    let host = FakeHost::start(move |asked: &Asked| match asked.method.as_str() {
        "GET" => answer(200, list()),
        _ => answer(200, deployment("d1", true)),
    });
    let back = run(&host, ["rollback", "acme/prices"]);
    assert_eq!(back.code, 0, "{back:?}");
    assert_eq!(host.asked()[1].target, "/admin/v1/tenants/acme/servers/prices/deployments/d1/activate");
    run(&host, ["rollback", "acme/prices", "d3"]);
    assert_eq!(host.asked()[0].target, "/admin/v1/tenants/acme/servers/prices/deployments/d3/activate");
    let shown = run(&host, ["deployments", "acme/prices"]);
    assert_snapshot!(shown.stdout, @r"
    state    deployment  deployed              by  wall     boundary  bytes
    earlier  d3          2026-07-28T00:00:00Z  k1  isolate  call      12
    current  d2          2026-07-28T00:00:00Z  k1  isolate  call      12
    earlier  d1          2026-07-28T00:00:00Z  k1  isolate  call      12
    ");
    let first = always(|| answer(200, json!({ "deployments": [deployment("d1", true)], "next": null })));
    let none = run(&first, ["rollback", "acme/prices", "--json"]);
    assert_eq!((none.code, output(&none)["error"]["code"].as_str()), (1, Some("not_found")));
}

#[test]
fn servers_are_listed_shown_and_deleted() {
    let server = || json!({ "tenant": "acme", "name": "prices", "state": "quarantined", "proposals": ["d2"], "url": "http://h/acme/prices/mcp", "created_at": 0, "current": deployment("d1", true) });
    let host = FakeHost::start(move |asked: &Asked| match (asked.method.as_str(), asked.target.ends_with("/prices")) {
        ("DELETE", _) => nothing(204),
        (_, true) => {
            let mut detail = server();
            detail["surface"] =
                json!({ "tools": [{ "name": "a" }, { "name": "b" }], "resources": [{ "uri": "x://y" }] });
            answer(200, detail)
        }
        _ => answer(200, json!({ "servers": [server()], "next": null })),
    });
    assert_snapshot!(run(&host, ["server", "list", "acme"]).stdout, @r"
    server  state        proposals  url                       wall     boundary  deployment  deployed
    prices  quarantined  d2         http://h/acme/prices/mcp  isolate  call      d1          2026-07-28T00:00:00Z
    ");
    let shown = run(&host, ["server", "show", "acme/prices"]);
    assert!(shown.stdout.contains("offers.tools               a, b\n"), "{shown:?}");
    let deleted = run(&host, ["server", "delete", "acme/prices", "--json"]);
    assert_eq!((deleted.code, output(&deleted)), (0, json!({ "deleted": "acme/prices" })));
}

/// A stranger's words in every field of every listing, on a terminal of 60 columns.
#[test]
fn every_listing_fits_sixty_columns_and_steers_nothing() {
    let evil = "evil\u{1b}[2J\u{202e}\nname: forged";
    let long = "x".repeat(30);
    let host = FakeHost::start(move |asked: &Asked| {
        let row = json!({
            "id": evil, "name": evil, "host": evil, "state": evil, "url": evil, "tenant": evil, "server": evil, "role": evil,
            "proposals": [evil, long], "quarantine": evil, "created_by": evil, "created_at": 1_785_196_800,
            "proposed_by": evil, "proposed_at": 1_785_196_800, "approved_by": evil, "approved_at": 1_785_196_800,
            "provider": evil, "subject": evil, "decision": evil, "requests": 1, "rule": evil, "weight": 1, "servers": 1,
            "settings": { "grant": evil, "scopes": [evil] }, "policy": { "servers": [evil], "hosts": [evil] },
            "manifest": { "wall": evil, "boundary": evil }, "current": { "id": evil }, "scope": {}, "quota": {}, "version": 1,
        });
        let list = json!([row.clone(), row]);
        let mut answer_ = json!({ "next": null, "least": {}, "default": {}, "most": {}, "jit": true, "since": 0 });
        for key in
            ["servers", "deployments", "tenants", "keys", "secrets", "providers", "connections", "hosts", "tools"]
        {
            answer_[key] = list.clone();
        }
        let _ = asked;
        answer(200, answer_)
    });
    for args in [
        &["server", "list", "acme"][..],
        &["server", "show", "acme/prices"],
        &["deployments", "acme/prices"],
        &["tenant", "list"],
        &["key", "list", "acme"],
        &["secret", "list", "acme"],
        &["provider", "list", "acme"],
        &["connections", "acme"],
        &["egress", "list", "acme/prices"],
        &["limits"],
        &["host"],
    ] {
        let shown = prepared(&host, args.iter().copied()).with_env("COLUMNS", "60").now();
        assert_eq!(shown.code, 0, "{args:?}: {shown:?}");
        for line in shown.stdout.lines() {
            assert!(!line.starts_with("name: forged"), "{args:?}: {line}");
            // Nothing is padded: a line that is longer is one value.
            assert!(line.chars().count() <= 60 || !line.contains("   "), "{args:?}: {line}");
            assert!(!line.contains(['\u{1b}', '\u{202e}']), "{args:?}: {line:?}");
        }
        let wide = prepared(&host, args.iter().copied()).now();
        assert!(!wide.stdout.contains(['\u{1b}', '\u{202e}']), "{args:?}: {wide:?}");
        assert!(!wide.stdout.lines().any(|line| line.starts_with("name: forged")), "{args:?}: {wide:?}");
        let json = prepared(&host, args.iter().copied()).arg("--json").now();
        assert!(!json.stdout.contains(['\u{1b}', '\u{202e}']), "{args:?}: {json:?}");
    }
}
