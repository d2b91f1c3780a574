//! Secrets that go along with requests, and that nobody sees: not the code, not the client, not the disk.

use crate::egress::{call, text, upstream};
use crate::host::{host_actor, pools, start_traced, start_with, tenant_at, test};
use base64::Engine;
use egress::{Dev, Door, Settings as DoorSettings};
use futures_util::future::BoxFuture;
use gateway::observe::{TraceSettings, Traces};
use gateway::{Egress, Running, Settings};
use policy::Boundary;
use registry::PolicyChange;
use secrecy::SecretString;
use serde_json::json;
use std::sync::{Arc, Mutex};

const VALUE: &str = "sk-live-7f3a91c2d4";

/// Everything that a tool can do to see what it sends.
const SOURCE: &str = r#"export default { tools: {
    ask: { run: async ({ url, init }) => { const r = await fetch(url, init); return { status: r.status, text: await r.text() }; } },
    why: { run: async ({ url, init }) => { try { await fetch(url, init); return "reached"; } catch (error) { return `${error.cause?.message ?? error.message}`; } } },
} }"#;

fn bound(port: u16, place: &str) -> String {
    format!(
        "egress = [\"http://127.0.0.1:{port}\"]\nsecrets = [{{ name = \"TOKEN\", hosts = [\"http://127.0.0.1:{port}\"], {place} }}]"
    )
}

/// Sets `TOKEN` for all servers of a tenant, and for one host.
fn set(host: &Running, tenant: &str, value: &str, to: &str) {
    let places = ["credentials", "header:x-key", "query:key", "body:/auth/token"];
    let change = PolicyChange::allow(["*"], [to], places).unwrap();
    host.app.registry().set_secret_with(&host_actor(), tenant, "TOKEN", value.into(), &change).unwrap();
}

#[test]
fn a_secret_goes_where_it_is_bound_and_comes_back_masked() {
    test(async {
        let (seen, port) = upstream().await;
        let door: Door<Dev> = Door::dev(vec![port], DoorSettings::default()).unwrap();
        let open: Egress = Arc::new(door);
        let dir = tempfile::tempdir().unwrap();
        let host = start_with(dir.path(), Settings::default(), pools().await, Some(open)).await;
        let tenant = tenant_at(&host, "acme");
        let base = format!("http://127.0.0.1:{port}");
        let header = bound(port, "header = \"authorization\", format = \"Bearer {}\"");
        tenant.deploy_with("header", Boundary::Call, SOURCE, &header).await;
        let client = tenant.at("header");
        // Not set yet: the request does not leave.
        let why = text(&call(&client, "why", json!({ "url": base })).await);
        assert!(why.contains("`TOKEN`") && why.contains("not set"), "{why}");
        assert_eq!(seen.lock().unwrap().len(), 0);
        set(&host, "acme", VALUE, &base);
        let got = call(&client, "ask", json!({ "url": format!("{base}/a") })).await;
        let request = seen.lock().unwrap().pop().unwrap();
        assert!(request.contains(&format!("authorization: Bearer {VALUE}\r\n")), "{request}");
        // The upstream repeats all that it got.
        let said = text(&got);
        assert!(said.contains("authorization: ") && !said.contains(VALUE) && said.contains("****"), "{said}");
        let receipt = &got.result()["_meta"]["bulkhead/receipt"];
        assert_eq!(receipt["credentials"], json!(["TOKEN"]), "{receipt}");
        // What the code writes there itself does not count.
        let init = json!({ "headers": { "authorization": "Bearer mine" } });
        call(&client, "ask", json!({ "url": base, "init": init })).await;
        let request = seen.lock().unwrap().pop().unwrap();
        assert!(request.contains(VALUE) && !request.contains("Bearer mine"), "{request}");
        for (server, place, url, init, wanted) in [
            ("query", "query = \"key\"", "/q?a=1", json!({}), format!("/q?a=1&key={}", VALUE.replace('-', "%2D"))),
            ("basic", "basic = true", "/b", json!({}), "authorization: Basic ".to_owned()),
            (
                "body",
                "body = \"/auth/token\"",
                "/j",
                json!({ "method": "POST", "body": "{\"auth\":{},\"n\":1}", "headers": { "content-type": "application/json" } }),
                format!("\"token\":\"{VALUE}\""),
            ),
            (
                "asked",
                "header = \"x-key\", asked = true",
                "/k",
                json!({ "headers": { "x-key": "k {{secret:TOKEN}}" } }),
                format!("x-key: k {VALUE}"),
            ),
        ] {
            tenant.deploy_with(server, Boundary::Call, SOURCE, &bound(port, place)).await;
            let got = call(&tenant.at(server), "ask", json!({ "url": format!("{base}{url}"), "init": init })).await;
            let request = seen.lock().unwrap().pop().unwrap_or_default();
            assert!(request.contains(&wanted), "{server}: {request} {got:?}");
            assert!(!text(&got).contains(VALUE), "{server}: {got:?}");
        }
        // Who does not ask, gets nothing.
        call(&tenant.at("asked"), "ask", json!({ "url": base })).await;
        assert!(!seen.lock().unwrap().pop().unwrap().contains(VALUE));
        // A new value counts at once, and a removed one is missed at once.
        host.app.registry().set_secret(&host_actor(), "acme", "TOKEN", "another-value".into()).unwrap();
        call(&client, "ask", json!({ "url": base })).await;
        assert!(seen.lock().unwrap().pop().unwrap().contains("another-value"));
        host.app.registry().remove_secret(&host_actor(), "acme", "TOKEN").unwrap();
        let why = text(&call(&client, "why", json!({ "url": base })).await);
        assert!(why.contains("not set"), "{why}");
        host.shutdown().await;
    });
}

