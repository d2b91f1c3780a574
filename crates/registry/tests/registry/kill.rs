//! A host that is killed at any moment loses nothing it had confirmed, and leaves nothing half done.

use crate::common::{actor, audit_lines, call, call_key, deploy_well};
use registry::{Registry, TenantPatch, token_hash, verify};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::tempdir;

const ROUNDS: u32 = 24;

/// Says what is done, before and after: `try …`, `done …`. A line goes into the pipe whole or not at all.
fn say(text: &str) {
    println!("\n{text}");
    std::io::stdout().flush().unwrap();
}

/// The host that is killed. It makes changes for ever, and calls besides.
fn host(dir: &str) {
    let round = std::env::var("REGISTRY_TEST_ROUND").unwrap();
    let registry = Registry::open(Path::new(dir)).unwrap();
    for _ in 0..2 {
        let registry = registry.clone();
        std::thread::spawn(move || {
            loop {
                registry.audit().append(&call("acme", "prices", "ok")).unwrap();
                std::thread::sleep(Duration::from_micros(300));
            }
        });
    }
    for number in 0.. {
        let tenant = format!("t{round}-{number}");
        say(&format!("try tenant {tenant}"));
        let new = registry.create_tenant(&actor(), &tenant).unwrap();
        say(&format!("done tenant {tenant} {}", new.call_key.expose()));

        for version in 0..2 {
            say(&format!("try deploy {tenant} {version}"));
            let made = deploy_well(&registry, &tenant, "prices", &source(&tenant, version));
            say(&format!("done deploy {tenant} {version} {}", made.id));
        }
        say(&format!("try key {tenant}"));
        let (key, token) = registry.create_key(&actor(), call_key(&tenant, "extra")).unwrap();
        say(&format!("done key {tenant} {}", token.expose()));

        say(&format!("try revoke {tenant} {}", token.expose()));
        registry.revoke_key(&actor(), Some(&tenant), &key.id).unwrap();
        say(&format!("done revoke {tenant} {}", token.expose()));

        say(&format!("try update {tenant}"));
        registry.update_tenant(&actor(), &tenant, TenantPatch { weight: Some(7), ..TenantPatch::default() }).unwrap();
        say(&format!("done update {tenant}"));
        if number % 3 == 2 {
            say(&format!("try delete {tenant}"));
            registry.delete_tenant(&actor(), &tenant).unwrap();
            say(&format!("done delete {tenant}"));
        }
    }
}

fn source(tenant: &str, version: u32) -> String {
    format!("{tenant} {version} {}", "x".repeat(20_000))
}

/// What the killed hosts confirmed, of one tenant.
#[derive(Default)]
struct Tenant {
    made: bool,
    token: String,
    version: Option<u32>,
    extra: String,
    revoked: bool,
    updated: bool,
    deleted: bool,
    /// The step that was begun and not confirmed.
    open: Option<String>,
}

impl Tenant {
    fn hear(&mut self, done: bool, step: &str, rest: &[&str]) {
        if !done {
            self.open = Some(step.to_owned());
            return;
        }
        self.open = None;
        match step {
            "tenant" => (self.made, self.token) = (true, rest[0].to_owned()),
            "deploy" => self.version = Some(rest[0].parse().unwrap()),
            "key" => self.extra = rest[0].to_owned(),
            "revoke" => self.revoked = true,
            "update" => self.updated = true,
            "delete" => self.deleted = true,
            other => panic!("{other}"),
        }
    }

    fn is_open(&self, step: &str) -> bool {
        self.open.as_deref() == Some(step)
    }

    fn check(&self, name: &str, registry: &Registry) {
        let directory = registry.directory();
        let Some(tenant) = directory.tenants.get(name) else {
            assert!(!self.made || self.deleted || self.is_open("delete"), "{name} is lost");
            assert!(directory.keys.values().all(|key| key.tenant.as_deref() != Some(name)), "{name}: keys remain");
            return;
        };
        assert!(!self.deleted, "{name} is back");
        assert!(self.made || self.is_open("tenant"), "{name} was never asked for");
        let keys = registry.keys(Some(name), None, usize::MAX, |_| true).unwrap().unwrap();
        assert!(keys.len() >= 3, "{name} is half there");
        if self.made {
            assert!(directory.keys.contains_key(&token_hash(&self.token)), "{name} has lost its key");
        }
        match self.version {
            None => assert!(tenant.servers.is_empty() || self.is_open("deploy"), "{name}"),
            Some(version) => {
                let current = tenant.servers["prices"].current.clone().unwrap();
                let text = registry.bundle(name, "prices", &current.id).unwrap().source;
                let newer = self.is_open("deploy") && text == source(name, version + 1).as_bytes();
                assert!(text == source(name, version).as_bytes() || newer, "{name}: another source");
            }
        }
        let extra = directory.keys.contains_key(&token_hash(&self.extra));
        match (self.extra.is_empty(), self.revoked) {
            (false, false) => assert!(extra || self.is_open("revoke"), "{name} has lost its extra key"),
            _ => assert!(!extra, "{name}: a revoked key is good"),
        }
        assert!(tenant.weight == if self.updated { 7 } else { 1 } || self.is_open("update"), "{name}");
    }
}

