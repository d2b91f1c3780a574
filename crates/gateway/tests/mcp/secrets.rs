//! Secrets that go along with requests, and that nobody sees: not the code, not the client, not the disk.

use crate::egress::{call, text, upstream};
use crate::host::{host_actor, pools, start_with, tenant_at, test};
use egress::{Dev, Door, Settings as DoorSettings};
use gateway::{Egress, Settings};
use policy::Boundary;
use serde_json::json;
use std::sync::Arc;

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

#[test]
fn a_secret_goes_where_it_is_bound_and_comes_back_masked() {
    test(async {
        let (seen, port) = upstream().await;
        let door: Door<Dev> = Door::dev(vec![port], DoorSettings::default()).unwrap();
        let open: Egress = Arc::new(move |pass| door.visit(pass));
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
        host.app.registry().set_secret(&host_actor(), "acme", "TOKEN", VALUE.into()).unwrap();
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

/// Another tenant's secret of the same name is another secret.
#[test]
fn tenants_do_not_share_secrets() {
    test(async {
        let (seen, port) = upstream().await;
        let door: Door<Dev> = Door::dev(vec![port], DoorSettings::default()).unwrap();
        let open: Egress = Arc::new(move |pass| door.visit(pass));
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
            host.app.registry().set_secret(&host_actor(), name, "TOKEN", value.into()).unwrap();
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
    use std::os::unix::fs::FileExt;
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).ok()?;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).ok()?;
    let (mut found, mut read) = (0, 0);
    let mut range = None;
    for line in maps.lines() {
        let word = line.split(' ').next().unwrap_or_default();
        if let Some((from, to)) = word.split_once('-') {
            range = u64::from_str_radix(from, 16).ok().zip(u64::from_str_radix(to, 16).ok());
        }
        // What is set aside and not there cannot hold anything.
        let there = line.strip_prefix("Rss:").is_some_and(|rest| !rest.trim().starts_with("0 "));
        let Some((mut at, to)) = range.filter(|_| there) else { continue };
        let mut piece = vec![0; 1 << 20];
        while at + (text.len() as u64) <= to {
            let length = piece.len().min((to - at) as usize);
            if memory.read_exact_at(&mut piece[..length], at).is_ok() {
                read += length;
                let starts = piece[..length].iter().enumerate().filter(|(_, byte)| **byte == text[0]);
                found += starts.filter(|(start, _)| piece[*start..length].starts_with(text)).count();
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

/// With everything on that could write it down: the value is in no file, no log, no metric, no audit line, no answer, and
/// in no memory but the host's.
#[test]
fn a_secret_is_nowhere_but_in_its_request() {
    test(async {
        let (seen, port) = upstream().await;
        let door: Door<Dev> = Door::dev(vec![port], DoorSettings::default()).unwrap();
        let open: Egress = Arc::new(move |pass| door.visit(pass));
        let dir = tempfile::tempdir().unwrap();
        let host = start_with(dir.path(), Settings::default(), pools().await, Some(open)).await;
        let tenant = tenant_at(&host, "acme");
        let recording = registry::TenantPatch { recording: Some(true), ..Default::default() };
        host.app.registry().update_tenant(&host_actor(), "acme", recording).unwrap();
        host.app.registry().set_secret(&host_actor(), "acme", "TOKEN", VALUE.into()).unwrap();
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
        assert!(answers.iter().all(|answer| !answer.contains(VALUE)), "{answers:?}");
        // The compartment is still there, with what it has heard.
        let (mut looked, mut marked) = (0, 0);
        for pid in descendants() {
            let Some(found) = in_memory(pid, VALUE.as_bytes()) else { continue };
            assert_eq!(found, 0, "process {pid} has the secret in its memory");
            looked += 1;
            marked += in_memory(pid, b"marked-by-the-tool").unwrap_or_default();
        }
        if looked == 0 {
            eprintln!("skipped: nobody lets this user look at the memory of compartments");
        } else {
            assert!(marked > 0, "what the tool has in memory can be seen there");
        }
        let app = tenant.app;
        let metrics = client
            .http
            .get(format!("{}/metrics", tenant.base))
            .bearer_auth(std::fs::read_to_string(dir.path().join("operator.key")).unwrap().trim());
        let metrics = metrics.send().await.unwrap().text().await.unwrap();
        assert!(metrics.contains("egress") && !metrics.contains(VALUE), "{metrics}");
        host.shutdown().await;
        app.registry().close().unwrap();
        assert_eq!(on_disk(dir.path(), VALUE.as_bytes()), [""; 0]);
        assert!(!on_disk(dir.path(), b"authorization: ").is_empty(), "what the tool logged is there");
    });
}