/// A deploy key binds a secret of its tenant to a host of its own: it gets nothing there.
#[test]
fn a_secret_goes_to_no_server_and_no_host_that_its_policy_does_not_name() {
    test(async {
        let (seen, port) = upstream().await;
        let (stolen, evil) = upstream().await;
        let door: Door<Dev> = Door::dev(vec![port, evil], DoorSettings::default()).unwrap();
        let open: Egress = Arc::new(door);
        let dir = tempfile::tempdir().unwrap();
        let host = start_with(dir.path(), Settings::default(), pools().await, Some(open)).await;
        let tenant = tenant_at(&host, "acme");
        let registry = host.app.registry();
        let (good, bad) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{evil}"));
        let allow = |server: &str| {
            let change = PolicyChange::allow([server], [good.as_str()], ["header:x-key"]).unwrap();
            registry.set_secret_with(&host_actor(), "acme", "TOKEN", VALUE.into(), &change).unwrap();
        };
        allow("prices");
        // They are current, as if the host had not looked when they were deployed.
        for (server, port) in [("prices", port), ("thief", port), ("prices-evil", evil)] {
            tenant.deploy_with(server, Boundary::Call, SOURCE, &bound(port, "header = \"x-key\"")).await;
        }
        allow("prices-evil");
        call(&tenant.at("prices"), "ask", json!({ "url": good })).await;
        assert!(seen.lock().unwrap().pop().unwrap().contains(VALUE));
        for (server, url) in [("thief", &good), ("prices-evil", &bad)] {
            let why = text(&call(&tenant.at(server), "why", json!({ "url": url })).await);
            let command = format!("bulkhead secret allow acme TOKEN --for {server}");
            for part in ["`TOKEN`", &format!("`{server}`"), url, &command] {
                assert!(why.contains(part), "{part}: {why}");
            }
        }
        assert_eq!((seen.lock().unwrap().len(), stolen.lock().unwrap().len()), (0, 0), "nothing left");
        // What is taken from a server is taken at once.
        registry.allow_secret(&host_actor(), "acme", "TOKEN", &PolicyChange::deny(["prices"])).unwrap();
        let why = text(&call(&tenant.at("prices"), "why", json!({ "url": good })).await);
        assert!(why.contains("not allowed"), "{why}");
        assert_eq!(seen.lock().unwrap().len(), 0);
        host.shutdown().await;
    });
}

