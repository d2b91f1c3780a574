//! What one caller makes the host compute and hold, others do not feel.

use crate::host::{Tenant, host_actor, running, start, tenant, tenant_at, test};
use crate::signed;
use gateway::{HeldSettings, HttpSettings, Running, Settings};
use policy::Boundary;
use registry::{Quota, TenantPatch};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const COSTLY: &str = r#"
    const many = Array.from({ length: 20000 }, (_, n) => 1000000.5 + n);
    export default {
      name: "costly",
      version: "1.0.0",
      tools: {
        pick: {
          description: "Takes numbers.",
          input: { type: "object", properties: { list: { type: "array", items: { enum: many } } } },
          async run() { return "taken"; },
        },
        plain: { description: "Takes anything.", input: { type: "object" }, async run() { return "taken"; } },
      },
    };
"#;

fn pick(numbers: Vec<f64>) -> Value {
    json!({ "name": "pick", "arguments": { "list": numbers } })
}

async fn healthy(url: &str) {
    assert_eq!(reqwest::get(url).await.unwrap().status(), 200);
}

/// Each of these calls is as costly to check as one may be. While they are checked, everybody else is served.
#[test]
fn a_costly_check_keeps_nobody_waiting() {
    test(async {
        let (greedy, neighbour) = (tenant().await, tenant().await);
        greedy.deploy("costly", Boundary::Call, COSTLY).await;
        neighbour.deploy("costly", Boundary::Call, COSTLY).await;
        let plain = json!({ "name": "plain", "arguments": {} });
        let client = neighbour.at("costly");
        assert_eq!(client.modern("tools/call", plain.clone()).await.status, 200);
        let health = format!("{}/healthz", greedy.base);
        healthy(&health).await;
        let begun = Instant::now();
        for _ in 0..20 {
            healthy(&health).await;
        }
        let alone = begun.elapsed() / 20;
        // The last of twenty thousand, so that each is compared with all.
        let calls: Vec<_> = (0..3)
            .map(|_| {
                let client = greedy.at("costly");
                tokio::spawn(async move { client.modern("tools/call", pick(vec![1_019_999.5; 4000])).await })
            })
            .collect();
        let begun = Instant::now();
        let (mut answers, mut served) = (0, 0);
        while calls.iter().any(|call| !call.is_finished()) {
            healthy(&health).await;
            answers += 1;
            if answers % 5 == 1 {
                assert_eq!(client.modern("tools/call", plain.clone()).await.status, 200);
                served += 1;
            }
        }
        let all = begun.elapsed();
        for call in calls {
            let got = call.await.unwrap();
            assert_eq!(got.status, 200, "{:?}", got.last());
        }
        let least = all.as_secs_f64() / alone.as_secs_f64() / 100.0;
        assert!(f64::from(answers) > least, "{answers} answers in {all:?}, alone each takes {alone:?}");
        assert!(served > 1, "the neighbour was served {served} times");
    });
}

#[test]
fn what_is_too_costly_to_check_is_refused_and_what_was_checked_is_paid_for() {
    test(async {
        let tenant = tenant().await;
        tenant.deploy("costly", Boundary::Call, COSTLY).await;
        let client = tenant.at("costly");
        let refused = client.modern("tools/call", pick(vec![1_019_999.5; 100_000])).await;
        assert_eq!(refused.error(), (200, -32602), "{refused:?}");
        assert_eq!(refused.last()["error"]["data"]["code"], "argument_limit");
        let wrong = client.modern("tools/call", pick(vec![1.0; 4000])).await;
        assert!(wrong.last()["result"]["isError"] == true || wrong.last()["error"]["code"] == -32602, "{wrong:?}");
        // A tenant with a hundredth of a second of CPU a minute has none left after one such check.
        let quota = Quota { cpu_s_per_min: Some(0.01), ..Quota::default() };
        let patch = TenantPatch { quota: Some(quota), ..TenantPatch::default() };
        tenant.app.registry().update_tenant(&host_actor(), &tenant.name, patch).unwrap();
        assert_eq!(client.modern("tools/call", pick(vec![1_019_999.5; 4000])).await.status, 200);
        let broke = client.modern("tools/call", pick(vec![1_019_999.5])).await;
        assert_eq!(broke.error(), (429, -32029), "{broke:?}");
        assert_eq!(broke.last()["error"]["data"]["quota"], "cpu_s_per_min");
    });
}

/// A host without walls, where little may be in flight.
async fn small_host(tenant: u64, host: u64) -> (Running, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let http = HttpSettings { held: HeldSettings { tenant, host }, ..HttpSettings::default() };
    let settings = Settings { http, ..Settings::default() };
    (start(dir.path(), settings, HashMap::new()).await, dir)
}

fn deploy_nothing(tenant: &Tenant, server: &str, surface: &str) {
    let draft = signed::draft(tenant.app.registry(), &tenant.name, server, "export default {}", "", surface);
    let new = draft.deployment(tenant.app.registry(), &tenant.name, &tenant.deploy_key);
    tenant.app.registry().deploy(&host_actor(), new).unwrap();
}

const SURFACE: &str = r#"{"name":"s","tools":[{"name":"t","inputSchema":{"type":"object"}}],"resources":[],"resourceTemplates":[],"prompts":[]}"#;

fn head(tenant: &Tenant, length: usize) -> String {
    format!(
        "POST /{}/s/mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {length}\r\n\r\n",
        tenant.name, tenant.key
    )
}

