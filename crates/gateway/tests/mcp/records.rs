//! What is left of a call when it is over, however it ended; and what is left to a key that is none any more.

use crate::host::{Tenant, host_actor, tenant, test};
use policy::Boundary;
use registry::{CallFilter, Scope, TenantPatch};
use serde_json::{Value, json};
use std::time::Duration;

const SOURCE: &str = r#"export default { tools: {
    add: { input: { type: "object", properties: { a: { type: "number" } } }, run: ({ a }) => ({ sum: a + 1 }) },
    spin: { run: () => { for (;;); } },
    wait: { run: () => new Promise(done => setTimeout(done, 20_000)) },
} }"#;

/// The tenant's calls, oldest first.
pub fn lines(tenant: &Tenant) -> Vec<Value> {
    let filter = CallFilter { tenant: Some(tenant.name.clone()), limit: 1000, ..CallFilter::default() };
    let calls = tenant.app.registry().audit().recent(&filter).unwrap().calls;
    calls.iter().rev().map(|call| serde_json::from_str(call.json.get()).unwrap()).collect()
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let looks = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), looks).await.unwrap_or_else(|_| panic!("not in time: {what}"));
}

#[test]
fn every_call_leaves_a_line_however_it_ends() {
    test(async {
        let tenant = tenant().await;
        tenant.deploy("s", Boundary::Call, SOURCE).await;
        let client = tenant.at("s");
        let call = async |name: &str, arguments: Value| {
            client.modern("tools/call", json!({ "name": name, "arguments": arguments })).await
        };
        assert_eq!(call("add", json!({ "a": 1 })).await.status, 200);
        assert_eq!(call("add", json!({ "a": "x" })).await.result()["isError"], true);
        assert_eq!(call("spin", json!({})).await.result()["_meta"]["bulkhead/error"]["code"], "cpu_limit");
        // Somebody who hangs up.
        let impatient = tokio::time::timeout(Duration::from_secs(3), call("wait", json!({}))).await;
        assert!(impatient.is_err());
        until("the fourth line", || lines(&tenant).len() == 4).await;
        let lines = lines(&tenant);
        let seen: Vec<_> = lines.iter().map(|line| (line["name"].as_str(), line["outcome"].as_str())).collect();
        let wanted = [("add", "ok"), ("add", "bad_arguments"), ("spin", "cpu_limit"), ("wait", "cancelled")];
        assert_eq!(seen, wanted.map(|(name, outcome)| (Some(name), Some(outcome))));
        // Only what ran was known by a name, and a runaway is charged what it used.
        assert_eq!(lines.iter().map(|line| line["call"].is_string()).collect::<Vec<_>>(), [true, false, true, true]);
        assert!(lines[2]["cpu_us"].as_u64().unwrap() >= 1_000_000, "{}", lines[2]);
        assert!(lines.iter().all(|line| line["arguments"].is_null() && line["result"].is_null()));
        assert!(lines.iter().all(|line| line["arguments_sha256"].as_str().unwrap().len() == 64));
    });
}

#[test]
fn arguments_and_results_are_kept_where_the_tenant_wants_it() {
    test(async {
        let tenant = tenant().await;
        tenant.deploy("s", Boundary::Server, SOURCE).await;
        let client = tenant.at("s");
        let call = async || client.modern("tools/call", json!({ "name": "add", "arguments": { "a": 41 } })).await;
        call().await;
        for recording in [true, false] {
            let patch = TenantPatch { recording: Some(recording), ..TenantPatch::default() };
            tenant.app.registry().update_tenant(&host_actor(), &tenant.name, patch).unwrap();
            call().await;
        }
        let kept: Vec<_> = lines(&tenant).iter().map(|line| json!([line["arguments"], line["result"]])).collect();
        let nothing = json!([null, null]);
        assert_eq!(kept, [nothing.clone(), json!([{ "a": 41 }, { "sum": 42 }]), nothing]);
    });
}

#[test]
fn names_of_calls_do_not_tell_how_many_there_were() {
    test(async {
        let tenant = tenant().await;
        tenant.deploy("s", Boundary::Server, SOURCE).await;
        for _ in 0..20 {
            tenant.at("s").modern("tools/call", json!({ "name": "add", "arguments": { "a": 1 } })).await;
        }
        let names: Vec<String> = lines(&tenant).iter().map(|line| line["call"].as_str().unwrap().to_owned()).collect();
        assert!(names.iter().all(|name| name.len() == 20));
        let sorted = {
            let mut sorted = names.clone();
            sorted.sort();
            sorted
        };
        assert_ne!(names, sorted);
        for at in 0..20 {
            let digits: std::collections::BTreeSet<_> = names.iter().map(|name| name.as_bytes()[at]).collect();
            assert!(digits.len() > 3, "digit {at} of {names:?}");
        }
    });
}

#[test]
fn a_key_that_is_revoked_hears_nothing_more() {
    test(async {
        let tenant = tenant().await;
        tenant.deploy("s", Boundary::Server, SOURCE).await;
        let mut client = tenant.at("s");
        client.set("authorization", &format!("Bearer {}", tenant.key_with(Scope::default())));
        let mut response = client.listen().await;
        let first = response.chunk().await.unwrap().unwrap();
        assert!(first.windows(12).any(|part| part == b"acknowledged"), "{first:?}");

        tenant.revoke();
        tenant.deploy("s", Boundary::Server, "export default { tools: { other: { run() {} } } }").await;
        // The stream ends, without a word of the change.
        let mut rest = Vec::new();
        while let Some(chunk) = response.chunk().await.unwrap() {
            rest.extend_from_slice(&chunk);
        }
        let rest = String::from_utf8(rest).unwrap();
        assert!(!rest.contains("list_changed"), "{rest}");
    });
}
