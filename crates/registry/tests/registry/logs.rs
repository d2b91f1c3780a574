//! The tools' own logs.

use crate::common::{actor, deploy, fresh};
use registry::{Registry, ToolLine, rfc3339_now};
use std::fs;
use std::io::Write;
use std::path::Path;

fn line(text: &str) -> ToolLine {
    ToolLine { time: rfc3339_now(), call: "c1".to_owned(), level: "info".to_owned(), text: text.to_owned() }
}

fn texts(registry: &Registry, server: &str, n: usize) -> Vec<String> {
    registry.logs().tail("acme", server, n).unwrap().into_iter().map(|line| line.text).collect()
}

fn with_server(server: &str) -> crate::common::Fresh {
    let host = fresh();
    host.registry.create_tenant(&actor(), "acme").unwrap();
    deploy(&host.registry, "acme", server, "one").unwrap();
    host
}

#[test]
fn the_last_lines_come_oldest_first_and_outlive_the_host() {
    let host = with_server("prices");
    assert_eq!(texts(&host.registry, "prices", 10), [""; 0]);
    for number in 0..10 {
        host.registry.logs().append("acme", "prices", &line(&format!("line {number}\nand more")));
    }
    let host = host.reopen();
    assert_eq!(texts(&host.registry, "prices", 2), ["line 8\nand more", "line 9\nand more"]);
    assert_eq!(texts(&host.registry, "prices", 1000).len(), 10);
    assert_eq!(texts(&host.registry, "prices", 0).len(), 0);
    host.registry.logs().append("acme", "prices", &line("after"));
    assert_eq!(texts(&host.registry, "prices", 1), ["after"]);
}

#[test]
fn a_log_never_grows_beyond_its_bound() {
    let host = with_server("prices");
    for number in 0..3000 {
        host.registry.logs().append("acme", "prices", &line(&format!("{number} {}", "x".repeat(1000))));
    }
    let dir = host.dir.path().join("logs/acme");
    let bytes: u64 = fs::read_dir(&dir).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!((512 << 10..=1024 << 10).contains(&bytes), "{bytes}");
    let kept = texts(&host.registry, "prices", 10_000);
    assert!(kept.len() > 450 && kept.last().unwrap().starts_with("2999 "), "{}", kept.len());
    let numbers: Vec<u32> = kept.iter().map(|text| text.split(' ').next().unwrap().parse().unwrap()).collect();
    assert!(numbers.windows(2).all(|two| two[0] + 1 == two[1]), "none is missing in between");
    host.registry.logs().append("acme", "prices", &line(&"ä".repeat(1 << 20)));
    assert!(texts(&host.registry, "prices", 1)[0].len() <= (64 << 10) + 3);
}

#[tokio::test]
async fn followers_see_lines_of_their_server_until_it_is_gone() {
    let host = with_server("prices");
    deploy(&host.registry, "acme", "rates", "one").unwrap();
    let logs = host.registry.logs();
    let mut follower = logs.follow("acme", "prices");
    logs.append("acme", "rates", &line("of another"));
    logs.append("acme", "prices", &line("mine"));
    assert_eq!(follower.recv().await.unwrap().text, "mine");
    (0..1000).for_each(|_| logs.append("acme", "prices", &line("flood")));
    assert!(matches!(follower.recv().await, Err(tokio::sync::broadcast::error::RecvError::Lagged(_))));
    while follower.try_recv().is_ok() {}
    host.registry.delete_server(&actor(), "acme", "prices").unwrap();
    assert!(matches!(follower.recv().await, Err(tokio::sync::broadcast::error::RecvError::Closed)));
    assert!(logs.follow("acme", "nothing").recv().await.is_err());
}

#[test]
fn what_is_deleted_has_no_log_and_gets_none() {
    let host = with_server("prices");
    let logs = host.registry.logs();
    logs.append("acme", "prices", &line("secret"));
    let file = host.dir.path().join("logs/acme/prices.log");
    assert!(file.exists());
    host.registry.delete_server(&actor(), "acme", "prices").unwrap();
    logs.append("acme", "prices", &line("too late"));
    assert!(!file.exists());
    deploy(&host.registry, "acme", "prices", "one").unwrap();
    assert_eq!(texts(&host.registry, "prices", 10), [""; 0]);
    logs.append("acme", "prices", &line("again"));
    host.registry.delete_tenant(&actor(), "acme").unwrap();
    assert!(!host.dir.path().join("logs/acme").exists());
    assert!(logs.tail("acme", "prices", 1).is_err());
    assert!(logs.tail("..", "lock", 1).is_err());
}

/// The host died after the change and before the files were gone.
#[test]
fn logs_without_a_server_go_at_the_next_start() {
    let host = with_server("prices");
    host.registry.logs().append("acme", "prices", &line("kept"));
    let dir = host.stop();
    let logs = dir.path().join("logs");
    fs::create_dir(logs.join("gone")).unwrap();
    for orphan in ["gone/a.log", "acme/gone.log", "acme/gone.log.1"] {
        fs::write(logs.join(orphan), "{}\n").unwrap();
    }
    let registry = Registry::open(dir.path()).unwrap();
    assert_eq!(texts(&registry, "prices", 10), ["kept"]);
    let names = |dir: &Path| fs::read_dir(dir).unwrap().map(|file| file.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!((names(&logs).len(), names(&logs.join("acme")).len()), (1, 1));
}

#[test]
fn a_line_cut_short_spoils_no_other() {
    let host = with_server("prices");
    host.registry.logs().append("acme", "prices", &line("one"));
    let dir = host.stop();
    let path = dir.path().join("logs/acme/prices.log");
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(b"{\"time\":\"20").unwrap();
    let registry = Registry::open(dir.path()).unwrap();
    assert_eq!(texts(&registry, "prices", 10), ["one"]);
    registry.logs().append("acme", "prices", &line("two"));
    registry.logs().append("acme", "prices", &line("three"));
    assert_eq!(texts(&registry, "prices", 10), ["one", "two", "three"]);
}

#[test]
fn hundreds_of_servers_need_few_files() {
    let host = fresh();
    host.registry.create_tenant(&actor(), "acme").unwrap();
    for server in 0..200 {
        deploy(&host.registry, "acme", &format!("s{server}"), "one").unwrap();
    }
    for round in 0..3 {
        for server in 0..200 {
            host.registry.logs().append("acme", &format!("s{server}"), &line(&format!("{round}")));
        }
    }
    let open = fs::read_dir("/proc/self/fd").unwrap().filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
    let logs = host.dir.path().join("logs");
    let open = open.filter(|path| path.starts_with(&logs)).count();
    assert!((1..=64).contains(&open), "{open}");
    for server in 0..200 {
        assert_eq!(texts(&host.registry, &format!("s{server}"), 10), ["0", "1", "2"]);
    }
}

#[test]
fn many_threads_write_one_log() {
    let host = with_server("prices");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let logs = host.registry.logs();
            scope.spawn(move || (0..500).for_each(|n| logs.append("acme", "prices", &line(&format!("{writer} {n}")))));
        }
    });
    assert_eq!(texts(&host.registry, "prices", 10_000).len(), 2000);
}