/// Sixty bodies of a mebibyte that never end, from one key: four mebibytes of them are held, and nobody else feels it.
#[test]
fn bodies_that_do_not_end_are_cut_and_not_kept() {
    test(async {
        let (running, _dir) = small_host(4 << 20, 64 << 20).await;
        let (greedy, neighbour) = (tenant_at(&running, "greedy"), tenant_at(&running, "neighbour"));
        for tenant in [&greedy, &neighbour] {
            deploy_nothing(tenant, "s", SURFACE);
        }
        let mut open = Vec::new();
        for _ in 0..60 {
            let mut socket = TcpStream::connect(running.addr).await.unwrap();
            socket.write_all(head(&greedy, 1 << 20).as_bytes()).await.unwrap();
            // All but the last byte. One that is cut meanwhile may be closed.
            let _ = socket.write_all(&vec![b' '; (1 << 20) - 1]).await;
            let held = running.app.held_bytes();
            assert!(held <= 4 << 20, "{held} bytes are held");
            open.push(socket);
        }
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "pad": "x".repeat(200_000) } });
        for tenant in [&neighbour, &greedy] {
            let got = tenant.at("s").json(ping.clone()).await;
            assert_eq!(got.status, 200, "{}: {:?}", tenant.name, got.last());
        }
        let mut cut = 0;
        for mut socket in open {
            let mut answer = vec![0; 4096];
            let read = tokio::time::timeout(Duration::from_millis(20), socket.read(&mut answer)).await;
            let text = String::from_utf8_lossy(&answer).to_lowercase();
            cut += u32::from(
                matches!(read, Ok(Ok(read)) if read > 0) && text.contains("503") && text.contains("retry-after"),
            );
        }
        assert!(cut >= 50, "{cut} of sixty were told to come again");
        while running.app.held_bytes() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        running.shutdown().await;
    });
}

/// Whoever has nothing left of its quota hears so before it has sent anything.
#[test]
fn a_quota_is_asked_before_the_body_is_read() {
    test(async {
        let host = running().await;
        let tenant = tenant().await;
        deploy_nothing(&tenant, "s", SURFACE);
        let answer = async |length: usize| {
            let mut socket = TcpStream::connect(host.addr).await.unwrap();
            socket.write_all(head(&tenant, length).as_bytes()).await.unwrap();
            let mut answer = vec![0; 4096];
            let read = tokio::time::timeout(Duration::from_secs(20), socket.read(&mut answer)).await.unwrap().unwrap();
            String::from_utf8_lossy(&answer[..read]).into_owned()
        };
        let limit = |quota: Quota| {
            let patch = TenantPatch { quota: Some(quota), ..TenantPatch::default() };
            tenant.app.registry().update_tenant(&host_actor(), &tenant.name, patch).unwrap();
        };
        limit(Quota { requests_per_s: Some(0.001), burst: Some(1), ..Quota::default() });
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        assert_eq!(tenant.at("s").json(ping).await.status, 200);
        let refused = answer(16 << 20).await;
        assert!(refused.starts_with("HTTP/1.1 429") && refused.contains("requests_per_s"), "{refused}");
        // Without CPU time left only what needs none is read, and that is short.
        limit(Quota { cpu_s_per_min: Some(0.0), ..Quota::default() });
        // The rate comes back from the first message on.
        answer(16 << 20).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        let refused = answer(16 << 20).await;
        assert!(refused.starts_with("HTTP/1.1 429") && refused.contains("cpu_s_per_min"), "{refused}");
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
        assert_eq!(tenant.at("s").json(cancel).await.status, 202);
    });
}

/// CPU time of this thread.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Thousands of tools are given the names of the aggregate endpoint once, and not for each list.
#[tokio::test]
async fn a_list_of_thousands_of_tools_costs_what_its_page_does() {
    use tower::ServiceExt;
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings { page_size: 100, ..Settings::default() };
    let running = start(dir.path(), settings, HashMap::new()).await;
    let tenant = tenant_at(&running, "many");
    for server in 0..11 {
        let tool = |n: usize| json!({ "name": format!("tool-{n}"), "description": "x".repeat(500), "inputSchema": { "type": "object" } });
        let surface = json!({ "name": "s", "tools": (0..500).map(tool).collect::<Vec<_>>(), "resources": [], "resourceTemplates": [], "prompts": [] });
        deploy_nothing(&tenant, &format!("s{server}"), &surface.to_string());
    }
    let router = gateway::router(running.app.clone());
    let list = async |path: &str, cursor: Option<&str>| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "cursor": cursor } });
        let request = http::Request::post(path)
            .header("host", "127.0.0.1")
            .header("authorization", format!("Bearer {}", tenant.key))
            .header("content-type", "application/json")
            .body(axum::body::Body::from(body.to_string()))
            .unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let before = response.status();
        let bytes = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
        assert_eq!(before, 200, "{}", String::from_utf8_lossy(&bytes));
        bytes
    };
    // All of them are there, each once and under its full name.
    let (mut names, mut cursor) = (std::collections::BTreeSet::new(), None::<String>);
    loop {
        let page: Value = serde_json::from_slice(&list("/many/mcp", cursor.as_deref()).await).unwrap();
        for tool in page["result"]["tools"].as_array().unwrap() {
            assert!(names.insert(tool["name"].as_str().unwrap().to_owned()));
        }
        match page["result"]["nextCursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(names.len(), 5500);
    assert!(names.contains("s10__tool-499"));
    list("/many/s0/mcp", None).await;
    let mut times = [Duration::ZERO; 2];
    for _ in 0..20 {
        for (time, path) in times.iter_mut().zip(["/many/s0/mcp", "/many/mcp"]) {
            let before = cpu();
            list(path, None).await;
            *time += cpu() - before;
        }
    }
    let [one, all] = times;
    assert!(all < one * 30, "a page of one server takes {one:?}, one of eleven servers {all:?}");
    running.shutdown().await;
}
