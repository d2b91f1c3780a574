//! Which servers may bind a secret or a provider, and to which hosts: an admin says so, and a deploy key cannot.

use crate::stage::{Stage, in_time, servers};
use registry::Role;
use serde_json::{Value, json};

const SECRET: &str = "/admin/v1/tenants/acme/secrets/TOKEN";
const PROVIDER: &str = "/admin/v1/tenants/acme/providers/hub";

/// A manifest that binds the secret `TOKEN`, or a token of the provider `hub`, to hosts.
fn bound(hosts: &[&str], connection: bool) -> String {
    let (hosts, connection) = (json!(hosts), if connection { "connection = \"hub\"\n" } else { "" });
    format!("egress = {hosts}\n[[secrets]]\nname = \"TOKEN\"\nhosts = {hosts}\nheader = \"x-key\"\n{connection}")
}

async fn ok(stage: &Stage, method: &str, path: &str, body: Value) -> Value {
    let seen = stage.ask(&stage.acme.admin, method, path, Some(body)).await;
    assert!(seen.status.is_success(), "{}", seen.text());
    seen.json()
}

/// A key for one server deploys a manifest that binds any secret of the tenant to its own host.
#[tokio::test]
async fn a_deploy_key_binds_no_secret_that_its_server_is_not_allowed() {
    in_time(async {
        let stage = Stage::new().await;
        let (_, scoped) = stage.key(Some("acme"), Role::Deploy, servers(&["mine"]), None);
        let key = scoped.expose();
        ok(&stage, "PUT", SECRET, json!({ "value": "sk-live-7f3a91c2d4" })).await;
        let settings =
            json!({ "authorize_url": "https://hub.example/a", "token_url": "https://hub.example/t", "client_id": "c" });
        ok(&stage, "PUT", PROVIDER, json!({ "settings": settings })).await;
        for (connection, what, command) in [
            (
                false,
                "the secret `TOKEN`",
                "bulkhead secret allow acme TOKEN --for mine --to 'evil.example.com' --in 'header:x-key'",
            ),
            (
                true,
                "the provider `hub`",
                "bulkhead provider allow acme/hub --for mine --to 'evil.example.com' --in 'header:x-key'",
            ),
        ] {
            let draft = stage.draft("mine", "// theft", &bound(&["evil.example.com"], connection));
            let refused = stage.upload(key, &draft).await;
            assert_eq!((refused.status.as_u16(), refused.code()), (403, "secret_not_allowed".to_owned()));
            let text = refused.json()["error"].to_string();
            for part in [what, "`mine`", "`evil.example.com`", command] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
        assert_eq!(stage.wall.asked(), 0, "its code did not run");
        assert!(stage.registry.directory().server("acme", "mine").is_none());
        // A deploy key does not allow itself anything.
        for (path, body) in [
            (SECRET, json!({ "policy": { "mine": { "evil.example.com": ["header:x-key"] } } })),
            (PROVIDER, json!({ "policy": { "mine": { "evil.example.com": ["header:x-key"] } } })),
        ] {
            for deployer in [key, &stage.acme.deploy] {
                assert_eq!(stage.ask(deployer, "PATCH", path, Some(body.clone())).await.status.as_u16(), 403);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_binding_fits_into_its_policy_or_is_refused() {
    in_time(async {
        let stage = Stage::new().await;
        let key = &stage.acme.deploy;
        let try_it = async |server: &str, hosts: &[&str]| {
            let seen = stage.upload(key, &stage.draft(server, &format!("// {hosts:?}"), &bound(hosts, false))).await;
            if seen.status.is_success() { "ok".to_owned() } else { seen.code() }
        };
        let missing = stage.upload(key, &stage.draft("mine", "//", &bound(&["api.example.com"], false))).await;
        assert_eq!(missing.code(), "secret_not_allowed");
        let hint = missing.json()["error"]["hint"].as_str().unwrap().to_owned();
        let command = "bulkhead secret set acme TOKEN --for mine --to 'api.example.com' --in 'header:x-key'";
        assert!(hint.contains(command), "{hint}");
        let at = json!(["header:x-key"]);
        let policy =
            json!({ "mine": { "api.example.com": at, "*.example.org": at }, "*": { "shared.example.net:8443": at } });
        let made = ok(&stage, "PUT", SECRET, json!({ "value": "sk-live-7f3a91c2d4", "policy": policy })).await;
        assert_eq!(made["policy"], policy);
        for hosts in [
            &["api.example.com"][..],
            &["api.example.com", "a.example.org", "*.b.example.org"],
            &["*.example.org"],
            &["shared.example.net:8443"],
        ] {
            assert_eq!(try_it("mine", hosts).await, "ok", "{hosts:?}");
        }
        for hosts in [
            &["http://api.example.com"][..],
            &["api.example.com:8443"],
            &["*.example.com"],
            &["example.org"],
            &["api.example.com", "evil.example.com"],
            &["shared.example.net"],
        ] {
            assert_eq!(try_it("mine", hosts).await, "secret_not_allowed", "{hosts:?}");
        }
        assert_eq!(try_it("other", &["api.example.com"]).await, "secret_not_allowed");
        assert_eq!(try_it("other", &["shared.example.net:8443"]).await, "ok");
        let list = stage.get(&stage.acme.admin, "/admin/v1/tenants/acme/secrets").await.json();
        assert_eq!(list["secrets"][0]["policy"], made["policy"]);
        // What does not fit any more is not gone back to.
        let current = stage.registry.directory().server("acme", "mine").unwrap().current.clone().unwrap();
        assert_eq!(try_it("mine", &["api.example.com"]).await, "ok");
        ok(&stage, "PATCH", SECRET, json!({ "policy": { "*": null } })).await;
        let path = format!("/admin/v1/tenants/acme/servers/mine/deployments/{}/activate", current.id);
        assert_eq!(stage.ask(key, "POST", &path, None).await.code(), "secret_not_allowed");
        for (bad, status) in [
            (json!({ "policy": { "mine": { "*": at } } }), 422),
            (json!({ "policy": { "mine": {} } }), 422),
            (json!({ "policy": { "mine": { "api.example.com": [] } } }), 422),
            (json!({ "policy": { "mine": { "api.example.com": ["body"] } } }), 422),
            (json!({ "policy": { "mine": ["api.example.com"] } }), 422),
            (json!({ "policy": { "MINE": { "api.example.com": at } } }), 422),
            (json!({ "policy": { "mine": { "https://api.example.com/v1": at } } }), 422),
            (json!({ "policy": { "nobody": null } }), 422),
            (json!({}), 422),
        ] {
            let seen = stage.ask(&stage.acme.admin, "PATCH", SECRET, Some(bad)).await;
            assert_eq!(seen.status.as_u16(), status, "{}", seen.text());
        }
    })
    .await;
}

/// A place that a host has already is not lost by the command that allows another one.
#[tokio::test]
async fn the_command_keeps_what_a_host_has() {
    in_time(async {
        let stage = Stage::new().await;
        let policy = json!({ "mine": { "api.example.com": ["query:key"] } });
        ok(&stage, "PUT", SECRET, json!({ "value": "sk-live-7f3a91c2d4", "policy": policy })).await;
        let refused =
            stage.upload(&stage.acme.deploy, &stage.draft("mine", "//", &bound(&["api.example.com"], false))).await;
        let hint = refused.json()["error"]["hint"].as_str().unwrap().to_owned();
        let command = "--for mine --to 'api.example.com' --in 'header:x-key' --in 'query:key'`";
        assert!(hint.contains(command), "{hint}");
    })
    .await;
}

/// The door reaches no provider on this machine, so none is set.
#[tokio::test]
async fn a_provider_on_this_machine_is_refused() {
    in_time(async {
        let stage = Stage::new().await;
        for (url, told) in [
            ("https://localhost/t", "`token_url`"),
            ("https://127.0.0.1:8443/t", "`token_url`"),
            ("https://[::1]/t", "`token_url`"),
            ("http://hub.example/t", "token_url"),
        ] {
            let settings = json!({ "authorize_url": "https://hub.example/a", "token_url": url, "client_id": "c" });
            let seen = stage.ask(&stage.acme.admin, "PUT", PROVIDER, Some(json!({ "settings": settings }))).await;
            assert_eq!((seen.status.as_u16(), seen.code()), (422, "bad_provider".to_owned()), "{url}");
            assert!(seen.text().contains(told), "{}", seen.text());
        }
    })
    .await;
}

/// Nobody is asked to connect to what no server may use.
#[tokio::test]
async fn there_is_no_link_to_a_provider_that_no_server_may_use() {
    in_time(async {
        let stage = Stage::new().await;
        let settings =
            json!({ "authorize_url": "https://hub.example/a", "token_url": "https://hub.example/t", "client_id": "c" });
        ok(&stage, "PUT", PROVIDER, json!({ "settings": settings })).await;
        let path = format!("{PROVIDER}/connect");
        let refused = stage.ask(&stage.acme.admin, "POST", &path, None).await;
        assert_eq!((refused.status.as_u16(), refused.code()), (422, "secret_not_allowed".to_owned()));
        assert!(
            refused.text().contains("bulkhead provider allow acme/hub --for SERVER --to HOST"),
            "{}",
            refused.text()
        );
        let policy = json!({ "mine": { "api.example.com": ["credentials"] } });
        ok(&stage, "PATCH", PROVIDER, json!({ "policy": policy })).await;
        let link = stage.ask(&stage.acme.admin, "POST", &path, None).await.json();
        assert_eq!(link["policy"], policy);
        let (_, ticket) = link["url"].as_str().unwrap().split_once("/connect/").unwrap();
        let page = stage.get("", &format!("/connect/{ticket}")).await.text();
        assert!(page.contains("mine, at api.example.com"), "{page}");
    })
    .await;
}
