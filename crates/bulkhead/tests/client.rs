//! The commands that talk to a host, against one that answers what the test wants.

mod support;

use insta::assert_snapshot;
use serde_json::{Value, json};
use support::fake::{Asked, FakeHost, Reply, json as answer, nothing, refusal, text};
use support::{Dir, Run, bulkhead, example};

const KEY: &str = "bh_operator_0123456789012345678901234567890123456789012";

/// Runs a command against the host, with a key in the environment.
fn run<'a>(host: &FakeHost, args: impl IntoIterator<Item = &'a str>) -> Run {
    prepared(host, args).now()
}

/// The same, to be run when it is looked at.
fn prepared<'a>(host: &FakeHost, args: impl IntoIterator<Item = &'a str>) -> Run {
    bulkhead(args).with_env("BULKHEAD_URL", &host.url()).with_env("BULKHEAD_KEY", KEY)
}

fn output(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("stdout is not JSON: {error}\n{run:?}"))
}

fn always(reply: fn() -> Reply) -> FakeHost {
    FakeHost::start(move |_| reply())
}

// --- finding the host, and being let in --------------------------------------------------------------------------

#[test]
fn a_host_that_is_not_there_is_2() {
    let call = |args: &[&str]| bulkhead(args.iter().copied()).with_env("BULKHEAD_URL", "http://127.0.0.1:9");
    let run = call(&["tenant", "list"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert_snapshot!(run.stderr, @r"
    error: the host at http://127.0.0.1:9 cannot be reached
      caused by: Connection refused (os error 111)
    hint: `bulkhead serve` starts one here; `--url` or `BULKHEAD_URL` names another
    ");
    for args in [
        &["tenant", "create", "acme", "--json"][..],
        &["key", "list", "acme", "--json"],
        &["server", "show", "acme/prices", "--json"],
        &["call", "acme/prices", "double_price", "--json"],
        &["tools", "acme/prices", "--json"],
        &["logs", "acme/prices", "--json"],
        &["calls", "acme", "--json"],
        &["audit-log", "head", "--json"],
        &["host", "--json"],
        &["limits", "--json"],
        &["reload", "--json"],
    ] {
        let run = call(args);
        assert_eq!((run.code, output(&run)["error"]["code"].as_str()), (2, Some("unreachable")), "{run:?}");
    }
}

#[test]
fn an_address_that_is_none_is_64() {
    for url in ["nonsense", "ftp://host", "http://user:secret@host"] {
        let run = bulkhead(["tenant", "list", "--url", url]);
        assert_eq!((run.code, run.stdout.as_str()), (64, ""), "{run:?}");
        assert!(!run.stderr.contains("secret"), "{run:?}");
    }
}

#[test]
fn a_wrong_key_is_refused_and_never_shown() {
    let host = always(|| refusal(401, "unauthorized", "the key is unknown", Some("`bulkhead key create` makes a key")));
    let text = run(&host, ["tenant", "list"]);
    assert_eq!((text.code, text.stdout.as_str()), (1, ""));
    assert_snapshot!(text.stderr, @r"
    error: unauthorized: the key is unknown
    hint: `bulkhead key create` makes a key
    ");
    let json = run(&host, ["tenant", "list", "--json"]);
    assert_eq!((json.code, json.stderr.as_str()), (1, ""));
    assert_snapshot!(json.stdout, @r#"{"error":{"code":"unauthorized","hint":"`bulkhead key create` makes a key","message":"the key is unknown"}}"#);
    for run in [text, json] {
        assert!(!run.stdout.contains(KEY) && !run.stderr.contains(KEY));
    }
}

#[test]
fn a_missing_key_is_told_where_to_put_it() {
    let host = always(|| refusal(401, "unauthorized", "a key is needed", None));
    let run = bulkhead(["tenant", "list"]).with_env("BULKHEAD_URL", &host.url());
    assert_eq!(run.code, 1);
    assert_snapshot!(run.stderr, @r"
    error: unauthorized: a key is needed
    hint: set `BULKHEAD_KEY`, or name the key's file with `--key-file`
    ");
    assert_eq!(host.asked()[0].header("authorization"), None);
}

#[test]
fn flags_go_before_the_environment() {
    let host = always(|| answer(200, json!({ "tenants": [], "next": null })));
    let dir = Dir::new();
    let file = dir.file("operator.key", "bh_from_file\n");
    let elsewhere = |args: &[&str]| {
        bulkhead(args.iter().copied()).with_env("BULKHEAD_URL", "http://127.0.0.1:9").with_env("BULKHEAD_KEY", KEY)
    };
    for (args, expected) in [
        (vec!["tenant", "list", "--key", "bh_flag"], "Bearer bh_flag".to_owned()),
        (vec!["tenant", "list", "--key-file", &file], "Bearer bh_from_file".to_owned()),
        (vec!["tenant", "list"], format!("Bearer {KEY}")),
    ] {
        let url = host.url();
        let run = elsewhere(&[&args[..], &["--url", &url]].concat());
        assert_eq!(run.code, 0, "{run:?}");
        assert_eq!(host.asked()[0].header("authorization"), Some(expected.as_str()));
    }
    let before = elsewhere(&["--url", &host.url(), "tenant", "list"]);
    assert_eq!(before.code, 0, "{before:?}");
    let both = elsewhere(&["tenant", "list", "--key", "a", "--key-file", &file]);
    assert_eq!(both.code, 64, "{both:?}");
    let missing = elsewhere(&["tenant", "list", "--key-file", "/no/such/key", "--json"]);
    assert_eq!((missing.code, output(&missing)["error"]["code"].as_str()), (64, Some("bad_key")), "{missing:?}");
    let odd = elsewhere(&["tenant", "list", "--key", "se\ncret"]);
    assert!(odd.code == 64 && !odd.stderr.contains("cret"), "{odd:?}");
}

#[test]
fn something_else_at_the_address_is_2() {
    for reply in [
        (|| text("text/html", "<h1>It works!</h1>")) as fn() -> Reply,
        || Reply { status: 404, headers: Vec::new(), body: b"not here".to_vec() },
        || Reply { status: 302, headers: vec![("location", "http://127.0.0.1:9/".to_owned())], body: Vec::new() },
        || answer(200, json!({ "tenants": 5 })),
    ] {
        let host = always(reply);
        let run = run(&host, ["tenant", "list", "--json"]);
        let error = &output(&run)["error"];
        assert_eq!((run.code, error["code"].as_str()), (2, Some("bad_answer")), "{run:?}");
        assert!(error["hint"].as_str().unwrap().contains("BULKHEAD_URL"));
    }
}

#[test]
fn an_answer_without_end_is_not_read_to_its_end() {
    let host = always(|| text("application/json", &" ".repeat(65 << 20)));
    let run = run(&host, ["tenant", "list", "--json"]);
    assert_eq!((run.code, output(&run)["error"]["code"].as_str()), (2, Some("bad_answer")), "{:?}", run.stderr);
}

#[test]
fn a_list_whose_pages_never_end_is_given_up() {
    let host = always(|| answer(200, json!({ "tenants": [], "next": "again" })));
    let run = run(&host, ["tenant", "list", "--json"]);
    assert_eq!((run.code, output(&run)["error"]["code"].as_str()), (2, Some("bad_answer")));
}

/// Busy is no fault, an accident is.
#[test]
fn exit_codes_tell_refusals_from_faults() {
    for (status, code) in [(400, 1), (403, 1), (404, 1), (409, 1), (422, 1), (429, 1), (503, 1), (500, 2), (502, 2)] {
        let host = FakeHost::start(move |_| refusal(status, "some_code", "because", None));
        let run = run(&host, ["tenant", "show", "acme", "--json"]);
        assert_eq!((run.code, output(&run)["error"]["code"].as_str()), (code, Some("some_code")), "{status}");
        let error = output(&run)["error"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(error, ["code", "hint", "message"]);
    }
}

#[test]
fn what_a_host_says_does_not_steer_the_terminal() {
    let host = always(|| refusal(404, "not\x1b_found", "\x1b[2J\u{202e}\nerror: forged", Some("\x07")));
    let steers = |text: &str| text.chars().any(|c| c != '\n' && c.is_control() || c == '\u{202e}');
    let plain = run(&host, ["tenant", "show", "acme"]);
    assert!(plain.code == 1 && !steers(&plain.stderr), "{plain:?}");
    assert_eq!(plain.stderr.lines().filter(|line| line.starts_with("error:")).count(), 1);
    let shown = run(&host, ["tenant", "show", "acme", "--json"]);
    assert!(!steers(&shown.stdout), "{shown:?}");
}

// --- tenants and keys --------------------------------------------------------------------------------------------

fn made() -> Reply {
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

// --- servers and deployments -------------------------------------------------------------------------------------

#[test]
fn deploy_sends_what_was_asked_for_and_prints_the_url() {
    let host = always(|| {
        let surface = json!({ "tools": [{ "name": "double_price" }] });
        answer(
            201,
            json!({ "server": "prices", "deployment": "d1", "url": "http://h/acme/prices/mcp", "surface": surface }),
        )
    });
    let plain = run(&host, ["deploy", &example("prices.js"), "--server", "acme/prices"]);
    assert_eq!((plain.code, plain.stdout.as_str()), (0, "http://h/acme/prices/mcp\n"));
    assert_snapshot!(plain.stderr, @"`acme/prices` runs deployment d1 with 1 tool");
    let asked = host.asked().remove(0);
    assert_eq!(asked.target, "/admin/v1/tenants/acme/servers/prices/deployments");
    assert_eq!(asked.json()["manifest"], json!({ "file_name": "prices.js" }));
    assert_eq!(asked.json()["source"], std::fs::read_to_string(example("prices.js")).unwrap());

    let file = example("prices.js");
    let args =
        ["deploy", &file, "--server", "acme/prices", "--boundary", "session", "--jit", "--limit", "cpu_ms=9", "--json"];
    let run_ = run(&host, args);
    assert_eq!(
        output(&run_),
        json!({ "server": "acme/prices", "deployment": "d1", "url": "http://h/acme/prices/mcp" })
    );
    let manifest = json!({ "file_name": "prices.js", "boundary": "session", "jit": true, "limits": { "cpu_ms": 9 } });
    assert_eq!(host.asked()[0].json()["manifest"], manifest);
}

#[test]
fn a_file_that_cannot_be_deployed_is_told_apart() {
    let host = always(|| refusal(422, "init_failed", "SyntaxError: nope (server.js:1:1)", None));
    let dir = Dir::new();
    let (script, typed) = (dir.file("server.js", "nope nope"), dir.file("server.ts", "x"));
    let refused = run(&host, ["deploy", &script, "--server", "acme/x", "--json"]);
    assert_eq!((refused.code, output(&refused)["error"]["code"].as_str()), (1, Some("init_failed")));
    host.asked();
    for (file, code) in [(typed.as_str(), 64), ("/no/such/file.js", 64), ("/dev/zero", 1)] {
        let run = run(&host, ["deploy", file, "--server", "acme/x", "--json"]);
        assert_eq!(run.code, code, "{run:?}");
        assert!(output(&run)["error"]["message"].as_str().unwrap().contains(file));
    }
    std::fs::write(dir.path("bytes.js"), b"\xff\xfe").unwrap();
    let bytes = run(&host, ["deploy", dir.path("bytes.js").to_str().unwrap(), "--server", "acme/x"]);
    assert!(bytes.code == 64 && bytes.stderr.contains("is not UTF-8"), "{bytes:?}");
    assert!(host.asked().is_empty());
}

fn deployment(id: &str, current: bool) -> Value {
    json!({ "id": id, "server": "prices", "current": current, "created_at": 1_785_196_800, "created_by": "k1", "digest": "00", "size": 12, "manifest": { "wall": "isolate", "boundary": "call" } })
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
       deployment  deployed              by  wall     boundary  bytes
       d3          2026-07-28T00:00:00Z  k1  isolate  call      12
    *  d2          2026-07-28T00:00:00Z  k1  isolate  call      12
       d1          2026-07-28T00:00:00Z  k1  isolate  call      12
    ");
    let first = always(|| answer(200, json!({ "deployments": [deployment("d1", true)], "next": null })));
    let none = run(&first, ["rollback", "acme/prices", "--json"]);
    assert_eq!((none.code, output(&none)["error"]["code"].as_str()), (1, Some("not_found")));
}

#[test]
fn servers_are_listed_shown_and_deleted() {
    let server = || json!({ "tenant": "acme", "name": "prices", "url": "http://h/acme/prices/mcp", "created_at": 0, "current": deployment("d1", true) });
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
    server  url                       wall     boundary  deployment  deployed
    prices  http://h/acme/prices/mcp  isolate  call      d1          2026-07-28T00:00:00Z
    ");
    let shown = run(&host, ["server", "show", "acme/prices"]);
    assert!(shown.stdout.contains("offers.tools               a, b\n"), "{shown:?}");
    let deleted = run(&host, ["server", "delete", "acme/prices", "--json"]);
    assert_eq!((deleted.code, output(&deleted)), (0, json!({ "deleted": "acme/prices" })));
}

// --- calls -------------------------------------------------------------------------------------------------------

fn receipt() -> Value {
    json!({ "wall": "isolate", "boundary": "call", "jit": false, "limits": { "cpu_ms": 50, "memory_mb": 128 }, "cpu_us": 1500, "time_us": 2500, "peak_memory_kb": 64, "host_calls": 0 })
}

fn result(value: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "result": value })
}

fn good() -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": "{\"doublePrice\":90}" }], "structuredContent": { "doublePrice": 90 }, "_meta": { "bulkhead/receipt": receipt() } })
}

#[test]
fn a_call_is_a_modern_request() {
    let host = always(|| answer(200, result(good())));
    let plain = run(&host, ["call", "acme/prices", "double_price", r#"{"price": 45}"#]);
    assert_eq!((plain.code, plain.stdout.as_str()), (0, "{\"doublePrice\":90}\n"));
    assert_snapshot!(plain.stderr, @"receipt: wall isolate, boundary call, jitless; 1.5 ms CPU of 50, 2.5 ms, 64 KiB memory of 128 MiB, 0 host calls");
    let asked = host.asked().remove(0);
    assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/acme/prices/mcp"));
    for (name, value) in [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "double_price"),
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(asked.header(name), Some(value), "{name}");
    }
    let params = &asked.json()["params"];
    assert_eq!((&params["name"], &params["arguments"]), (&json!("double_price"), &json!({ "price": 45 })));
    assert_eq!(params["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(params["_meta"]["io.modelcontextprotocol/clientCapabilities"], json!({}));
    assert_eq!(params["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "bulkhead");

    let json = prepared(&host, ["call", "acme/prices", "double_price", "-", "--json"]).with_stdin(r#"{"price": 2}"#);
    assert_eq!((json.code, json.stderr.as_str()), (0, ""));
    assert_eq!(output(&json)["receipt"], receipt());
    assert_eq!(output(&json)["result"]["structuredContent"], json!({ "doublePrice": 90 }));
    assert!(output(&json)["result"].get("_meta").is_none());
    assert_eq!(host.asked()[0].json()["params"]["arguments"], json!({ "price": 2 }));
}

#[test]
fn a_call_hears_the_log_on_a_stream() {
    let host = always(|| {
        let log = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": "doubling\n45\x1b" } });
        let events = format!(":\n\nid: 1\ndata: \n\ndata: {log}\n\ndata: {}\n\n", result(good()));
        text("text/event-stream", &events)
    });
    let run_ = run(&host, ["call", "acme/prices", "double_price"]);
    assert_eq!((run_.code, run_.stdout.as_str()), (0, "{\"doublePrice\":90}\n"));
    assert!(run_.stderr.starts_with("info: doubling\n  45\u{fffd}\nreceipt: "), "{run_:?}");
    let cut = always(|| text("text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n"));
    let cut = run(&cut, ["call", "acme/prices", "double_price", "--json"]);
    assert_eq!((cut.code, output(&cut)["error"]["code"].as_str()), (2, Some("bad_answer")));
}

#[test]
fn a_call_that_failed_is_1_with_a_code() {
    let failed = |meta: Value| {
        result(json!({ "content": [{ "type": "text", "text": "it broke" }], "isError": true, "_meta": meta }))
    };
    let error = json!({ "code": "cpu_limit", "message": "the call used more than 50 ms of CPU time (`cpu_ms`)" });
    let limit = failed(json!({ "bulkhead/error": error, "bulkhead/receipt": receipt() }));
    let own = failed(json!({}));
    let rpc = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32602, "message": "there is no tool `x`" } });
    let quota = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32029, "message": "used up", "data": { "code": "quota_exceeded" } } });
    let asks = result(json!({ "resultType": "input_required", "inputRequests": {} }));
    for (status, body, code, message) in [
        (200, limit.clone(), "cpu_limit", "the call used more than 50 ms of CPU time (`cpu_ms`)"),
        (200, own, "tool_error", "it broke"),
        (200, rpc, "bad_arguments", "there is no tool `x`"),
        (429, quota, "quota_exceeded", "used up"),
        (200, asks, "input_required", "the tool asks its caller, which a command line cannot answer"),
    ] {
        let host = FakeHost::start(move |_| answer(status, body.clone()));
        let run = run(&host, ["call", "acme/prices", "x", "--json"]);
        assert_eq!((run.code, run.stderr.as_str()), (1, ""), "{run:?}");
        let object = output(&run);
        assert_eq!(object.as_object().unwrap().keys().collect::<Vec<_>>(), ["error"]);
        assert_eq!(object["error"].as_object().unwrap().keys().collect::<Vec<_>>(), ["code", "hint", "message"]);
        assert_eq!(
            (object["error"]["code"].as_str(), object["error"]["message"].as_str()),
            (Some(code), Some(message))
        );
    }
    let host = FakeHost::start(move |_| answer(200, limit.clone()));
    let text = run(&host, ["call", "acme/prices", "x"]);
    assert_snapshot!(text.stderr, @r"
    receipt: wall isolate, boundary call, jitless; 1.5 ms CPU of 50, 2.5 ms, 64 KiB memory of 128 MiB, 0 host calls
    error: cpu_limit: the call used more than 50 ms of CPU time (`cpu_ms`)
    ");
}

#[test]
fn arguments_that_are_not_json_are_64() {
    let host = always(made);
    let run_ = run(&host, ["call", "acme/prices", "double_price", "{price: 45}"]);
    assert_eq!((run_.code, run_.stdout.as_str()), (64, ""));
    assert_snapshot!(run_.stderr, @r#"
    error: the arguments are not JSON: key must be a string at line 1 column 2
    hint: quote them for the shell: '{"price": 45}'
    "#);
    assert!(host.asked().is_empty());
}

#[test]
fn arguments_that_a_tool_wants_in_headers_go_there() {
    let host = FakeHost::start(|asked: &Asked| {
        match (asked.json()["method"].as_str(), asked.header("mcp-param-region")) {
            (Some("tools/list"), _) => {
                let schema = json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
                answer(200, result(json!({ "tools": [{ "name": "t", "inputSchema": schema }] })))
            }
            (_, Some("eu")) => answer(200, result(good())),
            _ => answer(
                400,
                json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32020, "message": "header `mcp-param-region` is missing" } }),
            ),
        }
    });
    let run = run(&host, ["call", "acme/prices", "t", r#"{"region": "eu"}"#]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(host.asked().len(), 3);
}

#[test]
fn other_content_is_named() {
    let content = json!([
        { "type": "image", "mimeType": "image/png", "data": "AAAAAAAA" },
        { "type": "resource_link", "uri": "file:///x" },
        { "type": "resource", "resource": { "uri": "test://a", "text": "inside\r\x1b[0m" } },
        { "type": "hologram" },
    ]);
    let host = FakeHost::start(move |_| answer(200, result(json!({ "content": content }))));
    assert_eq!(
        run(&host, ["call", "acme/x", "t"]).stdout,
        "[image, image/png, about 6 bytes]\n[resource file:///x]\ninside\u{fffd}\u{fffd}[0m\n[hologram]\n"
    );
}

#[test]
fn tools_are_listed_page_by_page() {
    let host = FakeHost::start(|asked: &Asked| match asked.json()["params"]["cursor"].as_str() {
        None => answer(
            200,
            result(
                json!({ "tools": [{ "name": "a", "description": "First.\nMore.", "inputSchema": { "properties": { "x": {}, "y": {} }, "required": ["x"] } }], "nextCursor": "2" }),
            ),
        ),
        Some(_) => answer(200, result(json!({ "tools": [{ "name": "b", "inputSchema": {} }] }))),
    });
    assert_snapshot!(run(&host, ["tools", "acme/prices"]).stdout, @r"
    tool  arguments  description
    a     x, y?      First. More.
    b     -          -
    ");
    let json = run(&host, ["tools", "acme/prices", "--json"]);
    assert_eq!(output(&json)["tools"].as_array().unwrap().len(), 2);
}

// --- logs and records --------------------------------------------------------------------------------------------

#[test]
fn logs_are_lines() {
    let host = always(|| {
        let line = json!({ "time": "2026-07-28T09:30:00.125Z", "call": "1-1", "level": "info", "text": "a\nb\x1b[2J" });
        text("application/x-ndjson", &format!("{line}\n\n{{\"lost\":true}}\n"))
    });
    let plain = run(&host, ["logs", "acme/prices", "--tail", "5", "-f"]);
    assert_eq!(plain.code, 0);
    assert_snapshot!(plain.stdout, @r"
    2026-07-28T09:30:00.125Z  info     a
      b�[2J
    (lines were lost: they came too quickly)
    ");
    assert_eq!(host.asked()[0].target, "/admin/v1/tenants/acme/servers/prices/logs?tail=5&follow=true");
    let json = run(&host, ["logs", "acme/prices", "--json"]);
    let lines: Vec<Value> = json.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), lines[0]["text"].as_str()), (2, Some("a\nb\x1b[2J")));
    assert_eq!(prepared(&host, ["logs", "acme/prices"]).into_closed_pipe().code, 0);
}

#[test]
fn calls_are_a_table_or_lines_of_json() {
    let call = |name: &str| json!({ "time": "2026-07-28T09:30:00.125Z", "server": "prices", "method": "tools/call", "name": name, "outcome": "ok", "cpu_us": 1234, "time_us": 5678, "peak_memory_kb": 9, "caller": "k1" });
    let host = FakeHost::start(move |asked: &Asked| match asked.target.contains("cursor=more") {
        false => answer(200, json!({ "calls": [call("a"), call("b")], "next": "more" })),
        true => answer(200, json!({ "calls": [call("c")], "next": null })),
    });
    let plain = run(&host, ["calls", "acme", "--server", "prices", "--outcome", "ok", "--limit", "3"]);
    assert_snapshot!(plain.stdout, @r"
    time                      server            what                      outcome             cpu ms        ms       KiB  caller
    2026-07-28T09:30:00.125Z  prices            a                         ok                     1.2       5.7         9  k1
    2026-07-28T09:30:00.125Z  prices            b                         ok                     1.2       5.7         9  k1
    2026-07-28T09:30:00.125Z  prices            c                         ok                     1.2       5.7         9  k1
    ");
    let targets: Vec<_> = host.asked().into_iter().map(|asked| asked.target).collect();
    assert_eq!(targets[0], "/admin/v1/tenants/acme/calls?server=prices&outcome=ok&limit=3");
    assert_eq!(targets[1], "/admin/v1/tenants/acme/calls?server=prices&outcome=ok&limit=1&cursor=more");
    let json = run(&host, ["calls", "acme", "--json"]);
    assert_eq!(json.stdout.lines().count(), 3);
    assert!(json.stdout.lines().all(|line| serde_json::from_str::<Value>(line).unwrap()["cpu_us"] == 1234));
}

#[test]
fn an_audit_log_that_is_not_there_is_no_sound_one() {
    let dir = Dir::new();
    let run = bulkhead(["audit-log", "verify", "--data", dir.path("nowhere").to_str().unwrap(), "--json"]);
    assert_ne!(run.code, 0, "{run:?}");
    assert!(output(&run)["error"]["code"].as_str().unwrap().starts_with("audit_"), "{run:?}");
}
