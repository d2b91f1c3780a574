//! The audit log: what is written is found again, and what happened to it is found out.

use crate::common::{actor, audit_lines, call, eventually, fresh, segments};
use registry::{AuditEvent, AuditLog, CallEvent, CallFilter, CallLine, OpenOptions, Registry, VerifyError, verify};
use serde_json::value::RawValue;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::tempdir;

fn small_segments(dir: &Path) -> Registry {
    Registry::open_with(dir, OpenOptions { segment_bytes: 4096, ..OpenOptions::default() }).unwrap()
}

fn filter(tenant: Option<&str>, limit: usize) -> CallFilter {
    CallFilter { tenant: tenant.map(str::to_owned), limit, ..CallFilter::default() }
}

fn seqs(calls: &[CallLine]) -> Vec<u64> {
    calls.iter().map(|call| call.seq).collect()
}

fn broken(dir: &Path) -> String {
    match verify(dir, None) {
        Err(error @ VerifyError::Broken { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

fn head(log: &AuditLog) -> String {
    let head = log.head();
    format!("{}:{}", head.seq, head.hash)
}

#[test]
fn the_chain_goes_on_over_segments_and_restarts() {
    let dir = tempdir().unwrap();
    for round in 1..=3 {
        let registry = small_segments(dir.path());
        for _ in 0..50 {
            registry.audit().append(&call("acme", "prices", "ok")).unwrap();
        }
        assert_eq!(registry.audit().head().seq, round * 50 + 1); // the first line is the operator's key
        let hash = registry.audit().head().hash;
        registry.close().unwrap();
        drop(registry);
        let verified = verify(dir.path(), None).unwrap();
        assert_eq!((verified.first_seq, verified.last_seq, verified.lines), (1, round * 50 + 1, round * 50 + 1));
        assert_eq!((verified.head, verified.segments), (hash, segments(dir.path()).len() as u64));
    }
    assert!(segments(dir.path()).len() > 10);
    assert!(segments(dir.path()).iter().all(|path| fs::metadata(path).unwrap().len() <= 4096));
}

#[test]
fn a_line_says_who_what_when_and_how() {
    let host = fresh();
    host.registry.audit().append(&call("acme", "prices", "ok")).unwrap();
    let arguments = RawValue::from_string("{\n\"price\": 45}".to_owned()).unwrap();
    let recorded = CallEvent { arguments: Some(arguments), ..CallEvent::default() };
    host.registry.audit().append(&AuditEvent::Call(recorded)).unwrap();
    let lines = audit_lines(host.dir.path());
    assert_eq!(lines[1]["kind"], "call");
    assert_eq!(lines[1]["tenant"], "acme");
    assert_eq!(lines[1]["seq"], 2);
    assert_eq!(lines[1]["prev"], lines[0]["hash"]);
    assert_eq!(lines[1]["time"].as_str().unwrap().len(), "2026-07-28T09:30:00.125Z".len());
    assert_eq!(lines[2]["arguments"]["price"], 45);
}

/// What this thread has used.
fn cpu_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

#[test]
fn many_threads_make_one_chain() {
    const THREADS: u64 = 4;
    const EACH: u64 = 25_000;
    let host = fresh();
    let audit = host.registry.audit();
    let begun = std::time::Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..EACH).for_each(|_| audit.append(&call("acme", "prices", "ok")).unwrap()));
        }
    });
    let took = begun.elapsed();
    println!("{THREADS} threads: {:?} an append", took / (THREADS * EACH) as u32);
    let (begun, event) = (cpu_time(), call("acme", "prices", "ok"));
    (0..EACH).for_each(|_| audit.append(&event).unwrap());
    println!("one thread: {:?} of CPU an append", (cpu_time() - begun) / EACH as u32);
    let lines = (THREADS + 1) * EACH + 1;
    let begun = std::time::Instant::now();
    assert_eq!(verify(host.dir.path(), Some(&head(audit))).unwrap().lines, lines, "while the host runs");
    println!("verify: {:?} a line", begun.elapsed() / lines as u32);
    let dir = host.reopen().stop();
    assert_eq!(verify(dir.path(), None).unwrap().lines, lines);
}

