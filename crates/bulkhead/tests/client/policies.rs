//! Which servers may use a secret or a provider, as the command line says it.

use crate::support::fake::{FakeHost, json as answer, nothing, refusal};
use crate::{prepared, run};
use serde_json::json;

#[test]
fn each_server_gets_each_host_with_the_places_named() {
    let host = FakeHost::start(|asked| {
        answer(200, json!({ "name": "TOKEN", "policy": asked.json()["policy"], "version": 1, "servers": [] }))
    });
    let allow = ["secret", "allow", "acme", "TOKEN", "--for", "a", "--for", "*", "--to", "x.example.com"];
    let usual = run(&host, allow);
    assert_eq!(usual.code, 0, "{usual:?}");
    assert_eq!(usual.stderr, "`TOKEN` may be used by: * to x.example.com; a to x.example.com\n");
    let places = ["--in", "query:key", "--in", "header:x-key as k={}"];
    let named = run(&host, allow.into_iter().chain(places));
    assert!(named.stderr.contains("a to x.example.com (query:key, header:x-key as k={})"), "{named:?}");
    let sent: Vec<_> = host.asked().iter().map(|asked| asked.json()["policy"]["a"]["x.example.com"].clone()).collect();
    assert_eq!(sent, [json!(["credentials"]), json!(["query:key", "header:x-key as k={}"])]);
    // What is wrong is said in words, before anything is sent.
    for (flag, value, told) in [
        ("--to", "*", "`*` is more than a host"),
        ("--in", "body", "`body` is no place in a request"),
        ("--for", "A", "a name has 1 to 63"),
    ] {
        let wrong = run(&host, allow.into_iter().chain([flag, value]));
        assert!(wrong.code == 64 && wrong.stderr.contains(told), "{wrong:?}");
    }
    assert_eq!(host.asked().len(), 0);
}

#[test]
fn what_is_not_there_is_set_first() {
    let host = FakeHost::start(|_| refusal(404, "not_found", "there is no such thing", None));
    for (command, hint) in [
        (
            ["secret", "allow", "acme", "TOKEN"].as_slice(),
            "`bulkhead secret set acme TOKEN --for a --to x.example.com --in query:key`",
        ),
        (
            &["provider", "allow", "acme/hub"],
            "`bulkhead provider set acme/hub … --for a --to x.example.com --in query:key`",
        ),
    ] {
        let more = ["--for", "a", "--to", "x.example.com", "--in", "query:key"];
        let refused = run(&host, command.iter().copied().chain(more));
        assert!(
            refused.code == 1 && refused.stderr.contains("set it first") && refused.stderr.contains(hint),
            "{refused:?}"
        );
    }
}

#[test]
fn deny_says_what_is_left() {
    let left = json!({ "*": { "x.example.com": ["credentials"] } });
    let host = FakeHost::start(move |_| answer(200, json!({ "name": "TOKEN", "policy": left })));
    let denied = run(&host, ["secret", "deny", "acme", "TOKEN", "--for", "a"]);
    assert!(denied.stderr.contains("every server may still use it"), "{denied:?}");
    assert!(denied.stderr.contains("`bulkhead secret deny acme TOKEN --for '*'`"), "{denied:?}");
    run(&host, ["provider", "deny", "acme/hub", "--for", "a", "--to", "x.example.com"]);
    let sent: Vec<_> = host.asked().iter().map(|asked| asked.json()["policy"].clone()).collect();
    assert_eq!(sent, [json!({ "a": null }), json!({ "a": { "x.example.com": null } })]);
}

#[test]
fn a_secret_that_goes_says_what_goes_with_it() {
    let policy = json!({ "a": { "*.example.com": ["credentials"] }, "b": { "y.example.com": ["query:key"] } });
    let list = json!({ "secrets": [{ "name": "TOKEN", "policy": policy }], "missing": [] });
    let host = FakeHost::start(move |asked| match asked.method.as_str() {
        "GET" => answer(200, list.clone()),
        _ => nothing(204),
    });
    let gone = run(&host, ["secret", "rm", "acme", "TOKEN"]);
    assert!(gone.stderr.contains("is removed, with its policy"), "{gone:?}");
    for command in [
        "`bulkhead secret set acme TOKEN --for a --to '*.example.com'`",
        "`bulkhead secret allow acme TOKEN --for b --to y.example.com --in query:key`",
    ] {
        assert!(gone.stderr.contains(command), "{command}: {gone:?}");
    }
}

#[test]
fn a_provider_that_no_server_may_use_says_so() {
    let host = FakeHost::start(|asked| {
        let policy = asked.json().get("policy").cloned().unwrap_or(json!({}));
        answer(200, json!({ "name": "hub", "policy": policy }))
    });
    let set = [
        "provider",
        "set",
        "acme/hub",
        "--authorize-url",
        "https://h/a",
        "--token-url",
        "https://h/t",
        "--client-id",
        "c",
    ];
    let unused = prepared(&host, set).with_stdin("client-secret\n").now();
    assert!(unused.stderr.contains("`bulkhead provider allow acme/hub --for SERVER --to HOST`"), "{unused:?}");
    assert!(!unused.stderr.contains("bulkhead connect"), "{unused:?}");
    let used = set.into_iter().chain(["--for", "a", "--to", "x.example.com"]);
    let used = prepared(&host, used).with_stdin("client-secret\n").now();
    assert!(used.stderr.contains("bulkhead connect acme/hub") && !used.stderr.contains("provider allow"), "{used:?}");
}
