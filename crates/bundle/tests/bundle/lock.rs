use crate::support::{any_surface, entry, files, lock, manifest, seal, shown, with};
use bundle::{BulkheadLock, FileError, Lock, LockError, Mismatch, Step, Surface, canonical, check, is_hidden};
use proptest::prelude::*;
use serde_json::{Value, json};

fn edited(edit: impl FnOnce(&mut Value)) -> Result<Lock, LockError> {
    let mut value: Value = serde_json::from_slice(&lock().bytes()).unwrap();
    edit(&mut value);
    Lock::parse(&canonical(&value))
}

#[test]
fn it_reads_what_it_writes() {
    let lock = lock();
    assert_eq!(Lock::parse(&lock.bytes()).unwrap(), lock);
    assert_eq!(edited(|_| {}).unwrap().digest(), lock.digest());
}

#[test]
fn order_makes_no_other_lock() {
    let mut turned = shown();
    turned["tools"].as_array_mut().unwrap().reverse();
    assert_eq!(with(turned, None).bytes(), lock().bytes());
}

#[test]
fn every_byte_counts() {
    let lock = lock();
    let (bytes, seal) = (lock.bytes(), seal(&lock));
    for at in 0..bytes.len() {
        for flip in [0x01, 0x20, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] ^= flip;
            if let Ok(other) = Lock::parse(&bytes) {
                assert!(seal.verify_publishers(&other).is_err(), "byte {at}");
                assert_ne!(other.digest(), lock.digest());
            }
        }
    }
    for at in 0..bytes.len() {
        assert!(Lock::parse(&bytes[..at]).is_err());
    }
}

#[test]
fn only_the_canonical_form_is_read() {
    let text = String::from_utf8(lock().bytes()).unwrap();
    let forms = [
        format!(" {text}"),
        format!("{text}\n"),
        format!("\u{feff}{text}"),
        text.replacen("\"jit\":false", "\"jit\": false", 1),
        text.replacen("\"jit\":false", "\"jit\":false,\"jit\":false", 1),
        text.replacen("\"jit\":false", "\"jit\":true,\"jit\":false", 1),
        text.replacen("\"jit\":false", "\"\\u006ait\":false", 1),
        text.replacen("\"version\":1,", "\"version\":1.0,", 1),
        text.replacen("\"version\":1,", "\"version\":1e0,", 1),
        text.replacen("1e+21", "1e21", 1),
        text.replacen("\"cpu_ms\":100", "\"cpu_ms\":100,\"cpu_ms\":100", 1),
        text.replacen("\"readOnlyHint\":true", "\"readOnlyHint\":false,\"readOnlyHint\":true", 1),
        text.replacen("\"API_TOKEN\"", "\"API_TOKEN\",\"API_TOKEN\"", 1),
        text.replacen("\"API_TOKEN\"", "\"B\",\"API_TOKEN\"", 1),
        text.replacen("A city.", "A c\\u0069ty.", 1),
        text.replacen("\"templates\"", "\"resourceTemplates\"", 1),
        text.replacen("\"previous\":null", "\"previous\":0", 1),
        text.replacen("\"accepts\":null,", "", 1),
        text.replacen("\"number\":1,", "\"number\":1.0,", 1),
    ];
    for form in forms {
        assert_ne!(form, text);
        assert!(Lock::parse(form.as_bytes()).is_err(), "{form}");
    }
}