/// Another tenant's secret of the same name is another secret.
#[test]
fn tenants_do_not_share_secrets() {
    test(async {
        let (seen, port) = upstream().await;
        let door: Door<Dev> = Door::dev(vec![port], DoorSettings::default()).unwrap();
        let open: Egress = Arc::new(door);
        let dir = tempfile::tempdir().unwrap();
        let host = start_with(dir.path(), Settings::default(), pools().await, Some(open)).await;
        let base = format!("http://127.0.0.1:{port}");
        let tenants = [tenant_at(&host, "acme"), tenant_at(&host, "globex"), tenant_at(&host, "initech")];
        for tenant in &tenants {
            let place = bound(port, "header = \"x-key\"");
            tenant.deploy_with("s", Boundary::Call, SOURCE, &place).await;
        }
        for name in ["acme", "globex"] {
            let value = format!("the secret of {name}");
            set(&host, name, &value, &base);
        }
        for tenant in &tenants[..2] {
            call(&tenant.at("s"), "ask", json!({ "url": base })).await;
            let request = seen.lock().unwrap().pop().unwrap();
            assert!(request.contains(&format!("x-key: the secret of {}\r\n", tenant.name)), "{request}");
        }
        let why = text(&call(&tenants[2].at("s"), "why", json!({ "url": base })).await);
        assert!(why.contains("not set"), "{why}");
        host.shutdown().await;
    });
}

/// A service that keeps what it gets gives it back to a later request, which does not ask for the secret.
#[test]
fn what_was_stored_upstream_is_masked_and_counted() {
    test(async {
        let kept = Arc::new(Mutex::new(String::new()));
        let answer = move |headers: axum::http::HeaderMap| {
            if let Some(value) = headers.get("x-key") {
                *kept.lock().unwrap() = value.to_str().unwrap().to_owned();
            }
            let kept = kept.lock().unwrap();
            let spelled: String = kept.chars().map(|c| format!("\\u{:04x}", c as u32)).collect();
            std::future::ready(format!("{{\"plain\":\"{kept}\",\"spelled\":\"{spelled}\"}}"))
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let service = axum::Router::new().route("/", axum::routing::get(answer));
        tokio::spawn(async move { axum::serve(listener, service).await });
        let door: Door<Dev> = Door::dev(vec![port], DoorSettings::default()).unwrap();
        let open: Egress = Arc::new(door);
        let dir = tempfile::tempdir().unwrap();
        let host = start_with(dir.path(), Settings::default(), pools().await, Some(open)).await;
        let tenant = tenant_at(&host, "acme");
        let asked = bound(port, "header = \"x-key\", asked = true");
        tenant.deploy_with("s", Boundary::Call, SOURCE, &asked).await;
        set(&host, "acme", VALUE, &format!("http://127.0.0.1:{port}"));
        let (client, url) = (tenant.at("s"), format!("http://127.0.0.1:{port}/"));
        let init = json!({ "headers": { "x-key": "{{secret:TOKEN}}" } });
        let first = call(&client, "ask", json!({ "url": url, "init": init })).await;
        let later = call(&client, "ask", json!({ "url": url })).await;
        for (got, credentials) in [(&first, json!(["TOKEN"])), (&later, json!([]))] {
            assert!(text(got).contains("****") && !shows(&text(got)) && !text(got).contains("0073"), "{got:?}");
            let receipt = &got.result()["_meta"]["bulkhead/receipt"];
            assert_eq!((&receipt["masked"], &receipt["credentials"]), (&json!(2), &credentials), "{receipt}");
        }
        let operator = std::fs::read_to_string(dir.path().join("operator.key")).unwrap().trim().to_owned();
        for (path, has) in
            [("/metrics", "bulkhead_egress_masked_total 4"), ("/admin/v1/tenants/acme/calls", "\"masked\":2")]
        {
            let asked = client.http.get(format!("{}{path}", tenant.base)).bearer_auth(&operator).send().await.unwrap();
            let said = asked.text().await.unwrap();
            assert!(said.contains(has), "{path}: {said}");
        }
        host.shutdown().await;
    });
}

/// All processes that this one has started, and those have.
fn descendants() -> Vec<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let all: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let ours = |pid: u32| {
        let mut next = parent(pid);
        while let Some(above) = next.filter(|above| *above > 1) {
            if above == std::process::id() {
                return true;
            }
            next = parent(above);
        }
        false
    };
    all.into_iter().filter(|pid| ours(*pid)).collect()
}

