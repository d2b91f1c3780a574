//! Old lines of the audit log are let go of, and nothing else, and never unseen.

use crate::common::{audit_lines, call, eventually, segments};
use registry::{CallFilter, OpenOptions, Registry, VerifyError, verify};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::{TempDir, tempdir};

/// A line takes some 600 bytes.
const LINES: u64 = 26;

fn open(dir: &Path, keep: Option<Duration>) -> Registry {
    let options = OpenOptions { segment_bytes: 4096, keep_audit_log: keep, ..OpenOptions::default() };
    Registry::open_with(dir, options).unwrap()
}

fn head(registry: &Registry) -> String {
    let head = registry.audit().head();
    format!("{}:{}", head.seq, head.hash)
}

/// A closed log of a few files, and heads of it: after the first lines, and at the end.
fn old_log() -> (TempDir, [String; 2]) {
    let dir = tempdir().unwrap();
    let registry = open(dir.path(), None);
    let heads = [1, LINES].map(|count| {
        (0..count).for_each(|_| registry.audit().append(&call("acme", "prices", "ok")).unwrap());
        head(&registry)
    });
    registry.close().unwrap();
    drop(registry);
    assert!((4..=6).contains(&segments(dir.path()).len()), "{:?}", segments(dir.path()));
    // Until all of it was written before now, to the millisecond.
    std::thread::sleep(Duration::from_millis(5));
    (dir, heads)
}

/// Opens it, lets go of all that is old, closes it, and gives its head.
fn trim(dir: &Path) -> String {
    let before = segments(dir);
    let registry = open(dir, Some(Duration::ZERO));
    eventually("old files are gone", || !before[0].exists());
    registry.close().unwrap();
    head(&registry)
}

