//! Connecting to providers.

use crate::support::fake::{FakeHost, json as answer, refusal};
use crate::{output, prepared, run};
use serde_json::json;

/// Gives a link, and takes one code.
fn host() -> FakeHost {
    FakeHost::start(|asked| match asked.target.as_str() {
        "/admin/v1/tenants/acme/providers/hub/connect" => answer(200, json!({ "url": "http://h/connect/1" })),
        "/admin/v1/tenants/acme/providers/hub/confirm" if asked.json()["code"] == "BCDF-GHJK" => {
            answer(200, json!({ "connected": "hub" }))
        }
        "/admin/v1/tenants/acme/providers/hub/confirm" => {
            refusal(422, "wrong_code", "this is not the code; 4 more", None)
        }
        other => panic!("{other}"),
    })
}

#[test]
fn connect_prints_the_link_and_asks_for_the_code_until_it_is_right() {
    let host = host();
    let typed = prepared(&host, ["connect", "acme/hub"]).with_stdin("BBBB-BBBB\n BCDF-GHJK \n").now();
    assert_eq!((typed.code, typed.stdout.as_str()), (0, "http://h/connect/1\n"), "{typed:?}");
    assert!(
        typed.stderr.contains("type the code again") && typed.stderr.ends_with("you are connected to `hub`\n"),
        "{typed:?}"
    );
    assert_eq!(host.asked().len(), 3);
    // Without a code there is no connection, and the way to go on is said.
    let closed = prepared(&host, ["connect", "acme/hub"]).with_stdin("").now();
    assert_eq!(closed.code, 1, "{closed:?}");
    assert!(closed.stderr.contains("error: no_code: ") && closed.stderr.contains("acme/hub --code CODE"), "{closed:?}");
}

#[test]
fn a_script_has_the_link_first_and_shows_the_code_later() {
    let host = host();
    let link = run(&host, ["connect", "acme/hub", "--no-wait", "--json"]);
    assert_eq!((link.code, &output(&link)), (0, &json!({ "url": "http://h/connect/1" })));
    let wrong = run(&host, ["connect", "acme/hub", "--code", "BBBB-BBBB", "--json"]);
    assert_eq!((wrong.code, output(&wrong)["error"]["code"].as_str()), (1, Some("wrong_code")));
    let right = run(&host, ["connect", "acme/hub", "--code", "BCDF-GHJK", "--json"]);
    assert_eq!((right.code, &output(&right)), (0, &json!({ "connected": "hub" })));
    assert_eq!(run(&host, ["connect", "acme/hub", "--code", "BCDF-GHJK", "--no-wait"]).code, 64);
}