/// How often the text is in what a process has in memory; nothing if nobody may look.
fn in_memory(pid: u32, text: &[u8]) -> Option<usize> {
    use std::io::BufRead;
    use std::os::unix::fs::FileExt;
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).ok()?;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).ok()?;
    let (mut found, mut read) = (0, 0);
    let mut piece = vec![0; 1 << 20];
    let mut range = None;
    for line in maps.lines() {
        let word = line.split(' ').next().unwrap_or_default();
        if let Some((from, to)) = word.split_once('-') {
            range = u64::from_str_radix(from, 16).ok().zip(u64::from_str_radix(to, 16).ok());
        }
        // What is set aside and not there cannot hold anything.
        let there = line.strip_prefix("Rss:").is_some_and(|rest| !rest.trim().starts_with("0 "));
        let Some((mut at, to)) = range.filter(|_| there) else { continue };
        while at + (text.len() as u64) <= to {
            let length = piece.len().min((to - at) as usize);
            if memory.read_exact_at(&mut piece[..length], at).is_ok() {
                read += length;
                let mut rest = &piece[..length];
                // Searched by the standard library, which is quick in a debug build, too.
                while rest.skip_until(text[0]).is_ok_and(|passed| passed > 0) {
                    found += usize::from(rest.starts_with(&text[1..]));
                }
            }
            at += (length - text.len() + 1) as u64;
        }
    }
    (read > 0).then_some(found)
}

fn on_disk(folder: &std::path::Path, text: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(on_disk(&path, text));
        } else if std::fs::read(&path).unwrap_or_default().windows(text.len()).any(|window| window == text) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// The value, and how programs like to write it.
fn needles() -> [String; 3] {
    [VALUE.to_owned(), hex::encode(VALUE), base64::engine::general_purpose::STANDARD_NO_PAD.encode(VALUE)]
}

fn shows(text: &str) -> bool {
    needles().iter().any(|needle| text.contains(needle.as_str()))
}

/// Reads every event and every span of every crate in the process, whatever its level.
#[derive(Clone, Default)]
struct AllLogs(Arc<Mutex<Logged>>);

#[derive(Default)]
struct Logged {
    events: usize,
    found: Vec<String>,
}

struct Written(String);

impl tracing::field::Visit for Written {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!("{field}={value:?} "));
    }
}

impl AllLogs {
    fn read(&self, record: impl FnOnce(&mut Written)) {
        let mut written = Written(String::new());
        record(&mut written);
        let mut logged = self.0.lock().unwrap();
        logged.events += 1;
        if shows(&written.0) {
            logged.found.push(written.0);
        }
    }
}

