//! Keys change, values stay; and a host that is killed meanwhile has all old keys or all new ones.

use crate::common::{actor, audit_lines};
use crate::vault::{blob, code, get, master, set, tokens, unlocked, value};
use registry::Registry;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::tempdir;

const ROUNDS: u64 = 12;
const TENANTS: [&str; 3] = ["acme", "other", "third"];
const SECRETS: usize = 30;

#[test]
fn a_tenant_gets_a_new_key_and_keeps_its_values() {
    let host = unlocked();
    let registry = &host.registry;
    registry.rotate_tenant_key(&actor(), "acme").unwrap(); // there is nothing yet
    set(registry, "acme", "API_TOKEN", "tok-one-long");
    set(registry, "acme", "API_TOKEN", "tok-two-long");
    set(registry, "other", "API_TOKEN", "tok-other-long");
    registry.set_provider(&actor(), "acme", "github", json!({ "a": 1 }), Some(value("client"))).unwrap();
    registry.set_connection(&actor(), "acme", "github", "ann", value(r#"{"t":1}"#), Some(9)).unwrap();
    let before = (registry.secrets("acme").unwrap(), registry.connections("acme").unwrap());
    let keys =
        |tenant: &str| blob(host.dir.path(), &format!("SELECT wrapped FROM tenant_keys WHERE tenant = '{tenant}'"));
    let (mine, others) = (keys("acme"), keys("other"));
    for _ in 0..3 {
        registry.rotate_tenant_key(&actor(), "acme").unwrap();
    }
    assert_ne!(keys("acme"), mine);
    assert_eq!(keys("other"), others);
    assert_eq!(code(registry.rotate_tenant_key(&actor(), "nobody")), "not_found");
    let host = host.reopen();
    host.registry.unlock(master(1)).unwrap();
    let registry = &host.registry;
    assert_eq!((registry.secrets("acme").unwrap(), registry.connections("acme").unwrap()), before);
    assert_eq!(get(registry, "acme", "API_TOKEN"), Ok(Some("tok-two-long".to_owned())));
    assert_eq!(get(registry, "other", "API_TOKEN"), Ok(Some("tok-other-long".to_owned())));
    assert_eq!(tokens(registry, "acme", "github", "ann"), Ok(Some(r#"{"t":1}"#.to_owned())));
    assert!(registry.provider("acme", "github").unwrap().unwrap().client_secret.is_some());
    let versions: Vec<_> = audit_lines(host.dir.path())
        .into_iter()
        .filter(|line| line["action"] == "secret.rotate")
        .map(|line| line["detail"]["key_version"].as_u64())
        .collect();
    assert_eq!(versions, [Some(2), Some(3), Some(4)]);
}

#[test]
fn the_master_key_changes_and_the_old_one_is_good_for_nothing() {
    let host = unlocked();
    let registry = &host.registry;
    set(registry, "acme", "API_TOKEN", "tok-one-long");
    set(registry, "other", "API_TOKEN", "tok-other-long");
    assert_eq!(code(registry.rotate_master_key(&actor(), master(1))), "bad_value", "that is no other key");
    let old = registry.directory();
    registry.rotate_master_key(&actor(), master(2)).unwrap();
    set(registry, "acme", "SECOND", "sealed after it");
    registry.create_tenant(&actor(), "third").unwrap();
    set(registry, "third", "API_TOKEN", "a new tenant's");
    drop(old);
    let host = host.reopen();
    let registry = &host.registry;
    assert_eq!(code(registry.unlock(master(1))), "wrong_master_key");
    registry.unlock(master(2)).unwrap();
    assert_eq!(get(registry, "acme", "API_TOKEN"), Ok(Some("tok-one-long".to_owned())));
    assert_eq!(get(registry, "acme", "SECOND"), Ok(Some("sealed after it".to_owned())));
    assert_eq!(get(registry, "other", "API_TOKEN"), Ok(Some("tok-other-long".to_owned())));
    assert_eq!(get(registry, "third", "API_TOKEN"), Ok(Some("a new tenant's".to_owned())));
}

/// Whoever reads while keys change always finds a key that fits.
#[test]
fn nobody_who_reads_meanwhile_notices() {
    let host = unlocked();
    set(&host.registry, "acme", "API_TOKEN", "tok-one-long");
    let done = std::sync::atomic::AtomicBool::new(false);
    let reads = std::thread::scope(|scope| {
        let read = || {
            let mut reads = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                assert_eq!(get(&host.registry, "acme", "API_TOKEN"), Ok(Some("tok-one-long".to_owned())));
                reads += 1;
            }
            reads
        };
        let reader = scope.spawn(read);
        for number in 2..20 {
            host.registry.rotate_master_key(&actor(), master(number)).unwrap();
            host.registry.rotate_tenant_key(&actor(), "acme").unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        reader.join().unwrap()
    });
    assert!(reads > 18, "{reads}");
}

fn say(text: &str) {
    println!("\n{text}");
    std::io::stdout().flush().unwrap();
}

/// The host that is killed. It changes keys for ever.
fn host(dir: &str) {
    let mut number: u64 = std::env::var("REGISTRY_TEST_MASTER").unwrap().parse().unwrap();
    let registry = Registry::open(Path::new(dir)).unwrap();
    registry.unlock(master(number)).unwrap();
    loop {
        say(&format!("try {}", number + 1));
        registry.rotate_master_key(&actor(), master(number + 1)).unwrap();
        number += 1;
        say(&format!("done {number}"));
        for tenant in TENANTS {
            registry.rotate_tenant_key(&actor(), tenant).unwrap();
        }
    }
}

/// Runs a host, kills it a while after its first change, and returns the last master key that it confirmed, if any.
fn run_and_kill(dir: &Path, number: u64, after: Duration) -> Option<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "rotation::a_host_that_is_killed_while_keys_change_has_all_old_or_all_new_ones",
            "--nocapture",
        ])
        .env("REGISTRY_TEST_DIR", dir)
        .env("REGISTRY_TEST_MASTER", number.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    assert!(lines.any(|line| line.starts_with("try ")), "it is up");
    let reader = std::thread::spawn(move || lines.filter_map(|line| line.strip_prefix("done ")?.parse().ok()).last());
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

#[test]
fn a_host_that_is_killed_while_keys_change_has_all_old_or_all_new_ones() {
    if let Ok(dir) = std::env::var("REGISTRY_TEST_DIR") {
        return host(&dir);
    }
    let dir = tempdir().unwrap();
    let text = |tenant: &str, number: usize| format!("{tenant}-value-{number}");
    let mut current = 1;
    {
        let registry = Registry::open(dir.path()).unwrap();
        registry.unlock(master(current)).unwrap();
        for tenant in TENANTS {
            registry.create_tenant(&actor(), tenant).unwrap();
            for number in 0..SECRETS {
                set(&registry, tenant, &format!("S{number}"), &text(tenant, number));
            }
            registry.set_provider(&actor(), tenant, "github", json!({}), Some(value("client"))).unwrap();
            let tokens = format!(r#"{{"of":"{tenant}"}}"#);
            registry.set_connection(&actor(), tenant, "github", "ann", value(&tokens), None).unwrap();
        }
    }
    let begun = Instant::now();
    let (first, mut random) = (current, 88_172_645_463_325_252u64); // the same moments each time
    for round in 0..ROUNDS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let confirmed = run_and_kill(dir.path(), current, Duration::from_millis(random % 150)).unwrap_or(current);
        let registry = Registry::open(dir.path()).unwrap();
        let fits: Vec<u64> = (1..confirmed + 3).filter(|number| registry.unlock(master(*number)).is_ok()).collect();
        assert!(fits == [confirmed] || fits == [confirmed + 1], "round {round}: {confirmed} confirmed, {fits:?} fit");
        current = fits[0];
        for tenant in TENANTS {
            for number in 0..SECRETS {
                assert_eq!(get(&registry, tenant, &format!("S{number}")), Ok(Some(text(tenant, number))));
            }
            assert_eq!(tokens(&registry, tenant, "github", "ann"), Ok(Some(format!(r#"{{"of":"{tenant}"}}"#))));
            assert!(registry.provider(tenant, "github").unwrap().unwrap().client_secret.is_some());
        }
        assert!(begun.elapsed() < Duration::from_secs(240), "it takes too long");
    }
    assert!(current > first + ROUNDS / 2, "the hosts hardly did anything: {current}");
    let rotations = audit_lines(dir.path()).iter().filter(|line| line["action"] == "master_key.rotate").count();
    assert_eq!(rotations as u64, current - first, "each is in the log, once");
}
