//! Opening a data directory: one host at a time, for its owner alone, of a version this program knows.

use crate::common::{actor, deploy, eventually, fresh};
use registry::{OpenError, Registry, Role, token_hash};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::tempdir;

fn refusal(dir: &Path) -> OpenError {
    match Registry::open(dir) {
        Ok(_) => panic!("it opened"),
        Err(error) => error,
    }
}

/// The process that a test starts: the test itself again, told so by this variable.
fn child() -> bool {
    let Ok(dir) = std::env::var("REGISTRY_TEST_DIR") else { return false };
    let registry = Registry::open(Path::new(&dir)).unwrap();
    registry.create_tenant(&actor(), "acme").unwrap();
    deploy(&registry, "acme", "prices", "one").unwrap();
    let line = registry::ToolLine {
        time: registry::rfc3339_now(),
        call: "1".to_owned(),
        level: "info".to_owned(),
        text: "hello".to_owned(),
    };
    registry.logs().append("acme", "prices", &line);
    println!("ready");
    std::io::stdout().flush().unwrap();
    if std::env::var("REGISTRY_TEST_HOLD").is_ok() {
        std::thread::sleep(std::time::Duration::from_secs(60));
    }
    true
}

#[test]
fn the_second_host_is_refused_and_told_who_the_first_is() {
    if child() {
        return;
    }
    let dir = tempdir().unwrap();
    let mut first = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "opening::the_second_host_is_refused_and_told_who_the_first_is", "--nocapture"])
        .env("REGISTRY_TEST_DIR", dir.path())
        .env("REGISTRY_TEST_HOLD", "1")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let log = dir.path().join("logs/acme/prices.log");
    eventually("the first host is up", || log.exists());
    let error = refusal(dir.path());
    assert_eq!(error.code(), "locked");
    assert!(error.to_string().contains(&format!("process {}", first.id())), "{error}");
    assert!(error.hint().unwrap().contains("--data"));
    first.kill().unwrap();
    first.wait().unwrap();
    let registry = Registry::open(dir.path()).unwrap();
    assert!(registry.directory().server("acme", "prices").is_some());
    assert_eq!(refusal(dir.path()).code(), "locked", "in one process too");
}

#[test]
fn everything_is_for_its_owner_alone() {
    if child() {
        return;
    }
    let dir = tempdir().unwrap();
    let data = dir.path().join("deep/data");
    let status = Command::new("sh")
        .args(["-c", r#"umask 000; exec "$0" --exact opening::everything_is_for_its_owner_alone --nocapture"#])
        .arg(std::env::current_exe().unwrap())
        .env("REGISTRY_TEST_DIR", &data)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let mut unseen = vec![data];
    let mut seen = 0;
    while let Some(path) = unseen.pop() {
        let meta = fs::metadata(&path).unwrap();
        let expected = if meta.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(meta.permissions().mode() & 0o777, expected, "{}", path.display());
        if meta.is_dir() {
            unseen.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        }
        seen += 1;
    }
    assert!(seen >= 9, "{seen}");
}

#[test]
fn a_directory_that_everybody_may_write_to_is_refused() {
    let dir = tempdir().unwrap();
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(refusal(&data).code(), "exposed");
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    Registry::open(&data).unwrap();
}

#[test]
fn the_operators_key_is_in_its_file_and_good() {
    let host = fresh();
    let path = host.dir.path().join("operator.key");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("bh_operator_") && text.ends_with('\n'));
    let key = host.registry.directory().keys[&token_hash(text.trim())].clone();
    assert_eq!((key.role, &key.tenant), (Role::Operator, &None));
    fs::remove_file(&path).unwrap();
    let host = host.reopen();
    assert!(!path.exists(), "it is shown once");
    assert!(host.registry.directory().keys.contains_key(&token_hash(text.trim())));
}

/// The host died after the file was there and before the database knew the key.
#[test]
fn a_first_start_that_was_interrupted_is_finished() {
    let dir = tempdir().unwrap();
    let token = format!("bh_operator_{}", "A".repeat(43));
    fs::write(dir.path().join("operator.key"), format!("{token}\n")).unwrap();
    fs::write(dir.path().join("operator.new"), "bh_oper").unwrap();
    let registry = Registry::open(dir.path()).unwrap();
    assert!(registry.directory().keys.contains_key(&token_hash(&token)));
    assert_eq!(registry.keys(None, None, usize::MAX, |_| true).unwrap().unwrap().len(), 1);
    let mode = fs::metadata(dir.path().join("operator.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_file_that_holds_no_token_is_refused_and_kept() {
    for content in [&b"hello"[..], b"", b"\xff\xfe", b"bh_call_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
        let dir = tempdir().unwrap();
        let path = dir.path().join("operator.key");
        fs::write(&path, content).unwrap();
        assert_eq!(refusal(dir.path()).code(), "operator_key");
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}

#[test]
fn an_empty_database_is_brought_up_to_date() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("bulkhead.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database.pragma_update(None, "user_version", 0).unwrap();
    drop(database);
    let registry = Registry::open(dir.path()).unwrap();
    registry.create_tenant(&actor(), "acme").unwrap();
    drop(registry);
    let database = rusqlite::Connection::open(&path).unwrap();
    let version: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 11);
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let host = fresh();
    host.registry.create_tenant(&actor(), "acme").unwrap();
    let dir = host.stop();
    let path = dir.path().join("bulkhead.db");
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&path).unwrap();
    let error = refusal(dir.path());
    assert_eq!(error.code(), "newer_schema");
    assert!(error.to_string().contains("99"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 11).unwrap();
    assert!(Registry::open(dir.path()).unwrap().directory().tenants.contains_key("acme"));
}

#[test]
fn what_is_no_database_is_called_damaged() {
    let host = fresh();
    let dir = host.stop();
    let path = dir.path().join("bulkhead.db");
    let mut content = fs::read(&path).unwrap();
    content[..16].copy_from_slice(b"no database here");
    fs::write(&path, content).unwrap();
    assert_eq!(refusal(dir.path()).code(), "corrupt");
}

#[test]
fn a_path_that_cannot_be_a_directory_is_named() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = refusal(&file.join("data"));
    assert!(error.to_string().contains("file/data"), "{error}");
}