impl tracing::Subscriber for AllLogs {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        self.read(|written| span.record(written));
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        self.read(|written| values.record(written));
    }

    fn event(&self, event: &tracing::Event<'_>) {
        self.read(|written| event.record(written));
    }

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// Takes traces, as they come over the wire.
async fn collector() -> (Arc<Mutex<Vec<u8>>>, Traces) {
    let taken = Arc::new(Mutex::new(Vec::new()));
    let kept = taken.clone();
    let take = move |body: axum::body::Bytes| {
        kept.lock().unwrap().extend_from_slice(&body);
        std::future::ready(())
    };
    let app = axum::Router::new().route("/v1/traces", axum::routing::post(take));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let settings = TraceSettings { endpoint, headers: Vec::new(), sample_ratio: 1.0, service: "test".to_owned() };
    (taken, Traces::start(settings).unwrap())
}

struct OneSecret;

impl egress::Secrets for OneSecret {
    fn get<'a>(&'a self, used: &'a egress::Use<'a>) -> BoxFuture<'a, Result<Option<SecretString>, egress::Denied>> {
        self.known(used.name)
    }

    fn known<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, egress::Denied>> {
        Box::pin(std::future::ready(Ok(Some(VALUE.into()))))
    }
}

/// Breaks down when the first byte of the request is about to leave, with the secret in it.
struct Breaks;

impl egress::Budget for Breaks {
    fn spend(&self, bytes: u64) -> bool {
        assert!(bytes == 0, "the budget broke down after {bytes} bytes");
        true
    }

    fn computed(&self, _: u64) {}
}

/// What a panic says in the middle of a request that has the secret, with all that the stack has to tell.
async fn panic_with_the_secret(door: &Door<Dev>, port: u16) -> String {
    let said = Arc::new(Mutex::new(String::new()));
    let (kept, before) = (said.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        let stack = std::backtrace::Backtrace::force_capture();
        kept.lock().unwrap().push_str(&format!("{panic}\n{stack}\n{panic:?}"));
    }));
    let base = format!("http://127.0.0.1:{port}");
    let rules = egress::Rules::parse([base.as_str()], egress::BareStar::Refused).unwrap();
    let place = egress::Place::Header("x-key".parse().unwrap());
    let binding = egress::Binding::new("TOKEN", vec![egress::Pattern::parse(&base).unwrap()], place);
    let bindings = egress::Bindings::new(vec![binding]).unwrap();
    let pass = egress::Pass {
        credentials: Arc::new(egress::Bound::new(bindings, Arc::new(OneSecret))),
        budget: Arc::new(Breaks),
        ..egress::Pass::new("acme", "d", Arc::new(rules))
    };
    let visit = door.visit(pass);
    let meta = json!({ "id": 1, "method": "POST", "url": base, "headers": [], "redirect": "follow", "bodyLength": 4, "stream": false });
    let fetched = tokio::spawn(async move { visit.call("fetch", &meta.to_string(), "body".into()).await.map(drop) });
    let ended = fetched.await;
    std::panic::set_hook(before);
    assert!(!matches!(ended, Ok(Ok(()))), "the request broke down");
    let said = said.lock().unwrap().clone();
    format!("{said}{ended:?}")
}

