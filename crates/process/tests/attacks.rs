//! The eight attacks that people compare sandboxes by, each by a real server in Python and in Node.

mod support;

use sandbox::Code;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;
use support::{Server, pool, run, until_nothing_is_left};

/// One in each language that this machine has, with these arguments.
fn servers(arguments: &[&str]) -> Vec<(&'static str, Server)> {
    let python = Some(Server::new("attack.py", arguments));
    let node = Server::node("attack.mjs", arguments);
    [("python", python), ("node", node)].into_iter().filter_map(|(name, server)| Some((name, server?))).collect()
}

/// What an attack brings home, in each language.
async fn loot(attack: &str, mut input: Value) -> Vec<(&'static str, Value)> {
    input["do"] = json!(attack);
    let mut all = Vec::new();
    for (language, server) in servers(&[]) {
        let got = run(&pool(), &server.deploy(), input.clone()).await;
        all.push((language, got.unwrap_or_else(|failure| panic!("{language}: {failure}"))));
    }
    all
}

fn own_folder() -> &'static str {
    env!("CARGO_MANIFEST_DIR")
}

/// The variables that a test has from `cargo` are the host's secrets here.
fn assert_no_environment(language: &str, seen: &Value) {
    assert!(std::env::vars().any(|(name, _)| name == "CARGO_MANIFEST_DIR"), "there is something to steal");
    let text = seen.to_string();
    assert!(!text.contains("CARGO") && !text.contains(own_folder()), "{language}: {text}");
    let names: Vec<_> = seen[0].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["HOME", "LANG", "PATH", "TMPDIR"], "{language}");
}

#[tokio::test]
async fn the_hosts_environment() {
    for (language, seen) in loot("environment", json!({})).await {
        assert_no_environment(language, &seen);
    }
}

#[tokio::test]
async fn the_hosts_objects() {
    for (language, seen) in loot("objects", json!({ "pid": std::process::id() })).await {
        for link in seen["links"].as_array().unwrap().iter().filter_map(Value::as_str) {
            let own = ["pipe:", "anon_inode:", "socket:", "/dev/null", "/proc/", "gone"];
            assert!(own.iter().any(|own| link.starts_with(own)), "{language}: {link}");
        }
        let pids = seen["pids"].as_array().unwrap();
        assert!(pids.len() <= 2, "{language}: {pids:?}");
        assert!(!seen["killed"].as_array().unwrap().contains(&json!(std::process::id())), "{language}: {seen}");
        assert_eq!((&seen["memory"], &seen["sys"]), (&Value::Null, &Value::Null), "{language}");
    }
}

#[tokio::test]
async fn all_the_cpu() {
    for (language, server) in servers(&[]) {
        let deployment = server.limit(|limits| limits.cpu_ms = 300).deploy();
        let failure = run(&pool(), &deployment, json!({ "do": "spin" })).await.unwrap_err();
        assert_eq!(failure.code, Code::CpuLimit, "{language}: {failure}");
    }
}

#[tokio::test]
async fn all_the_memory() {
    for (language, server) in servers(&[]) {
        let failure = run(&pool(), &server.deploy(), json!({ "do": "hoard" })).await.unwrap_err();
        assert_eq!(failure.code, Code::MemoryLimit, "{language}: {failure}");
    }
}

#[tokio::test]
async fn the_hosts_files() {
    let manifest = format!("{}/Cargo.toml", own_folder());
    assert!(std::fs::exists(&manifest).unwrap(), "there is something to steal");
    let root = format!("/proc/1/root{manifest}");
    let input = json!({
        "read": [manifest, root, "/etc/shadow", "/proc/kcore", "/proc/1/maps", "/app/../../etc/shadow", "/dev/mem"],
        "listed": [own_folder(), "/root", "/proc/1/cwd", "/run", "/var", "/mnt", "/boot"],
        "write": ["/app/mine", "/etc/mine", "/usr/mine", "/mine", "/proc/sys/kernel/core_pattern", "/dev/mine"],
    });
    for (language, seen) in loot("files", input).await {
        let nothing = |value: &Value| value.is_null() || value == "";
        assert!(seen["read"].as_array().unwrap().iter().all(nothing), "{language}: {}", seen["read"]);
        let empty = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
        assert!(seen["listed"].as_array().unwrap().iter().all(empty), "{language}: {}", seen["listed"]);
        assert_eq!(seen["written"], json!([]), "{language}");
    }
}

#[tokio::test]
async fn the_network() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let to = json!([["127.0.0.1", port], ["169.254.169.254", 80], ["203.0.113.1", 443], ["a.example", 80]]);
    for (language, seen) in loot("network", json!({ "to": to })).await {
        assert_eq!(seen, json!([false, false, false, false]), "{language}");
    }
    assert!(listener.accept().is_err(), "somebody came");
}

#[tokio::test]
async fn a_bomb_of_processes() {
    for (language, server) in servers(&[]) {
        let bomb = server.limit(|limits| (limits.time_ms, limits.cpu_ms) = (1500, 60_000));
        let (pool, deployment) = (pool(), bomb.deploy());
        let bombing = tokio::spawn({
            let (pool, deployment) = (pool.clone(), deployment.clone());
            async move { run(&pool, &deployment, json!({ "do": "bomb" })).await }
        });
        let mut most = 0;
        while !bombing.is_finished() {
            most = most.max(support::processes::below(std::process::id()).len());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let failure = bombing.await.expect("no panic").expect_err("it never answers");
        assert!(matches!(failure.code, Code::TimeLimit | Code::CpuLimit | Code::MemoryLimit), "{language}: {failure}");
        assert!((4..=60).contains(&most), "{language}: {most} processes");
        drop((pool, deployment));
        until_nothing_is_left().await;
    }
}

/// Whatever a package does while it is loaded is done in the same jail, under the limits of initialisation.
#[tokio::test]
async fn code_that_runs_when_it_is_imported() {
    for (language, server) in servers(&["environment"]) {
        let seen = run(&pool(), &server.deploy(), json!({ "do": "early" })).await.unwrap();
        assert_no_environment(language, &seen);
    }
    let theft =
        json!({ "read": [format!("{}/Cargo.toml", own_folder())], "listed": ["/root"], "write": ["/app/mine"] });
    for (language, server) in servers(&["files", &theft.to_string()]) {
        let seen = run(&pool(), &server.deploy(), json!({ "do": "early" })).await.unwrap();
        assert_eq!(seen, json!({ "read": [null], "listed": [null], "written": [] }), "{language}");
    }
    for attack in ["spin", "hoard"] {
        for (language, server) in servers(&[attack]) {
            let deployment = server.limit(|limits| limits.init_cpu_ms = 1000).deploy();
            let failure = run(&pool(), &deployment, json!({})).await.unwrap_err();
            assert_eq!(failure.code, Code::InitLimit, "{language}, {attack}: {failure}");
        }
    }
}
