//! A tool's `fetch`, from the isolate through the door to a real server on loopback, which only a developer's door lets it reach.

use crate::host::{Client, Got, pools, start_with, tenant_at, test};
use crate::records::lines;
use egress::{Dev, Door, Settings as DoorSettings};
use gateway::{Egress, Network, Settings};
use policy::Boundary;
use serde_json::json;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Requests as they came.
pub type Heard = Arc<Mutex<Vec<String>>>;

/// Answers every request with what it was asked, as JSON, and closes.
pub async fn upstream() -> (Heard, u16) {
    let heard = Heard::default();
    let kept = heard.clone();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let heard = kept.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).await.is_ok() {
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let length =
                    head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
                let mut body = vec![0; length.unwrap_or(0)];
                let _ = stream.read_exact(&mut body).await;
                heard.lock().unwrap().push(format!("{head}{}", String::from_utf8_lossy(&body)));
                let said = json!({ "head": head, "body": String::from_utf8_lossy(&body) }).to_string();
                let more = if head.starts_with("GET /large") { "x".repeat(200_000) } else { String::new() };
                let text = format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{said}{more}",
                    said.len() + more.len()
                );
                let _ = stream.write_all(text.as_bytes()).await;
            });
        }
    });
    (heard, port)
}

const SOURCE: &str = r#"export default { tools: {
    get: { run: async ({ url, init }) => { const r = await fetch(url, init); return { status: r.status, text: (await r.text()).slice(0, 400) }; } },
    why: { run: async ({ url }) => { try { await fetch(url); return "reached"; } catch (error) { return String(error.cause?.message ?? error.message); } } },
    fetchThenAsk: { run: async ({ url }, ctx) => { await fetch(url); return (await ctx.elicit({ key: "who", message: "Who?", requestedSchema: { type: "object" } })).action; } },
    large: { run: async ({ url }) => (await (await fetch(url)).text()).length },
} }"#;

pub async fn call(client: &Client, tool: &str, arguments: serde_json::Value) -> Got {
    client.modern("tools/call", json!({ "name": tool, "arguments": arguments })).await
}

pub fn text(got: &Got) -> String {
    got.result()["content"][0]["text"].as_str().unwrap().to_owned()
}

