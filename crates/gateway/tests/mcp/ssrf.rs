//! Every trick of the door's own list, tried by a tool from inside an isolate, in a network where every address would answer.

use crate::egress::{call, text};
use crate::host::{pools, start_with, tenant_at, test};
use egress::{Door, Limits, Lookup, Resolve, Settings as DoorSettings};
use gateway::Settings;
use policy::Boundary;
use serde::Deserialize;
use serde_json::json;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const NAME: &str = "every_trick_from_inside_an_isolate";
const INSIDE: &str = "BULKHEAD_TEST_INSIDE";
/// Every address is local, though none is an interface's, and every port may be listened on.
const LAY: &str = "ip link set lo up
ip route add local 0.0.0.0/0 dev lo
ip -6 route add local ::/0 dev lo
echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start";
/// Fetches of one call: each asks its host up to three times, and a call may do so 64 times.
const BATCH: usize = 20;

#[derive(Clone, Deserialize)]
struct Case {
    url: String,
    #[serde(default)]
    dns: HashMap<String, Answer>,
    /// `allowed`, or words of the reason.
    expect: String,
}

#[derive(Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Answer {
    Addresses(Vec<IpAddr>),
    /// It is another name for this one.
    Name(String),
}

type Zone = HashMap<String, Answer>;

/// What names lead to at the moment.
#[derive(Default)]
struct Staged(Mutex<Zone>);

impl Resolve for Staged {
    fn resolve(&self, name: &str) -> Lookup {
        let zone = self.0.lock().unwrap();
        let mut next = zone.get(name);
        for _ in 0..16 {
            match next {
                Some(Answer::Name(name)) => next = zone.get(name),
                _ => break,
            }
        }
        let found = match next {
            Some(Answer::Addresses(list)) => Ok(list.clone()),
            _ => Err(io::Error::other("no such name")),
        };
        Box::pin(async move { found })
    }
}

/// Cases that can be tried one after the other, because they agree about names.
fn batches() -> Vec<(Zone, Vec<Case>)> {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../../../egress/tests/egress/data/ssrf.json")).unwrap();
    let mut all: Vec<(Zone, Vec<Case>)> = Vec::new();
    for case in cases {
        let agrees = |zone: &Zone| {
            let same = case.dns.iter().all(|(name, answer)| zone.get(name).is_none_or(|other| other == answer));
            // A name that nobody knows must not be known from another case.
            same && (!case.dns.is_empty() || case.expect != "could not be looked up")
        };
        match all.last_mut().filter(|(zone, cases)| cases.len() < BATCH && agrees(zone)) {
            Some((zone, cases)) => {
                zone.extend(case.dns.clone());
                cases.push(case);
            }
            None => all.push((case.dns.clone(), vec![case])),
        }
    }
    all
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Runs the test again in a network of its own, which nothing leaves. `false`: it is over out here.
fn inside() -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    // Whoever is not root becomes it to lay the network, and is nobody special again in it.
    let space: &[&str] = if is_root() { &["--net"] } else { &["--user", "--map-root-user", "--net"] };
    if !works("unshare", &[space, &["--", "ip", "link", "set", "lo", "up"]].concat()) {
        skips::skip("needs the programs `ip` and `unshare`, and user namespaces");
        return false;
    }
    let again = if is_root() { "" } else { "unshare --user --map-user=1000 --map-group=1000 --" };
    let mut command = Command::new("unshare");
    command.args(space).args(["--", "sh", "-ec", &format!("{LAY}\nexec {again} \"$@\""), "sh"]);
    command.arg(std::env::current_exe().unwrap());
    command
        .args(["--exact", &format!("ssrf::{NAME}"), "--nocapture"])
        .env(INSIDE, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(120);
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
            None => {
                child.kill().unwrap();
                break child.wait().unwrap();
            }
        }
    };
    assert!(status.success(), "{NAME} failed in its own network: {status}");
    false
}

/// Answers at every address there is, and counts who comes.
async fn everywhere() -> Arc<AtomicUsize> {
    let reached = Arc::new(AtomicUsize::new(0));
    for port in [80, 443] {
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await.unwrap();
        let count = reached.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let _ = stream.read(&mut [0; 4096]).await;
                    let _ =
                        stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nhi").await;
                });
            }
        });
    }
    reached
}

/// Tries them in turn, and says of each what came of it.
const SOURCE: &str = r#"export default { tools: { try: { run: async ({ urls }) => {
    const out = [];
    for (const url of urls) {
        try {
            const response = await fetch(url, { redirect: "error" });
            out.push(`reached ${response.status} ${await response.text()}`);
        } catch (error) {
            out.push(`refused ${error.cause?.message ?? error.message}`);
        }
    }
    return { out };
} } } }"#;

/// What the isolate itself does not let out: its parser is the door's, and fetch knows no such URLs.
fn stays_inside(expect: &str) -> bool {
    ["is no URL", "is neither http nor https", "has a user name or password in it"].contains(&expect)
}

#[test]
fn every_trick_from_inside_an_isolate() {
    if !inside() {
        return;
    }
    test(async {
        let reached = everywhere().await;
        let staged = Arc::new(Staged::default());
        let (many, connect_ms) = (1_000_000, 60_000);
        let limits = Limits { rate_per_host: many, rate_per_tenant: many, connect_ms, ..Limits::default() };
        let door = Door::serve(DoorSettings { limits, resolver: staged.clone(), ..DoorSettings::default() }).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings { any_host: true, ..Settings::default() };
        let host = start_with(dir.path(), settings, pools().await, Some(Arc::new(door))).await;
        let tenant = tenant_at(&host, "acme");
        tenant.deploy_with("s", Boundary::Call, SOURCE, "egress = [\"http://*\", \"https://*\"]").await;
        let client = tenant.at("s");
        let (mut wrong, mut named, mut allowed) = (Vec::new(), 0, 0);
        for (zone, cases) in batches() {
            *staged.0.lock().unwrap() = zone;
            let urls: Vec<&str> = cases.iter().map(|case| case.url.as_str()).collect();
            let before = reached.load(Ordering::SeqCst);
            let got = call(&client, "try", json!({ "urls": urls })).await;
            assert_ne!(got.result()["isError"], true, "{got:?}");
            let out: serde_json::Value = serde_json::from_str(&text(&got)).unwrap();
            let out: Vec<&str> = out["out"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
            assert_eq!(out.len(), cases.len());
            let may = cases.iter().filter(|case| case.expect == "allowed").count();
            for (case, out) in cases.iter().zip(out) {
                let met = match case.expect.as_str() {
                    // Whoever listens here speaks no TLS.
                    "allowed" => out == "reached 200 hi" || case.url.starts_with("https:") && !out.contains("never"),
                    expect if stays_inside(expect) => out.starts_with("refused ") || case.url.starts_with("data:"),
                    expect => {
                        named += 1;
                        out.starts_with("refused ") && out.contains(expect)
                    }
                };
                allowed += usize::from(out == "reached 200 hi");
                if !met {
                    wrong.push(format!("{:?} should be {:?}, is: {out}", case.url, case.expect));
                }
            }
            let came = reached.load(Ordering::SeqCst) - before;
            assert!(came <= may, "{came} connections for {may} that may");
        }
        assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
        assert!(named >= 550 && allowed >= 10, "{named} were refused by name, {allowed} arrived");
        host.shutdown().await;
    });
}
