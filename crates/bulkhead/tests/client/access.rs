//! Finding the host, and being let in.

use crate::support::fake::{FakeHost, Reply, json as answer, refusal, text};
use crate::support::{Dir, bulkhead};
use crate::{KEY, always, output, run};
use insta::assert_snapshot;
use serde_json::json;

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