/// A call that ends with a question has reached what it has reached.
#[test]
fn whoever_asks_does_not_hide_where_it_has_been() {
    test(async {
        let port = upstream().await.1;
        let door: Door<Dev> = Door::dev(vec![port], DoorSettings::default()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let host = start_with(dir.path(), Settings::default(), pools().await, Some(Arc::new(door))).await;
        let tenant = tenant_at(&host, "acme");
        let rule = format!("egress = [\"http://127.0.0.1:{port}\"]");
        tenant.deploy_with("web", Boundary::Call, SOURCE, &rule).await;
        let can = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
        let arguments = json!({ "url": format!("http://127.0.0.1:{port}/") });
        let params = json!({ "name": "fetchThenAsk", "arguments": arguments });
        let got = tenant.at("web").modern_with("tools/call", params, can).await;
        assert_eq!(got.result()["resultType"], "input_required", "{got:?}");
        let line = lines(&tenant).pop().unwrap();
        assert_eq!((&line["outcome"], &line["hosts"]), (&json!("input_required"), &json!(["127.0.0.1"])), "{line}");
        host.shutdown().await;
    });
}

#[test]
fn a_tool_reaches_what_its_manifest_names_and_nothing_else() {
    test(async {
        let (port, other) = (upstream().await.1, upstream().await.1);
        let door: Door<Dev> = Door::dev(vec![port, other], DoorSettings::default()).unwrap();
        let open: Egress = Arc::new(door);
        let dir = tempfile::tempdir().unwrap();
        let host = start_with(dir.path(), Settings::default(), pools().await, Some(open)).await;
        let tenant = tenant_at(&host, "acme");
        let rule = format!("egress = [\"http://127.0.0.1:{port}\"]");
        for boundary in [Boundary::Call, Boundary::Server] {
            let server = format!("web-{}", boundary.as_str());
            tenant.deploy_with(&server, boundary, SOURCE, &rule).await;
            let client = tenant.at(&server);
            let base = format!("http://127.0.0.1:{port}");
            let init = json!({ "method": "POST", "body": "a body", "headers": { "x-of": "the tool" } });
            let got = call(&client, "get", json!({ "url": format!("{base}/path?q=1"), "init": init })).await;
            let said = text(&got);
            assert!(said.contains("POST /path?q=1 HTTP/1.1") && said.contains("x-of: the tool"), "{said}");
            assert!(said.contains("a body"), "{said}");
            let receipt = &got.result()["_meta"]["bulkhead/receipt"];
            assert_eq!(receipt["hosts"], json!(["127.0.0.1"]), "{receipt}");
            let large = text(&call(&client, "large", json!({ "url": format!("{base}/large") })).await);
            assert!(large.parse::<u32>().unwrap() > 200_000, "{large}");
            for url in [
                format!("http://127.0.0.1:{other}/"),
                "http://127.0.0.1:1/".to_owned(),
                format!("https://127.0.0.1:{port}/"),
                format!("http://localhost:{port}/"),
                "http://169.254.169.254/latest/meta-data/".to_owned(),
                "http://[::ffff:169.254.169.254]/".to_owned(),
            ] {
                let why = text(&call(&client, "why", json!({ "url": url })).await);
                assert!(why != "reached", "{url}: {why}");
            }
        }
        // Whatever its manifest says.
        let rule = "egress = [\"http://169.254.169.254\"]";
        tenant.deploy_with("metadata", Boundary::Call, SOURCE, rule).await;
        let why = text(&call(&tenant.at("metadata"), "why", json!({ "url": "http://169.254.169.254/" })).await);
        assert!(why.contains("never reached"), "{why}");
        tenant.deploy_with("closed", Boundary::Call, SOURCE, "").await;
        let why = text(&call(&tenant.at("closed"), "why", json!({ "url": format!("http://127.0.0.1:{port}/") })).await);
        assert!(why != "reached", "{why}");
        host.shutdown().await;
    });
}

#[test]
fn bytes_count_against_the_quota() {
    test(async {
        let (_, port) = upstream().await;
        let door: Door<Dev> = Door::dev(vec![port], DoorSettings::default()).unwrap();
        let open: Egress = Arc::new(door);
        let dir = tempfile::tempdir().unwrap();
        let host = start_with(dir.path(), Settings::default(), pools().await, Some(open)).await;
        let tenant = tenant_at(&host, "acme");
        let quota = registry::Quota { egress_bytes_per_min: Some(300_000), ..Default::default() };
        let patch = registry::TenantPatch { quota: Some(quota), ..Default::default() };
        host.app.registry().update_tenant(&crate::host::host_actor(), "acme", patch).unwrap();
        tenant.deploy_with("web", Boundary::Call, SOURCE, &format!("egress = [\"http://127.0.0.1:{port}\"]")).await;
        let client = tenant.at("web");
        let arguments = json!({ "url": format!("http://127.0.0.1:{port}/large") });
        assert!(text(&call(&client, "large", arguments.clone()).await).parse::<u32>().is_ok());
        // The second runs into the end of it, and the third is not even begun.
        let second = call(&client, "large", arguments.clone()).await;
        assert_eq!(second.result()["isError"], true, "{second:?}");
        let third = call(&client, "large", arguments).await;
        assert_eq!(third.status, 429, "{third:?}");
        host.shutdown().await;
    });
}

/// A door that tells what it was told to forget.
struct Told {
    door: Door<Dev>,
    forgotten: Arc<Mutex<Vec<(String, String)>>>,
}

impl Network for Told {
    fn visit(&self, pass: egress::Pass) -> egress::Visit {
        self.door.visit(pass)
    }

    fn forget(&self, tenant: &str, deployment: &str) {
        self.forgotten.lock().unwrap().push((tenant.to_owned(), deployment.to_owned()));
        self.door.forget(tenant, deployment);
    }

    fn check(&self, rules: &egress::Rules) -> Result<(), egress::Denied> {
        self.door.check(rules)
    }

    fn loopback(&self) -> &[u16] {
        self.door.loopback()
    }
}

#[test]
fn what_a_server_asked_for_is_shown_and_forgotten_with_it() {
    test(async {
        let (_, port) = upstream().await;
        let forgotten = Arc::default();
        let door = Door::dev(vec![port], DoorSettings::default()).unwrap();
        let open: Egress = Arc::new(Told { door, forgotten: Arc::clone(&forgotten) });
        let dir = tempfile::tempdir().unwrap();
        let host = start_with(dir.path(), Settings::default(), pools().await, Some(open)).await;
        let tenant = tenant_at(&host, "acme");
        let base = format!("http://127.0.0.1:{port}");
        let rule = format!("egress = [\"{base}\"]");
        // A port of loopback that a developer has opened may be uploaded here, and no other.
        let limits = policy::Limits { cpu_ms: 1000, ..Default::default() };
        for (rule, status) in [(rule.clone(), 201), (format!("egress = [\"http://127.0.0.1:{}\"]", port ^ 1), 422)] {
            let draft = tenant.draft_with("web", Boundary::Call, limits.clone(), SOURCE, &rule).await;
            let order = draft.order(host.app.registry(), &tenant.deploy_key);
            let path = format!("{}/admin/v1/tenants/acme/servers/web/deployments", tenant.base);
            let sent = tenant.at("web").http.post(path).bearer_auth(&tenant.deploy_key).json(&order);
            let sent = sent.send().await.unwrap();
            assert_eq!(sent.status(), status, "{}", sent.text().await.unwrap());
        }
        let client = tenant.at("web");
        for path in ["/a", "/b"] {
            call(&client, "get", json!({ "url": format!("{base}{path}") })).await;
        }
        for url in ["https://elsewhere.example/", "no URL"] {
            call(&client, "why", json!({ "url": url })).await;
        }
        let path = format!("{}/admin/v1/tenants/acme/servers/web/egress", tenant.base);
        let look = async || {
            let seen = client.http.get(&path).bearer_auth(&tenant.deploy_key).send().await.unwrap();
            seen.json::<serde_json::Value>().await.unwrap()
        };
        // A request is noted when its end was seen.
        let mut seen = look().await;
        while seen["hosts"].as_array().unwrap().iter().map(|row| row["requests"].as_u64().unwrap()).sum::<u64>() < 3 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            seen = look().await;
        }
        let row = |host: &str| seen["hosts"].as_array().unwrap().iter().find(|row| row["host"] == host).unwrap();
        let (here, there) = (row("127.0.0.1"), row("elsewhere.example"));
        assert_eq!((&here["decision"], &here["rule"], &here["requests"]), (&json!("allowed"), &json!(base), &json!(2)));
        assert!(here["bytes_down"].as_u64().unwrap() > 100 && here["last_at"].as_u64().unwrap() > 0, "{here}");
        assert_eq!((&there["decision"], &there["rule"]), (&json!("denied"), &json!(null)), "{there}");
        assert_eq!((&there["failed"], &there["bytes_up"]), (&json!("egress_denied"), &json!(0)), "{there}");
        assert_eq!(seen["others"], json!(null));
        // A new deployment takes the place of the old one, and then all of it goes.
        let registry = host.app.registry();
        let current =
            |name: &str| registry.directory().server("acme", name).unwrap().current.as_ref().unwrap().id.clone();
        let first = current("web");
        tenant.deploy_with("web", Boundary::Server, SOURCE, &rule).await;
        let second = current("web");
        assert_ne!(first, second);
        assert_eq!(look().await["hosts"], seen["hosts"], "it is the server's, whatever runs");
        registry.delete_server(&crate::host::host_actor(), "acme", "web").unwrap();
        registry.delete_tenant(&crate::host::host_actor(), "acme").unwrap();
        let wanted = [first, second, "oauth".to_owned()].map(|id| ("acme".to_owned(), id));
        while !wanted.iter().all(|one| forgotten.lock().unwrap().contains(one)) {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        host.shutdown().await;
    });
}