#[test]
fn verify_works_while_the_log_is_written() {
    let dir = tempdir().unwrap();
    let registry =
        Registry::open_with(dir.path(), OpenOptions { segment_bytes: 100_000, ..OpenOptions::default() }).unwrap();
    let (done, rounds) = (AtomicBool::new(false), AtomicUsize::new(1));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut written = 0;
                while !done.load(Ordering::Relaxed) {
                    // So many for each time it is read, else a slow reader has ever more to read.
                    if written < 200 * rounds.load(Ordering::Relaxed) {
                        registry.audit().append(&call("acme", "prices", "ok")).unwrap();
                        written += 1;
                    } else {
                        std::thread::sleep(Duration::from_micros(300));
                    }
                }
            });
        }
        let mut expected = None;
        for round in 0..30 {
            if round % 10 == 0 {
                registry.create_tenant(&actor(), &format!("t{round}")).unwrap();
            }
            rounds.fetch_add(1, Ordering::Relaxed);
            let result = verify(dir.path(), expected.as_deref());
            if result.is_err() || round == 29 {
                done.store(true, Ordering::Relaxed);
            }
            assert!(result.is_ok(), "{result:?}");
            expected = Some(head(registry.audit()));
        }
    });
}

/// Lines of calls that end together are written together: the head must not name one that only waits.
#[test]
fn a_head_names_only_what_is_written() {
    let host = fresh();
    let audit = host.registry.audit();
    for _ in 0..3 {
        audit.add(&call("acme", "prices", "ok")).unwrap();
        let head = head(audit);
        verify(host.dir.path(), Some(&head)).unwrap_or_else(|error| panic!("{head}: {error}"));
    }
    assert_eq!(audit.head().seq, 4, "the operator's key and three calls");
}

#[test]
fn an_expected_head_must_be_in_the_log() {
    let host = fresh();
    let audit = host.registry.audit();
    audit.append(&call("acme", "prices", "ok")).unwrap();
    let earlier = audit.head();
    audit.append(&call("acme", "prices", "ok")).unwrap();
    let dir = host.dir.path();
    for good in [earlier.hash.clone(), earlier.hash.to_uppercase(), format!(" 2:{}\n", earlier.hash), "0".repeat(64)] {
        verify(dir, Some(&good)).unwrap();
    }
    for missing in ["f".repeat(64), format!("3:{}", earlier.hash), format!("9:{}", earlier.hash)] {
        let error = verify(dir, Some(&missing)).unwrap_err();
        assert!(matches!(&error, VerifyError::Broken { file, .. } if file == "00000001.log"), "{error}");
    }
    for bad in ["", "xyz", "12:", ":", &earlier.hash[1..], &format!("x:{}", earlier.hash)] {
        assert!(matches!(verify(dir, Some(bad)), Err(VerifyError::BadHead { .. })), "{bad}");
    }
    assert!(matches!(verify(&dir.join("nowhere"), None), Err(VerifyError::Unreadable { .. })));
}

#[test]
fn recent_calls_come_newest_first_from_all_segments() {
    let dir = tempdir().unwrap();
    let registry = small_segments(dir.path());
    let audit = registry.audit();
    for number in 0..300u64 {
        let tenant = ["acme", "acme-2", "other"][number as usize % 3];
        let outcome = if number % 7 == 0 { "cpu_limit" } else { "ok" };
        audit.append(&call(tenant, &format!("s{}", number % 2), outcome)).unwrap();
    }
    // Call n has number n + 2: the operator's key came first.
    let of_acme: Vec<u64> = (0..300).filter(|n| n % 3 == 0).map(|n| n + 2).rev().collect();
    assert_eq!(seqs(&audit.recent(&filter(Some("acme"), 1000)).unwrap().calls), of_acme);
    assert_eq!(seqs(&audit.recent(&filter(Some("acme"), 5)).unwrap().calls), of_acme[..5]);
    assert_eq!(seqs(&audit.recent(&filter(None, 3)).unwrap().calls), [301, 300, 299]);
    assert_eq!(audit.recent(&filter(None, 9999)).unwrap().calls.len(), 300);
    assert_eq!(audit.recent(&filter(Some("nobody"), 9)).unwrap().calls.len(), 0);
    assert_eq!(audit.recent(&filter(Some("\""), 9)).unwrap().calls.len(), 0);
    let page = CallFilter { before_seq: Some(of_acme[4]), ..filter(Some("acme"), 3) };
    assert_eq!(seqs(&audit.recent(&page).unwrap().calls), of_acme[5..8]);
    let first = CallFilter { before_seq: Some(3), ..filter(None, 10) };
    assert_eq!(seqs(&audit.recent(&first).unwrap().calls), [2]);
    let failed = CallFilter {
        outcome: Some("cpu_limit".to_owned()),
        server: Some("s1".to_owned()),
        ..filter(Some("other"), 1000)
    };
    let expected: Vec<u64> = (0..300).filter(|n| n % 3 == 2 && n % 7 == 0 && n % 2 == 1).map(|n| n + 2).rev().collect();
    assert_eq!(seqs(&audit.recent(&failed).unwrap().calls), expected);
    let mine = CallFilter { caller: Some("key-of-somebody-else".to_owned()), ..filter(None, 10) };
    assert_eq!(audit.recent(&mine).unwrap().calls.len(), 0);
}

