//! A disk that is full, and one that can no longer be written: the host says so, goes on serving, and recovers.
//!
//! Both need a file system of their own, mounted where nobody else sees it.

use crate::common::{actor, audit_lines, call, call_key, deploy_well, deployment, eventually};
use registry::{
    AuditEvent, CallFilter, OpenOptions, Quota, Registry, RegistryError, TenantPatch, ToolLine, rfc3339_now,
    token_hash, verify,
};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::tempdir;

/// Where the file system of its own is, and what the test is to do there: it was started by itself.
fn inside() -> Option<(PathBuf, String)> {
    Some((std::env::var_os("REGISTRY_TEST_DIR")?.into(), std::env::var("REGISTRY_TEST_ROLE").unwrap()))
}

/// Runs a test again on a file system of its own, with the `role` that [`inside`] gives it there. `mount` mounts it on `$DIR`.
/// False: it cannot be had here.
fn on_own_disk(test: &str, role: &str, dir: &Path, mount: &str) -> bool {
    let script = |then: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &format!("({mount}) >/dev/null 2>&1 || exit 77; {then}")]);
        command.env("DIR", dir).env("BINARY", std::env::current_exe().unwrap());
        command.env("REGISTRY_TEST_ROLE", role).env("REGISTRY_TEST_DIR", dir);
        command
    };
    let possible = script("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !possible {
        skips::skip("needs the right to mount a file system");
        return false;
    }
    let status = script(&format!(r#"exec timeout 120 "$BINARY" --exact disk::{test} --nocapture"#))
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{test} ({role}): {status}");
    true
}

fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    for size in [1 << 16, 1 << 12, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

fn line(text: &str) -> ToolLine {
    ToolLine { time: rfc3339_now(), call: "c".to_owned(), level: "info".to_owned(), text: text.to_owned() }
}

#[test]
fn a_full_disk() {
    let Some((dir, _)) = inside() else {
        let dir = tempdir().unwrap();
        on_own_disk("a_full_disk", "", dir.path(), r#"mount -t tmpfs -o size=6m,mode=700 none "$DIR""#);
        return;
    };
    let options =
        OpenOptions { waiting_lines: 500, segment_bytes: 100_000, reserve_bytes: 0, ..OpenOptions::default() };
    let registry = Registry::open_with(&dir, options).unwrap();
    let acme = registry.create_tenant(&actor(), "acme").unwrap();
    let deployed = deploy_well(&registry, "acme", "prices", "return 1");
    let filler = dir.join("filler");
    fill(&filler);

    // Changes are refused, and leave no trace.
    let error =
        (0..200).find_map(|n| registry.create_tenant(&actor(), &format!("t{n}")).err()).expect("no room is left");
    assert_eq!(error.code(), "disk_full", "{error:?}");
    assert!(error.hint().is_some());
    let before = registry.directory();
    for _ in 0..3 {
        let large = deployment(&registry, "acme", "prices", &"x".repeat(1 << 20));
        assert_eq!(registry.deploy(&actor(), large).unwrap_err().code(), "disk_full");
    }
    assert_eq!(registry.directory().revision, before.revision);
    assert!(registry.health().problems.iter().any(|problem| problem.contains("full")), "{:?}", registry.health());

    // What is there can be read.
    assert!(registry.directory().keys.contains_key(&token_hash(acme.call_key.expose())));
    assert_eq!(&registry.bundle("acme", "prices", &deployed.id).unwrap().source[..], b"return 1");
    assert_eq!(registry.keys(Some("acme"), None, usize::MAX, |_| true).unwrap().unwrap().len(), 4);

    // Calls are kept in memory until no more fit.
    let mut kept = 0;
    while registry.audit().append(&call("acme", "prices", &format!("o{kept}"))).is_ok() {
        kept += 1;
        assert!(kept < 100_000);
    }
    let health = registry.audit().health();
    assert_eq!((health.waiting, health.refused), (500, 1), "{health:?}");
    let newest = registry.audit().recent(&CallFilter { limit: 1, ..CallFilter::default() }).unwrap().calls;
    assert_eq!(newest[0].outcome, format!("o{}", kept - 1), "what waits is seen");
    verify(&dir, None).unwrap();
    for _ in 0..1000 {
        registry.logs().append("acme", "prices", &line(&"x".repeat(1000)));
    }
    assert!(registry.health().tool_lines_dropped > 0);

    // With room again, everything goes on by itself.
    fs::remove_file(&filler).unwrap();
    eventually("what waited is written", || registry.audit().health().waiting == 0);
    eventually("all is well", || registry.health().problems.is_empty());
    registry.create_tenant(&actor(), "later").unwrap();
    registry.create_key(&actor(), call_key("later", "extra")).unwrap();
    registry.close().unwrap();
    drop(registry);
    verify(&dir, None).unwrap();
    let lines = audit_lines(&dir);
    let outcomes: Vec<_> = lines.iter().filter_map(|line| line["outcome"].as_str()).collect();
    assert_eq!(outcomes, (0..kept).map(|n| format!("o{n}")).collect::<Vec<_>>(), "all that was taken, in order");
    assert_eq!(lines.iter().filter(|line| line["what"] == "audit_log_gap").count(), 1);

    // A start without any room works or is refused for that reason; either way nothing is lost.
    fill(&filler);
    if let Err(error) = Registry::open(&dir) {
        assert_eq!(error.code(), "disk_full", "{error:?}");
    }
    fs::remove_file(&filler).unwrap();
    let registry = Registry::open(&dir).unwrap();
    assert!(registry.directory().tenants.contains_key("later"));
    assert_eq!(registry.directory().tenants.len(), before.tenants.len() + 1);
    drop(registry);
    verify(&dir, None).unwrap();
}

/// The file system finds an error in itself and refuses all writes from then on, as ext4 does.
#[test]
fn a_disk_that_turns_read_only() {
    const TEST: &str = "a_disk_that_turns_read_only";
    match inside() {
        Some((dir, role)) if role == "fails" => return on_a_disk_that_fails(&dir),
        Some((dir, _)) => return on_the_repaired_disk(&dir),
        None => {}
    }
    let dir = tempdir().unwrap();
    let image = dir.path().join("image");
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    File::create(&image).unwrap().set_len(24 << 20).unwrap();
    let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image).stderr(Stdio::null()).status();
    if !made.is_ok_and(|status| status.success()) {
        skips::skip("there is no mkfs.ext4");
        return;
    }
    let mount = format!(
        r#"mount -o loop,errors=remount-ro '{}' "$DIR" && chmod 700 "$DIR" && test -w /sys/fs/ext4/$(basename $(findmnt -no SOURCE "$DIR"))/trigger_fs_error"#,
        image.display()
    );
    if !on_own_disk(TEST, "fails", &data, &mount) {
        return;
    }
    // Repaired, it has everything that was confirmed.
    let checked = Command::new("e2fsck").args(["-fy"]).arg(&image).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(checked.is_ok_and(|status| status.code().is_some_and(|code| code < 4)), "e2fsck repairs it");
    assert!(on_own_disk(TEST, "repaired", &data, &mount));
}

fn on_a_disk_that_fails(dir: &Path) {
    // The disk is smaller than what is kept free elsewhere.
    let options = OpenOptions { reserve_bytes: 0, ..OpenOptions::default() };
    let registry = Registry::open_with(dir, options).unwrap();
    registry.create_tenant(&actor(), "acme").unwrap();
    let deployed = deploy_well(&registry, "acme", "prices", "return 1");
    let (revoked, token) = registry.create_key(&actor(), call_key("acme", "x")).unwrap();
    registry.revoke_key(&actor(), Some("acme"), &revoked.id).unwrap();
    registry.close().unwrap();
    let device = Command::new("findmnt").args(["-no", "SOURCE"]).arg(dir).output().unwrap().stdout;
    let device = Path::new(std::str::from_utf8(&device).unwrap().trim()).file_name().unwrap().to_owned();
    fs::write(Path::new("/sys/fs/ext4").join(device).join("trigger_fs_error"), "a test").unwrap();

    let error = registry.create_tenant(&actor(), "other").unwrap_err();
    assert_eq!(error.code(), "read_only", "{error:?}");
    assert!(!registry.directory().tenants.contains_key("other"));
    assert!(!registry.directory().keys.contains_key(&token_hash(token.expose())));
    assert_eq!(&registry.bundle("acme", "prices", &deployed.id).unwrap().source[..], b"return 1");
    for _ in 0..100 {
        registry.audit().append(&call("acme", "prices", "ok")).unwrap();
    }
    let health = registry.health();
    assert_eq!(health.audit.waiting, 100);
    // What waits is not part of the head: whoever keeps it finds it in the files.
    let head = registry.audit().head();
    verify(dir, Some(&format!("{}:{}", head.seq, head.hash))).unwrap();
    assert!(health.problems.iter().any(|problem| problem.contains("audit log")), "{health:?}");
    assert!(health.problems.iter().any(|problem| problem.contains("changes cannot be saved")), "{health:?}");
    registry.logs().append("acme", "prices", &line("x"));
    assert!(registry.close().is_err());
    verify(dir, None).unwrap();
}

fn on_the_repaired_disk(dir: &Path) {
    verify(dir, None).unwrap();
    let registry = Registry::open(dir).unwrap();
    assert_eq!(registry.health().problems, [""; 0]);
    let directory = registry.directory();
    assert_eq!(directory.tenants.keys().collect::<Vec<_>>(), ["acme"]);
    assert!(directory.server("acme", "prices").is_some());
    assert!(registry.keys(Some("acme"), None, usize::MAX, |_| true).unwrap().unwrap()[0].revoked_at.is_some());
    registry.create_tenant(&actor(), "other").unwrap();
}

/// The directory cannot be written from the start.
#[test]
fn a_read_only_directory() {
    let Some((dir, _)) = inside() else {
        let dir = tempdir().unwrap();
        let data = dir.path().join("data");
        let registry = Registry::open(&data).unwrap();
        registry.audit().append(&AuditEvent::Host { what: "x".to_owned(), detail: String::new() }).unwrap();
        drop(registry);
        let mount = r#"mount --bind "$DIR" "$DIR" && mount -o remount,bind,ro "$DIR""#;
        on_own_disk("a_read_only_directory", "", &data, mount);
        return;
    };
    let error = Registry::open(&dir).err().expect("it opened");
    assert_eq!(error.code(), "read_only", "{error:?}");
    assert!(error.hint().is_some());
    assert_eq!(verify(&dir, None).unwrap().lines, 2, "which needs no writing");
}

/// Uploads until it is refused.
fn deploy_until_refused(registry: &Registry, tenant: &str, server: impl Fn(usize) -> String) -> (usize, RegistryError) {
    for number in 0..200 {
        let source = format!("{number} {}", "x".repeat(100_000));
        if let Err(error) = registry.deploy(&actor(), deployment(registry, tenant, &server(number), &source)) {
            return (number, error);
        }
    }
    panic!("nothing is refused");
}

/// Every server has a bound of its own, so a tenant would only have to make more of them.
#[test]
fn a_tenant_takes_no_more_of_the_disk_than_its_quota() {
    let dir = tempdir().unwrap();
    let options = OpenOptions { tenant_bytes: 8 << 20, ..OpenOptions::default() };
    let registry = Registry::open_with(dir.path(), options).unwrap();
    for tenant in ["greedy", "other"] {
        registry.create_tenant(&actor(), tenant).unwrap();
    }
    let (deployed, error) = deploy_until_refused(&registry, "greedy", |number| format!("s{number}"));
    assert_eq!(error.code(), "quota", "{error:?}");
    assert!(
        error.to_string().contains("`disk_bytes`") && error.hint().is_some_and(|hint| hint.contains("--disk-bytes"))
    );
    // Each server counts with its log.
    assert_eq!(deployed, 7);
    assert!(registry.disk_used("greedy").unwrap() <= 8 << 20);
    assert_eq!(registry.directory().tenants["greedy"].servers.len(), deployed, "what is refused leaves nothing");
    // One server with many versions comes to the same.
    let (deployed, error) = deploy_until_refused(&registry, "other", |_| "one".to_owned());
    assert_eq!(error.code(), "quota");
    assert!(deployed > 50 && registry.disk_used("other").unwrap() <= 8 << 20);
    // The operator may allow one tenant more, and a deleted server gives back what it had.
    registry.delete_server(&actor(), "greedy", "s0").unwrap();
    deploy_well(&registry, "greedy", "again", "return 1");
    let quota = Quota { disk_bytes: Some(16 << 20), ..Quota::default() };
    registry.update_tenant(&actor(), "other", TenantPatch { quota: Some(quota), ..TenantPatch::default() }).unwrap();
    deploy_well(&registry, "other", "more", "return 1");
}

/// The last of the disk is for calls and what is written down of them.
#[test]
fn tenants_leave_a_reserve_of_the_disk_alone() {
    let dir = tempdir().unwrap();
    let registry = Registry::open(dir.path()).unwrap();
    registry.create_tenant(&actor(), "acme").unwrap();
    deploy_well(&registry, "acme", "prices", "return 1");
    assert!(!registry.is_short_of_disk());
    drop(registry);
    let options = OpenOptions { reserve_bytes: 1 << 62, ..OpenOptions::default() };
    let registry = Registry::open_with(dir.path(), options).unwrap();
    assert!(registry.is_short_of_disk());
    let error = registry.deploy(&actor(), deployment(&registry, "acme", "prices", "return 2")).unwrap_err();
    assert_eq!(error.code(), "disk_full");
    assert!(error.to_string().contains("`disk.reserve_mb`"), "{error}");
    let dropped = registry.health().tool_lines_dropped;
    registry.logs().append("acme", "prices", &line("not kept"));
    assert_eq!(registry.health().tool_lines_dropped, dropped + 1);
    registry.audit().append(&call("acme", "prices", "ok")).unwrap();
    // Who runs the host can still act.
    let (key, _) = registry.create_key(&actor(), call_key("acme", "x")).unwrap();
    registry.revoke_key(&actor(), Some("acme"), &key.id).unwrap();
    registry.close().unwrap();
    verify(dir.path(), None).unwrap();
}
