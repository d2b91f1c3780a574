//! Deployments come and go while calls run.

use crate::host::{tenant, test};
use policy::{Boundary, Limits};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

const DEPLOYS: u32 = 8;

fn source(version: u32) -> String {
    format!("export default {{ tools: {{ version: {{ run: () => {version} }} }} }}")
}

/// 200 calls a second, a new deployment now and then, and not one call that fails or hears of a version that was gone
/// before it began.
async fn no_call_fails(boundary: Boundary) {
    let tenant = Arc::new(tenant().await);
    let upload = async |version: u32| {
        let limits = Limits { cpu_ms: 1000, ..Limits::default() };
        let draft = tenant.draft("s", boundary, limits, &source(version)).await;
        let order = draft.order(tenant.app.registry(), &tenant.deploy_key);
        let url = format!("{}/admin/v1/tenants/{}/servers/s/deployments", tenant.base, tenant.name);
        let client = tenant.at("s").http;
        let request = client.post(url).bearer_auth(&tenant.deploy_key).header("content-type", "application/json");
        let made = request.body(order.to_string()).send().await.unwrap();
        assert_eq!(made.status(), 201, "{}", made.text().await.unwrap());
    };
    upload(0).await;
    let over = Arc::new(AtomicBool::new(false));
    let caller = tokio::spawn({
        let (tenant, over) = (tenant.clone(), over.clone());
        async move {
            let mut calls = Vec::new();
            let mut beat = tokio::time::interval(Duration::from_millis(5));
            // Fewer than a tenant's quota: on a busy machine they come more slowly instead.
            let places = Arc::new(Semaphore::new(32));
            while !over.load(Ordering::SeqCst) {
                beat.tick().await;
                let place = places.clone().acquire_owned().await.unwrap();
                let client = tenant.at("s");
                calls.push(tokio::spawn(async move {
                    let _place = place;
                    let got = client.modern("tools/call", json!({ "name": "version", "arguments": {} })).await;
                    got.result()["content"][0]["text"].as_str().and_then(|text| text.parse::<u32>().ok())
                }));
            }
            let mut versions = Vec::new();
            for call in calls {
                versions.push(call.await.unwrap().expect("a version"));
            }
            versions
        }
    });
    for version in 1..=DEPLOYS {
        tokio::time::sleep(Duration::from_millis(100)).await;
        upload(version).await;
        let now = tenant.at("s").modern("tools/call", json!({ "name": "version", "arguments": {} })).await;
        assert_eq!(now.result()["content"][0]["text"], version.to_string(), "what is acknowledged is what is called");
    }
    over.store(true, Ordering::SeqCst);
    let versions = caller.await.unwrap();
    assert!(versions.len() > 50, "{}", versions.len());
    assert!(versions.iter().any(|version| *version > 0) && versions.iter().all(|version| *version <= DEPLOYS));
}

#[test]
fn no_call_fails_while_a_server_is_deployed_again_and_again() {
    test(no_call_fails(Boundary::Call));
}

#[test]
fn nor_where_calls_share_a_compartment() {
    test(no_call_fails(Boundary::Server));
}