/// With everything on that could write it down (recording, traces, every level of every log, metrics, a panic in the midst of it):
/// the value is in no file, log, trace, metric, audit line or answer, and in no memory but the host's.
#[test]
fn a_secret_is_nowhere_but_in_its_request() {
    test(async {
        let logs = AllLogs::default();
        // Without it, nothing is asserted of logs: another one is there already.
        let logging = tracing::subscriber::set_global_default(logs.clone()).is_ok();
        let (seen, port) = upstream().await;
        let (traced, traces) = collector().await;
        let door: Door<Dev> = Door::dev(vec![port], DoorSettings::default()).unwrap();
        let open: Egress = Arc::new(door.clone());
        let dir = tempfile::tempdir().unwrap();
        let host = start_traced(dir.path(), Settings::default(), pools().await, Some(open), traces).await;
        let tenant = tenant_at(&host, "acme");
        let recording = registry::TenantPatch { recording: Some(true), ..Default::default() };
        host.app.registry().update_tenant(&host_actor(), "acme", recording).unwrap();
        set(&host, "acme", VALUE, &format!("http://127.0.0.1:{port}"));
        let source = r#"export default { tools: {
            keep: { run: async ({ url, init }, ctx) => {
                const response = await fetch(url, init);
                const text = await response.text();
                globalThis.kept = [response, text, [...response.headers]];
                console.log(text);
                ctx.log.error(text);
                return text;
            } },
            fail: { run: async ({ url }) => { throw new Error(await (await fetch(url)).text()); } },
            mark: { run: () => { globalThis.marked = ["marked", "by", "the", "tool"].join("-"); return globalThis.marked; } },
        } }"#;
        let place = bound(port, "header = \"authorization\", format = \"Bearer {}\"");
        tenant.deploy_with("s", Boundary::Server, source, &place).await;
        let client = tenant.at("s");
        let url = format!("http://127.0.0.1:{port}/");
        let mut answers = Vec::new();
        for (tool, arguments) in [
            ("mark", json!({})),
            ("keep", json!({ "url": url })),
            ("keep", json!({ "url": url, "init": { "method": "POST", "body": "{{secret:TOKEN}}" } })),
            ("fail", json!({ "url": url })),
        ] {
            answers.push(format!("{:?}", call(&client, tool, arguments).await));
        }
        assert_eq!(seen.lock().unwrap().iter().filter(|request| request.contains(VALUE)).count(), 3);
        assert!(answers.iter().all(|answer| !shows(answer)), "{answers:?}");
        // The compartment is still there, with what it has heard.
        let (mut looked, mut marked) = (0, 0);
        for pid in descendants() {
            let Some(found) = in_memory(pid, VALUE.as_bytes()) else { continue };
            assert_eq!(found, 0, "process {pid} has the secret in its memory");
            looked += 1;
            marked += in_memory(pid, b"marked-by-the-tool").unwrap_or_default();
        }
        if looked == 0 {
            skips::skip("this user may not look at the memory of compartments");
        } else {
            assert!(marked > 0, "what the tool has in memory can be seen there");
        }
        let operator = std::fs::read_to_string(dir.path().join("operator.key")).unwrap().trim().to_owned();
        for (path, has) in [
            ("/metrics", "egress"),
            ("/admin/v1/tenants/acme/secrets", "TOKEN"),
            ("/admin/v1/tenants/acme/calls", "keep"),
            ("/admin/v1/tenants/acme/servers/s", "keep"),
            ("/admin/v1/tenants/acme/servers/s/logs", "authorization: "),
            ("/admin/v1/tenants/acme/servers/s/egress", "127.0.0.1"),
            ("/admin/v1/host", "uptime"),
        ] {
            let asked = client.http.get(format!("{}{path}", tenant.base)).bearer_auth(&operator).send().await.unwrap();
            let said = asked.text().await.unwrap();
            assert!(said.contains(has) && !shows(&said), "{path}: {said}");
        }
        let panic = panic_with_the_secret(&door, port).await;
        assert!(panic.contains("the budget broke down after") && !shows(&panic), "{panic}");
        let app = tenant.app;
        host.shutdown().await;
        app.registry().close().unwrap();
        for needle in needles() {
            assert_eq!(on_disk(dir.path(), needle.as_bytes()), [""; 0]);
            let traced = traced.lock().unwrap();
            assert!(!traced.windows(needle.len()).any(|window| window == needle.as_bytes()), "in traces");
        }
        let traced = String::from_utf8_lossy(&traced.lock().unwrap()).into_owned();
        assert!(traced.contains("tools/call"), "calls were traced: {traced}");
        if logging {
            let logged = logs.0.lock().unwrap();
            assert!(logged.events > 0 && logged.found.is_empty(), "{} events: {:?}", logged.events, logged.found);
        }
        assert!(!on_disk(dir.path(), b"authorization: ").is_empty(), "what the tool logged is there");
    });
}