#[test]
fn what_is_not_known_is_refused() {
    type Edit = Box<dyn FnOnce(&mut Value)>;
    let edits: Vec<Edit> = vec![
        Box::new(|lock| lock["more"] = json!(1)),
        Box::new(|lock| lock["limits"]["more"] = json!(1)),
        Box::new(|lock| lock["limits"]["cpu_ms"] = json!(-1)),
        Box::new(|lock| lock["limits"]["cpu_ms"] = json!(1.5)),
        Box::new(|lock| lock["files"]["src/server.js"]["more"] = json!(1)),
        Box::new(|lock| lock["files"]["src/server.js"]["sha256"] = json!("A".repeat(64))),
        Box::new(|lock| lock["files"]["src/server.js"]["sha256"] = json!("0".repeat(63))),
        Box::new(|lock| lock["files"]["../x"] = json!({"sha256": "0".repeat(64), "size": 1})),
        Box::new(|lock| lock["files"]["src"] = lock["files"]["src/server.js"].clone()),
        Box::new(|lock| lock["version"] = json!(2)),
        Box::new(|lock| lock["wall"] = json!("none")),
        Box::new(|lock| lock["boundary"] = json!("host")),
        Box::new(|lock| lock["server"] = json!("Admin")),
        Box::new(|lock| lock["egress"] = json!(["ftp://a.b"])),
        Box::new(|lock| lock["egress"] = json!(["*."])),
        Box::new(|lock| lock["secrets"][0]["hosts"] = json!(["*"])),
        Box::new(|lock| lock["secrets"][0]["place"] = json!({ "header": "Authorization" })),
        Box::new(|lock| lock["secrets"][0]["more"] = json!(1)),
        Box::new(|lock| lock["secrets"] = json!(["a"])),
        Box::new(|lock| lock["step"]["previous"] = json!("x")),
        Box::new(|lock| lock["step"]["more"] = json!(1)),
        Box::new(|lock| lock["step"]["number"] = json!(-1)),
        Box::new(|lock| lock["step"] = json!(null)),
        Box::new(|lock| lock["entry"] = json!("src/other.js")),
        Box::new(|lock| lock["entry"] = json!("../server.js")),
        Box::new(|lock| lock["endpoints"] = json!([{"tool": "now", "method": "GET"}])),
        Box::new(|lock| lock["surface"] = json!([])),
        Box::new(|lock| lock["surface"]["tools"] = json!([1])),
        Box::new(|lock| lock["surface"]["tools"] = json!([{"name": 1}])),
        Box::new(|lock| lock["surface"]["tools"] = json!([{"name": "b"}, {"name": "a"}])),
        Box::new(|lock| lock["surface"]["tools"] = json!([{"name": "a"}, {"name": "a", "description": "other"}])),
        Box::new(|lock| lock["surface"]["instructions"] = json!(["a"])),
        Box::new(|lock| lock["surface"]["title"] = json!(null)),
    ];
    for (index, edit) in edits.into_iter().enumerate() {
        assert!(edited(edit).is_err(), "edit {index}");
    }
}

#[test]
fn a_lock_from_before_a_limit_existed_is_still_one() {
    let old = edited(|lock| drop(lock["limits"].as_object_mut().unwrap().remove("log_kb"))).unwrap();
    assert_eq!(old.limits(), lock().limits());
    assert_eq!(Lock::parse(&old.bytes()).unwrap(), old);
    assert_eq!(bundle::Drift::between(&old, &lock()), []);
}

#[test]
fn large_and_deep_locks_are_not_looked_at() {
    assert!(matches!(Lock::parse(&vec![b'['; (1 << 20) + 1]), Err(LockError::TooLarge { .. })));
    assert!(matches!(Lock::parse(&vec![b'['; 1 << 20]), Err(LockError::TooDeep { .. })));
    let mut deep = json!(1);
    for _ in 0..120 {
        deep = json!([deep]);
    }
    let mut surface = shown();
    surface["tools"][0]["inputSchema"] = deep;
    let surface = Surface::new(surface);
    assert!(surface.is_err() || Lock::new(&manifest(), surface.unwrap(), entry(), &files(), Step::default()).is_err());
    let mut surface = shown();
    surface["instructions"] = json!("x".repeat(1 << 20));
    let large = Lock::new(&manifest(), Surface::new(surface).unwrap(), entry(), &files(), Step::default());
    assert!(matches!(large, Err(LockError::TooLarge { .. })));
}

#[test]
fn messages_hide_nothing_and_end() {
    let hostile = [format!("{{\"{}\":1}}", "\u{202e}".repeat(100_000)), "{\"\\u001b[2J\":1}".to_owned()];
    for text in hostile {
        let message = Lock::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(message.len() < 4000 && !message.chars().any(is_hidden), "{message:?}");
    }
}

#[test]
fn an_old_upload_cannot_be_repeated() {
    let first = lock();
    let second = with(json!({"name": "b"}), Some(first.digest()));
    let third = with(shown(), Some(second.digest()));
    assert!(first.follows(1, None).is_ok());
    assert!(second.follows(1, Some(first.digest())).is_ok());
    assert!(third.follows(1, Some(second.digest())).is_ok());
    // The same content again, but an older step.
    assert!(first.follows(1, Some(second.digest())).is_err());
    assert!(first.follows(1, Some(third.digest())).is_err());
    assert!(second.follows(1, Some(third.digest())).is_err());
    assert!(second.follows(1, None).is_err());
    // And the step cannot be changed under its seal.
    let moved = with(json!({"name": "b"}), Some(third.digest()));
    assert!(seal(&second).verify_publishers(&moved).is_err());
}