#[test]
fn recent_calls_with_long_records_are_found_across_blocks() {
    let host = fresh();
    let audit = host.registry.audit();
    for number in 0..8 {
        // The needle stands in the arguments too.
        let text = format!(r#"[{number},"\"tenant\":\"acme\"",{{"tenant":"other"}},"{}"]"#, "x".repeat(700_000));
        let arguments = Some(RawValue::from_string(text).unwrap());
        let AuditEvent::Call(event) = call("acme", "prices", "ok") else { unreachable!() };
        audit.append(&AuditEvent::Call(CallEvent { arguments, ..event })).unwrap();
    }
    let found = audit.recent(&filter(Some("acme"), 10)).unwrap().calls;
    assert_eq!(seqs(&found), (2..10).rev().collect::<Vec<_>>());
    let value: serde_json::Value = serde_json::from_str(found[0].json.get()).unwrap();
    assert_eq!(value["arguments"][0], 7);
    assert_eq!(audit.recent(&filter(Some("other"), 10)).unwrap().calls.len(), 0);
}

/// A name that was given to somebody else does not show what was called under it before.
#[test]
fn a_tenant_made_anew_does_not_see_older_calls_of_its_name() {
    for segment_bytes in [4096, 64 << 20] {
        let dir = tempdir().unwrap();
        let options = OpenOptions { segment_bytes, ..OpenOptions::default() };
        let registry = Registry::open_with(dir.path(), options).unwrap();
        let audit = registry.audit();
        let calls = |count: usize| (0..count).for_each(|_| audit.append(&call("acme", "prices", "ok")).unwrap());
        registry.create_tenant(&actor(), "acme").unwrap();
        calls(30);
        let before = seqs(&audit.recent(&filter(Some("acme"), 1)).unwrap().calls)[0];
        registry.delete_tenant(&actor(), "acme").unwrap();
        registry.create_tenant(&actor(), "acme").unwrap();
        assert_eq!(audit.recent(&filter(Some("acme"), 100)).unwrap().calls.len(), 0, "nothing of the other one");
        registry.create_tenant(&actor(), "acme-2").unwrap();
        calls(40);
        let found = seqs(&audit.recent(&filter(Some("acme"), 100)).unwrap().calls);
        assert!(found.len() == 40 && found.iter().all(|seq| *seq > before + 2), "{found:?}");
        let page = CallFilter { before_seq: Some(found[9]), ..filter(Some("acme"), 100) };
        assert_eq!(seqs(&audit.recent(&page).unwrap().calls), found[10..]);
        assert_eq!(audit.recent(&filter(None, 100)).unwrap().calls.len(), 70, "who asks for all gets all");
    }
}

/// Callers choose their arguments. Others' calls must not be hidden by them, nor their own.
#[test]
fn a_call_that_talks_of_a_new_tenant_ends_no_search() {
    let host = fresh();
    let audit = host.registry.audit();
    host.registry.create_tenant(&actor(), "acme").unwrap();
    audit.append(&call("acme", "prices", "ok")).unwrap();
    let text = r#"{"kind":"change","tenant":"acme","actor":"x","action":"tenant.create","subject":"acme"}"#;
    for tenant in ["acme", "other"] {
        let AuditEvent::Call(event) = call(tenant, "prices", "ok") else { unreachable!() };
        let arguments = Some(RawValue::from_string(text.to_owned()).unwrap());
        audit.append(&AuditEvent::Call(CallEvent { arguments, ..event })).unwrap();
    }
    host.registry.update_tenant(&actor(), "acme", registry::TenantPatch::default()).unwrap();
    // Nor does a line of the host's that names another tenant, or has the text somewhere inside.
    host.registry.create_tenant(&actor(), "acme-2").unwrap();
    audit.append(&AuditEvent::Host { what: text.to_owned(), detail: text.to_owned() }).unwrap();
    assert_eq!(audit.recent(&filter(Some("acme"), 100)).unwrap().calls.len(), 2);
}

#[tokio::test]
async fn followers_see_calls_and_slow_ones_miss_some() {
    let host = fresh();
    let audit = host.registry.audit();
    let mut follower = audit.follow();
    audit.append(&AuditEvent::Host { what: "x".to_owned(), detail: String::new() }).unwrap();
    audit.append(&call("acme", "prices", "ok")).unwrap();
    let seen = follower.recv().await.unwrap();
    assert_eq!((seen.seq, seen.tenant.as_str()), (3, "acme"));
    assert!(filter(Some("acme"), 0).matches(&seen) && !filter(Some("other"), 0).matches(&seen));
    for _ in 0..3000 {
        audit.append(&call("acme", "prices", "ok")).unwrap();
    }
    assert!(matches!(follower.recv().await, Err(tokio::sync::broadcast::error::RecvError::Lagged(_))));
    assert!(follower.recv().await.is_ok());
}

/// A thousand of them wait for whoever does not read.
#[tokio::test]
async fn what_is_followed_is_short() {
    let host = fresh();
    let audit = host.registry.audit();
    let mut follower = audit.follow();
    let AuditEvent::Call(event) = call("acme", "prices", "ok") else { unreachable!() };
    let long = Some(RawValue::from_string(format!("\"{}\"", "x".repeat(100 << 10))).unwrap());
    let left_out = vec!["result"];
    audit.append(&AuditEvent::Call(CallEvent { arguments: long, left_out, ..event })).unwrap();
    let seen = follower.recv().await.unwrap();
    let short = seen.json.get();
    assert!(short.len() < 2 << 10 && short.contains(r#""left_out":["result","arguments"]"#), "{short}");
    assert!(
        audit.recent(&filter(Some("acme"), 1)).unwrap().calls[0].json.get().len() > 100 << 10,
        "the log has all of it"
    );
}

/// Lines of calls that end together are written together.
#[test]
fn what_was_added_is_written_with_the_first_of_them() {
    let host = fresh();
    let audit = host.registry.audit();
    let first = audit.add(&call("acme", "prices", "ok")).unwrap();
    let second = audit.add(&call("acme", "prices", "ok")).unwrap();
    assert_eq!(audit.recent(&filter(Some("acme"), 10)).unwrap().calls.len(), 2, "they are found all the same");
    audit.write_up_to(first);
    assert_eq!(audit_lines(host.dir.path()).last().unwrap()["seq"], second);
    audit.add(&call("acme", "prices", "ok")).unwrap();
    audit.append(&call("acme", "prices", "ok")).unwrap();
    assert_eq!(verify(host.dir.path(), None).unwrap().lines, second + 2);
}

#[test]
fn a_line_that_a_crash_cut_short_is_cut_off() {
    for torn in [&br#"{"seq":3,"time":"2026"#[..], b"{", b"\0\0\0\0\0\0", b"{\"seq\":3,\0\0\0\n\0\0"] {
        let host = fresh();
        host.registry.audit().append(&call("acme", "prices", "ok")).unwrap();
        let dir = host.stop();
        let path = segments(dir.path()).pop().unwrap();
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(torn).unwrap();
        if !torn.contains(&b'\n') {
            assert_eq!(verify(dir.path(), None).unwrap().torn_bytes, torn.len() as u64);
        }
        let registry = Registry::open(dir.path()).unwrap();
        assert_eq!(registry.audit().health().problems, [""; 0]);
        registry.audit().append(&call("acme", "prices", "ok")).unwrap();
        drop(registry);
        assert_eq!(verify(dir.path(), None).unwrap().lines, 4);
        let lines = audit_lines(dir.path());
        assert_eq!(lines[2]["what"], "audit_log_repaired");
        assert!(lines[2]["detail"].as_str().unwrap().contains(&format!(" {} bytes", torn.len())), "{}", lines[2]);
    }
}

/// What happened to the log, and what is said of it.
fn damaged(damage: impl FnOnce(&Path), said: &str) {
    let dir = tempdir().unwrap();
    let registry = small_segments(dir.path());
    for _ in 0..30 {
        registry.audit().append(&call("acme", "prices", "ok")).unwrap();
    }
    drop(registry);
    verify(dir.path(), None).unwrap();
    damage(dir.path());
    broken(dir.path());

    // The host starts all the same, says so, goes on, and does not hide it.
    let registry = small_segments(dir.path());
    let problems = registry.audit().health().problems;
    assert!(problems.len() == 1 && problems[0].contains(said), "{problems:?}");
    assert_eq!(registry.health().problems, problems);
    for _ in 0..30 {
        registry.audit().append(&call("acme", "prices", "ok")).unwrap();
    }
    assert_eq!(registry.audit().recent(&filter(None, 30)).unwrap().calls.len(), 30);
    drop(registry);
    let text: String = segments(dir.path()).iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert_eq!(text.matches("audit_log_damaged").count(), 1);
    broken(dir.path());
    drop(small_segments(dir.path()));
    broken(dir.path());
}

fn last_file(dir: &Path) -> std::path::PathBuf {
    segments(dir).pop().unwrap()
}

fn edit(path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
    let mut content = fs::read(path).unwrap();
    edit(&mut content);
    fs::write(path, content).unwrap();
}

#[test]
fn damage_a_changed_line() {
    damaged(
        |dir| {
            edit(&last_file(dir), |content| {
                let at = content.windows(4).position(|four| four == b"acme").unwrap();
                content[at] = b'A';
            });
        },
        "its hash does not fit its content",
    );
}

#[test]
fn damage_lines_cut_off_at_the_end() {
    damaged(|dir| edit(&last_file(dir), |content| content.truncate(content.len() / 2)), "line");
}

#[test]
fn damage_the_last_line_gone() {
    damaged(
        |dir| {
            edit(&last_file(dir), |content| {
                let end = content[..content.len() - 1].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                content.truncate(end);
            });
        },
        "the log ends with line 30, but line 31 had been written",
    );
}

#[test]
fn damage_the_last_segment_gone() {
    damaged(|dir| fs::remove_file(last_file(dir)).unwrap(), "but line 31 had been written");
}

#[test]
fn damage_everything_gone() {
    damaged(|dir| fs::remove_dir_all(dir.join("audit")).unwrap(), "the log is gone, all 31 lines of it");
}

#[test]
fn a_segment_taken_away_from_a_running_host_is_noticed() {
    let host = fresh();
    host.registry.audit().append(&call("acme", "prices", "ok")).unwrap();
    fs::remove_file(last_file(host.dir.path())).unwrap();
    eventually("it is noticed", || !host.registry.health().problems.is_empty());
    host.registry.audit().append(&call("acme", "prices", "ok")).unwrap();
    assert_eq!(host.registry.audit().recent(&filter(None, 10)).unwrap().calls.len(), 1);
    let dir = host.stop();
    assert_eq!(broken(dir.path()), "00000001.log, line 0: the file is missing");
}

/// The host died between the commit of a change and its line.
#[test]
fn a_change_without_its_line_gets_it_once() {
    let host = fresh();
    host.registry.create_tenant(&actor(), "acme").unwrap();
    let dir = host.stop();
    let count = || audit_lines(dir.path()).iter().filter(|line| line["action"] == "tenant.create").count();
    let lines = audit_lines(dir.path());
    let created = lines.iter().find(|line| line["action"] == "tenant.create").unwrap().clone();
    assert_eq!(count(), 1);
    let event = serde_json::json!({ "tenant": "acme", "actor": "x", "action": "tenant.create", "subject": "acme" });
    let put = |id: &str| {
        let database = rusqlite::Connection::open(dir.path().join("bulkhead.db")).unwrap();
        let insert = "INSERT INTO outbox (id, event) VALUES (?1, ?2)";
        database.execute(insert, [id, &event.to_string()]).unwrap();
        database
    };
    // It is in the log, and the host died before it was noted that it is.
    put(created["id"].as_str().unwrap()).execute("UPDATE audit_head SET seq = 0, hash = zeroblob(32)", []).unwrap();
    drop(Registry::open(dir.path()).unwrap());
    assert_eq!(count(), 1);
    // It is not in the log.
    put("lost");
    for _ in 0..2 {
        drop(Registry::open(dir.path()).unwrap());
        assert_eq!(count(), 2);
    }
    verify(dir.path(), None).unwrap();
    let database = rusqlite::Connection::open(dir.path().join("bulkhead.db")).unwrap();
    let left: i64 = database.query_row("SELECT count(*) FROM outbox", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}

#[test]
fn the_head_is_recorded_without_being_asked_to() {
    let host = fresh();
    host.registry.audit().append(&call("acme", "prices", "ok")).unwrap();
    let database = rusqlite::Connection::open(host.dir.path().join("bulkhead.db")).unwrap();
    let recorded = || -> u64 { database.query_row("SELECT seq FROM audit_head", [], |row| row.get(0)).unwrap() };
    eventually("the head is recorded", || recorded() == 2);
    host.registry.audit().append(&call("acme", "prices", "ok")).unwrap();
    host.registry.close().unwrap();
    assert_eq!(recorded(), 3);
}

#[test]
fn what_is_too_large_is_refused_and_breaks_nothing() {
    let host = fresh();
    let large = AuditEvent::Host { what: "x".repeat(17 << 20), detail: String::new() };
    assert!(host.registry.audit().append(&large).is_err());
    host.registry.audit().append(&call("acme", "prices", "ok")).unwrap();
    assert_eq!(verify(host.dir.path(), None).unwrap().lines, 2);
}
