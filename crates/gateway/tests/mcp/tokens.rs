//! A token of an issuer, all the way from the socket to the tool.

#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../issuer/mod.rs"]
mod issuer;

use crate::host::{self, tenant_at, test};
use gateway::Settings;
use gateway::auth::OAuthSettings;
use issuer::{Issuer, SigningKey, now};
use policy::Boundary;
use registry::CallFilter;
use serde_json::{Value, json};

const SOURCE: &str = r#"export default { tools: {
    who: { run: (_, ctx) => JSON.stringify([ctx.client, Object.keys(ctx)]) },
    other: { run: () => 1 },
} }"#;

#[test]
fn a_token_calls_what_it_is_for_and_goes_no_further() {
    test(async {
        let key = SigningKey::ed("k");
        let issuer = Issuer::with_keys(&[&key]).await;
        let mut settings = Settings::default();
        settings.auth.oauth = Some(OAuthSettings { leeway_s: 0, ..OAuthSettings::new(&issuer.url) });
        let dir = tempfile::tempdir().unwrap();
        let running = host::start(dir.path(), settings, host::pools().await).await;
        let tenant = tenant_at(&running, "acme");
        tenant_at(&running, "evil");
        tenant.deploy("s", Boundary::Call, SOURCE).await;
        let (base, mut client) = (tenant.base.clone(), tenant.at("s"));

        // Who comes without one is told where to get it.
        client.unset("authorization");
        let stranger = client.modern("tools/list", json!({})).await;
        assert_eq!(stranger.status, 401);
        let challenge = stranger.headers["www-authenticate"].to_str().unwrap().to_owned();
        let metadata = format!("{base}/.well-known/oauth-protected-resource/acme/s/mcp");
        assert!(challenge.contains(&format!("resource_metadata=\"{metadata}\"")), "{challenge}");
        let metadata: Value = client.http.get(&metadata).send().await.unwrap().json().await.unwrap();
        assert_eq!(metadata["resource"], format!("{base}/acme/s/mcp"));
        assert_eq!(metadata["authorization_servers"], json!([issuer.url]));

        let token = |audience: &str, tenant: &str, until: u64| {
            key.token(&json!({ "iss": issuer.url, "sub": "ann", "tenant": tenant, "aud": audience, "exp": until,
                               "nbf": now() - 600, "iat": now(), "scope": "mcp:call" }))
        };
        let resource = format!("{base}/acme/s/mcp");
        let good = token(&resource, "acme", now() + 600);
        client.set("authorization", &format!("Bearer {good}"));
        let told = client.modern("tools/call", json!({ "name": "who" })).await;
        let text = told.result()["content"][0]["text"].as_str().unwrap();
        assert!(!text.contains(&good[..20]) && !text.contains("ann"), "the code sees neither: {text}");
        let filter = CallFilter { limit: 1, ..CallFilter::default() };
        let line = running.app.registry().audit().recent(&filter).unwrap().calls.remove(0);
        assert_eq!((line.caller.as_str(), line.outcome.as_str()), (format!("oauth:{}#ann", issuer.url).as_str(), "ok"));

        let elsewhere = format!("{base}/acme/other/mcp");
        for (bad, status) in [
            (token(&elsewhere, "acme", now() + 600), 401),
            (token(&resource, "acme", now() - 600), 401),
            (token(&resource, "evil", now() + 600), 404),
            (
                SigningKey::ed("k").token(&json!({ "iss": issuer.url, "sub": "ann", "tenant": "acme", "aud": resource,
                                               "exp": now() + 600, "scope": "mcp:call" })),
                401,
            ),
        ] {
            client.set("authorization", &format!("Bearer {bad}"));
            let refused = client.modern("tools/call", json!({ "name": "other" })).await;
            assert_eq!(refused.status, status, "{refused:?}");
        }

        // A stream that a token opened does not outlive it by more than a heartbeat; here it is told nothing more.
        client.set("authorization", &format!("Bearer {}", token(&resource, "acme", now() + 2)));
        let mut response = client.listen().await;
        assert_eq!(response.status(), 200);
        response.chunk().await.unwrap().unwrap();
        let mut rest = String::new();
        while let Some(chunk) = response.chunk().await.unwrap() {
            rest.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        assert!(!rest.contains("list_changed"), "{rest}");
        running.shutdown().await;
    });
}