#[test]
fn the_file_is_read_back_to_the_byte() {
    let mut surface = shown();
    surface["tools"][0]["description"] = json!("a\u{202e}\u{e0041}\u{200b}b\n\"\\");
    let lock = with(surface, None);
    let file = BulkheadLock::new(lock.clone(), seal(&lock)).unwrap();
    let text = file.text();
    assert!(!text.chars().any(|c| c != '\n' && is_hidden(c)));
    assert!(text.lines().count() > 50 && text.ends_with("}\n"));
    let read = BulkheadLock::parse(text.as_bytes()).unwrap();
    assert_eq!(read.lock().bytes(), lock.bytes());
    assert_eq!(read.seal().bytes(), file.seal().bytes());
    assert_eq!(BulkheadLock::parse(text.replace('\n', "\r\n").as_bytes()).unwrap(), read);
}

#[test]
fn a_file_that_was_edited_is_refused() {
    let lock = lock();
    let text = BulkheadLock::new(lock.clone(), seal(&lock)).unwrap().text();
    let edits = [
        text.replacen("\"jit\": false", "\"jit\": true", 1),
        text.replacen("\"jit\": false", "\"jit\": true,\n    \"jit\": false", 1),
        text.replacen("\"jit\": false", "\"jit\":  false", 1),
        text.replacen("\"seal\": {", "\"more\": 1,\n  \"seal\": {", 1),
        text.replacen("A city.", "A tity.", 1),
        format!("{text}\n"),
        format!("<<<<<<< HEAD\n{text}"),
    ];
    for edit in edits {
        assert_ne!(edit, text);
        assert!(BulkheadLock::parse(edit.as_bytes()).is_err(), "{edit}");
    }
    let other = with(json!({}), None);
    assert!(matches!(BulkheadLock::new(other, seal(&lock)), Err(FileError::Seal(_))));
    for at in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        let read = BulkheadLock::parse(&bytes);
        // What is left is another key's id or a signature, and for that there is `verify`.
        assert!(read.is_err() || read.unwrap().lock() == &lock, "byte {at}");
    }
}

#[test]
fn files_are_those_of_the_lock() {
    let lock = lock();
    assert_eq!(check(&files(), &lock), Ok(()));
    let mut other = files();
    other.insert("src/server.js".to_owned(), b"export default []".to_vec());
    other.insert("evil\u{202e}.js".to_owned(), Vec::new());
    other.remove("bulkhead.toml");
    let mismatch = check(&other, &lock).unwrap_err();
    let names = |name: &str| vec![name.to_owned()];
    let expected = Mismatch {
        missing: names("bulkhead.toml"),
        additional: names("evil\u{202e}.js"),
        changed: names("src/server.js"),
    };
    assert_eq!(mismatch, expected);
    insta::assert_snapshot!(mismatch, @r#"the files are not those of the lock; missing: `bulkhead.toml`; additional: `evil\u{202e}.js`; changed: `src/server.js`"#);
    let many = (0..1000).map(|n| (format!("{n}"), Vec::new())).collect();
    assert!(check::<Vec<u8>>(&many, &lock).unwrap_err().to_string().len() < 500);
}

#[test]
fn files_that_no_path_leads_to_are_not_locked() {
    for path in ["../a", "/a", "a\\b", "", "src"] {
        let mut files = files();
        files.insert(path.to_owned(), Vec::new());
        assert!(
            Lock::new(&manifest(), Surface::new(shown()).unwrap(), entry(), &files, Step::default()).is_err(),
            "{path}"
        );
    }
}

proptest! {
    #[test]
    fn nothing_makes_the_readers_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Lock::parse(&bytes).is_err());
        prop_assert!(BulkheadLock::parse(&bytes).is_err());
    }

    #[test]
    fn nor_does_a_lock_with_something_in_its_middle(at in 0..1500usize, bytes in proptest::collection::vec(any::<u8>(), 1..8)) {
        let mut all = lock().bytes();
        let at = at.min(all.len());
        all.splice(at..at, bytes);
        if let Ok(read) = Lock::parse(&all) {
            prop_assert_eq!(read.bytes(), all);
        }
    }

    #[test]
    fn any_surface_makes_a_lock_that_is_read_back(surface in any_surface()) {
        let lock = with(surface, None);
        prop_assert_eq!(&Lock::parse(&lock.bytes()).unwrap(), &lock);
        let file = BulkheadLock::new(lock.clone(), bundle::Seal::new(&lock)).unwrap();
        let read = BulkheadLock::parse(file.text().as_bytes()).unwrap();
        prop_assert_eq!(read.lock().bytes(), lock.bytes());
    }
}