/// Runs a host, kills it after a while, and returns what it said until then.
fn run_and_kill(dir: &Path, round: u32, after: Duration) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::what_was_confirmed_is_there_and_nothing_is_half_done", "--nocapture"])
        .env("REGISTRY_TEST_DIR", dir)
        .env("REGISTRY_TEST_ROUND", round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        let lines = output.lines().map(|line| line.unwrap());
        lines.filter(|line| line.starts_with("try ") || line.starts_with("done ")).collect::<Vec<_>>()
    });
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

#[test]
fn what_was_confirmed_is_there_and_nothing_is_half_done() {
    if let Ok(dir) = std::env::var("REGISTRY_TEST_DIR") {
        return host(&dir);
    }
    let dir = tempdir().unwrap();
    let begun = Instant::now();
    let mut tenants: BTreeMap<String, Tenant> = BTreeMap::new();
    let mut random = 88_172_645_463_325_252u64; // the same moments each time; what happens in them is chance enough
    let mut confirmed = 0;
    for round in 0..ROUNDS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let lines = run_and_kill(dir.path(), round, Duration::from_millis(20 + random % 250));
        for line in &lines {
            let words: Vec<&str> = line.split(' ').collect();
            confirmed += u32::from(words[0] == "done");
            let tenant = tenants.entry(words[2].to_owned()).or_default();
            tenant.hear(words[0] == "done", words[1], &words[3..]);
        }
        // One that was killed while it made its directory has nothing to verify yet.
        if dir.path().join("bulkhead.db-wal").exists() && dir.path().join("audit").exists() {
            verify(dir.path(), None).unwrap(); // as the killed host left it
        }
        let registry = Registry::open(dir.path()).unwrap();
        assert_eq!(registry.health().problems, [""; 0]);
        tenants.iter().for_each(|(name, tenant)| tenant.check(name, &registry));
        // What was not confirmed is one or the other from here on.
        let directory = registry.directory();
        for (name, tenant) in tenants.iter_mut().filter(|(_, tenant)| tenant.open.is_some()) {
            settle(tenant, name, &registry, directory.tenants.contains_key(name));
        }
        let known: BTreeSet<_> = directory.tenants.keys().collect();
        assert!(known.iter().all(|name| tenants.contains_key(*name)), "somebody nobody asked for");
        drop(registry);
        verify(dir.path(), None).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(240), "it takes too long");
    }
    println!("{confirmed} confirmed changes over {ROUNDS} kills");
    assert!(confirmed > ROUNDS, "the hosts hardly did anything: {confirmed}");
    check_events(dir.path(), &tenants);
}

fn settle(tenant: &mut Tenant, name: &str, registry: &Registry, exists: bool) {
    match tenant.open.take().as_deref() {
        Some("tenant") => tenant.made = exists,
        Some("delete") => tenant.deleted = !exists,
        Some("deploy") => {
            let directory = registry.directory();
            let current = directory.server(name, "prices").and_then(|server| server.current.clone());
            tenant.version = current.map(|current| {
                let text = registry.bundle(name, "prices", &current.id).unwrap().source;
                (0..2).find(|version| text == source(name, *version).as_bytes()).unwrap()
            });
        }
        Some("revoke") => tenant.revoked = !registry.directory().keys.contains_key(&token_hash(&tenant.extra)),
        Some("update") => tenant.updated = registry.directory().tenants[name].weight == 7,
        _ => {}
    }
    // Its token is known to nobody if it was never confirmed.
    if tenant.token.is_empty() && tenant.made {
        let directory = registry.directory();
        assert!(directory.keys.values().filter(|key| key.tenant.as_deref() == Some(name)).count() == 3);
        tenant.made = false;
        tenant.open = Some("tenant".to_owned());
    }
}

/// Every change that is there is in the log, once; and nothing is in the log that did not happen.
fn check_events(dir: &Path, tenants: &BTreeMap<String, Tenant>) {
    let mut counts: BTreeMap<(String, String), u32> = BTreeMap::new();
    for line in audit_lines(dir).iter().filter(|line| line["kind"] == "change") {
        let key = (line["action"].as_str().unwrap().to_owned(), line["tenant"].as_str().unwrap_or("-").to_owned());
        *counts.entry(key).or_default() += 1;
    }
    let count = |action: &str, tenant: &str| counts.get(&(action.to_owned(), tenant.to_owned())).copied().unwrap_or(0);
    for (name, tenant) in tenants {
        let exists = tenant.made || tenant.is_open("tenant");
        assert_eq!(count("tenant.create", name), u32::from(exists), "{name}");
        assert_eq!(count("tenant.delete", name), u32::from(tenant.deleted), "{name}");
        assert_eq!(count("key.revoke", name), u32::from(tenant.revoked), "{name}");
        assert_eq!(count("tenant.update", name), u32::from(tenant.updated), "{name}");
        assert_eq!(count("server.deploy", name), tenant.version.map_or(0, |version| version + 1), "{name}");
    }
    assert_eq!(count("key.create", "-"), 1, "one operator's key");
}