fn broken(dir: &Path, expected: Option<&str>) -> String {
    match verify(dir, expected) {
        Err(error @ VerifyError::Broken { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_old_goes_and_the_log_says_so() {
    let (dir, [early, late]) = old_log();
    let before = audit_lines(dir.path());
    let kept = trim(dir.path());
    let after = audit_lines(dir.path());
    let verified = verify(dir.path(), Some(&kept)).unwrap();
    assert!(verified.first_seq > 10, "{verified:?}");
    assert_eq!(verified.lines, verified.last_seq - verified.first_seq + 1);
    let last_gone = &before[verified.first_seq as usize - 2];
    let said = after.iter().find(|line| line["what"] == "audit_log_trim").expect("it says so");
    assert_eq!(said["detail"], format!("{}:{}", last_gone["seq"], last_gone["hash"].as_str().unwrap()));
    let gone = broken(dir.path(), Some(&early));
    assert!(gone.contains("too old to be kept"), "{gone}");
    for late in [&*late, late.split_once(':').unwrap().1] {
        let unsaid = broken(dir.path(), Some(late));
        assert!(unsaid.contains("is from before: it does not show who said so"), "{unsaid}");
    }

    // It goes on, with and without, and is read as before.
    for keep in [None, Some(Duration::from_secs(3600)), Some(Duration::ZERO)] {
        let registry = open(dir.path(), keep);
        registry.audit().append(&call("acme", "prices", "ok")).unwrap();
        let found = registry.audit().recent(&CallFilter { limit: 1000, ..CallFilter::default() }).unwrap();
        assert!(!found.calls.is_empty() && found.next.is_none());
        registry.close().unwrap();
        assert!(registry.health().problems.is_empty());
        drop(registry);
        if keep != Some(Duration::ZERO) {
            verify(dir.path(), Some(&kept)).unwrap_or_else(|error| panic!("{keep:?}: {error}"));
        }
        verify(dir.path(), None).unwrap_or_else(|error| panic!("{keep:?}: {error}"));
    }
}

#[test]
fn what_is_not_old_stays() {
    let (dir, [early, _]) = old_log();
    let before = segments(dir.path());
    let registry = open(dir.path(), Some(Duration::from_secs(3600)));
    registry.audit().append(&call("acme", "prices", "ok")).unwrap();
    registry.close().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    assert!(before.iter().all(|file| file.exists()));
    drop(registry);
    assert_eq!(verify(dir.path(), Some(&early)).unwrap().first_seq, 1);
}

#[test]
fn damage_is_not_tidied_away() {
    for (harmed, at) in [(0, 100), (1, 100), (1, 2000)] {
        let (dir, _) = old_log();
        let files = segments(dir.path());
        let mut bytes = fs::read(&files[harmed]).unwrap();
        bytes[at] ^= 1;
        fs::write(&files[harmed], bytes).unwrap();
        let found = broken(dir.path(), None);
        let registry = open(dir.path(), Some(Duration::ZERO));
        eventually("it is said", || registry.health().problems.iter().any(|what| what.contains("cannot be let go of")));
        registry.close().unwrap();
        drop(registry);
        assert!(files[harmed].exists(), "the evidence");
        assert_eq!(files[0].exists(), at == 100, "what comes before it can go if its end is known");
        assert_eq!(broken(dir.path(), None), found);
    }
}

/// Who can write to the disk, but not make the chain anew because somebody has a head, can cut off nothing.
#[test]
fn a_beginning_that_was_cut_off_by_hand_is_found() {
    let (dir, [_, late]) = old_log();
    let files = segments(dir.path());
    let first: serde_json::Value =
        serde_json::from_str(fs::read_to_string(&files[1]).unwrap().lines().next().unwrap()).unwrap();
    fs::remove_file(&files[0]).unwrap();
    assert!(broken(dir.path(), Some(&late)).contains("the file is missing"));
    let database = rusqlite::Connection::open(dir.path().join("bulkhead.db")).unwrap();
    let prev = hex::decode(first["prev"].as_str().unwrap()).unwrap();
    let begin = (2, first["seq"].as_u64().unwrap() - 1, prev);
    database.execute("UPDATE audit_begin SET segment = ?1, seq = ?2, hash = ?3", begin).unwrap();
    drop(database);
    let found = broken(dir.path(), Some(&late));
    assert!(found.contains("no line up to here says that the first"), "{found}");
}

/// Nor does it help to announce it behind the head that somebody has.
#[test]
fn a_beginning_that_is_announced_too_late_is_found() {
    for begins_with_head in [false, true] {
        let (dir, [_, late]) = old_log();
        let lines = audit_lines(dir.path());
        let [.., before, last] = &lines[..] else { panic!("a log") };
        let gone = if begins_with_head { before } else { last };
        let text = |line: &serde_json::Value, name: &str| line[name].as_str().unwrap().to_owned();
        let said = format!("{}:{}", gone["seq"], text(gone, "hash"));
        let seq = last["seq"].as_u64().unwrap() + 1;
        let hashed = format!(
            r#"{{"seq":{seq},"time":"{}","kind":"host","what":"audit_log_trim","detail":"{said}","prev":"{}""#,
            text(last, "time"),
            text(last, "hash")
        );
        let hash: [u8; 32] =
            sha2::Digest::finalize(sha2::Digest::chain_update(sha2::Sha256::default(), &hashed)).into();
        let forged = format!("{hashed},\"hash\":\"{}\"}}\n", hex::encode(hash));
        let files = segments(dir.path());
        let newest = fs::read_to_string(files.last().unwrap()).unwrap();
        let kept = if begins_with_head { format!("{}\n", newest.lines().last().unwrap()) } else { String::new() };
        files.iter().for_each(|file| fs::remove_file(file).unwrap());
        fs::write(&files[0], kept + &forged).unwrap();
        let database = rusqlite::Connection::open(dir.path().join("bulkhead.db")).unwrap();
        let begin = (1, gone["seq"].as_u64().unwrap(), hex::decode(text(gone, "hash")).unwrap());
        database.execute("UPDATE audit_begin SET segment = ?1, seq = ?2, hash = ?3", begin).unwrap();
        database.execute("UPDATE audit_head SET seq = ?1, hash = ?2", (seq, hash)).unwrap();
        drop(database);
        verify(dir.path(), None).expect("who kept no head cannot know");
        broken(dir.path(), Some(&late));
    }
}

/// A log that was lost, or is an old copy, begins where nothing is let go of.
#[test]
fn what_is_written_after_a_loss_stays() {
    for copied in [false, true] {
        let (dir, _) = old_log();
        let copy: Vec<(PathBuf, Vec<u8>)> =
            segments(dir.path()).into_iter().take(1).map(|path| (path.clone(), fs::read(path).unwrap())).collect();
        trim(dir.path());
        segments(dir.path()).iter().for_each(|file| fs::remove_file(file).unwrap());
        copy.iter().filter(|_| copied).for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
        let registry = open(dir.path(), Some(Duration::from_secs(3600)));
        registry.audit().append(&call("acme", "prices", "ok")).unwrap();
        registry.close().unwrap();
        std::thread::sleep(Duration::from_millis(1500));
        drop(registry);
        let lines = audit_lines(dir.path());
        assert!(lines.iter().any(|line| line["what"] == "audit_log_damaged"), "{lines:?}");
        assert!(lines.iter().any(|line| line["kind"] == "call"), "{lines:?}");
        assert_eq!(copy[0].0.exists(), copied, "nothing goes while the beginning is not there");
        broken(dir.path(), None);
    }
}

/// A host that dies at any step of it leaves a log that is sound, and the next one ends what it began.
#[test]
fn it_can_be_cut_short_anywhere() {
    let (dir, _) = old_log();
    let kept: Vec<(PathBuf, Vec<u8>)> =
        segments(dir.path()).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    let begin = |dir: &Path| {
        let database = rusqlite::Connection::open(dir.join("bulkhead.db")).unwrap();
        let read = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        database.query_row("SELECT segment, seq, hash FROM audit_begin", [], read).unwrap()
    };
    let first: (u64, u64, [u8; 32]) = begin(dir.path());
    let late = trim(dir.path());
    let then: (u64, u64, [u8; 32]) = begin(dir.path());
    assert!(then.0 > first.0);
    // The database knows, and the files are still there.
    let put_back =
        || kept.iter().filter(|(path, _)| !path.exists()).for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    put_back();
    assert!(verify(dir.path(), Some(&late)).unwrap().first_seq > 1);
    let registry = open(dir.path(), Some(Duration::from_secs(3600)));
    eventually("they go after all", || !kept[0].0.exists());
    registry.close().unwrap();
    drop(registry);
    verify(dir.path(), Some(&late)).unwrap();
    // The log says so, and the database does not know.
    put_back();
    let database = rusqlite::Connection::open(dir.path().join("bulkhead.db")).unwrap();
    database.execute("UPDATE audit_begin SET segment = ?1, seq = ?2, hash = ?3", first).unwrap();
    drop(database);
    assert_eq!(verify(dir.path(), Some(&late)).unwrap().first_seq, 1);
    let late = trim(dir.path());
    assert!(verify(dir.path(), Some(&late)).unwrap().first_seq > 1);
}

#[test]
fn verify_works_meanwhile() {
    let (dir, _) = old_log();
    let registry = open(dir.path(), Some(Duration::ZERO));
    let files = segments(dir.path());
    eventually("old files are gone", || {
        verify(dir.path(), None).unwrap();
        !files[0].exists()
    });
    registry.close().unwrap();
}
