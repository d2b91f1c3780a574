//! Whose processes lie alike in memory: those of one base zygote, and with a base for each tenant no others.

#[path = "support/mod.rs"]
mod support;

use isolate::{BaseFor, IsolateSettings, IsolateWall};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use support::processes::below;
use support::{Server, carrier, pool_on, run};

/// One at a time: each looks at all processes below this one.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Where the kernel put a process's stack and each library's code, as the kernel itself says.
fn layout(pid: u32) -> Option<BTreeMap<String, String>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let mut places = BTreeMap::new();
    for line in maps.lines() {
        let mut fields = line.split_whitespace();
        let (range, name) = (fields.next()?, fields.nth(4).unwrap_or_default());
        if name == "[stack]" || name == "[vdso]" || name.contains(".so") {
            let start = range.split('-').next()?.to_owned();
            places.entry(name.to_owned()).or_insert(start);
        }
    }
    // The lower end of a stack moves with its use.
    places.remove("[stack]");
    Some(places)
}

/// The deployment zygotes below this test.
fn zygotes() -> HashSet<u32> {
    below(std::process::id()).into_iter().filter(|(_, depth)| *depth == 3).map(|(pid, _)| pid).collect()
}

/// Plants one server for each of these tenants and gives the layout of its zygote.
async fn layouts(base: BaseFor, bases: usize, tenants: &[&str]) -> Vec<BTreeMap<String, String>> {
    let settings = IsolateSettings { base, bases, quick_forks: false, ..IsolateSettings::new(carrier()) };
    let pool = pool_on(Arc::new(IsolateWall::start(settings).await.expect("a wall")));
    let mut found = Vec::new();
    for tenant in tenants {
        let before = zygotes();
        let server = Server::new("return 1;").tenant(tenant).deploy();
        assert_eq!(run(&pool, &server, "{}").await, Ok("1".to_owned()));
        let new: Vec<u32> = zygotes().difference(&before).copied().collect();
        let [zygote] = new[..] else { panic!("one deployment has one zygote: {new:?}") };
        let layout = layout(zygote).expect("this test must be allowed to read /proc/PID/maps of its own processes");
        assert!(layout.keys().any(|name| name.contains("libc")), "{layout:?}");
        found.push(layout);
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_base_for_each_tenant_gives_each_its_own_layout() {
    let _alone = ALONE.lock().await;
    let found = layouts(BaseFor::Tenant, 8, &["acme", "globex", "acme"]).await;
    for (name, place) in &found[0] {
        assert_ne!(Some(place), found[1].get(name), "`{name}` lies where another tenant's does");
    }
    assert_eq!(found[0], found[2], "servers of one tenant come from one base");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_base_for_all_gives_all_the_same_layout() {
    let _alone = ALONE.lock().await;
    let found = layouts(BaseFor::Everybody, 8, &["acme", "globex"]).await;
    assert_eq!(found[0], found[1]);
}

/// A base that is given up for another tenant's serves its own deployments on; the next one gets a new base.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beyond_the_bound_the_one_used_longest_ago_is_given_up() {
    let _alone = ALONE.lock().await;
    let found = layouts(BaseFor::Tenant, 1, &["acme", "globex", "acme"]).await;
    assert_ne!(found[0], found[2], "its base was given up for another tenant's");
}
