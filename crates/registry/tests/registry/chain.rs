//! Whatever is done to a log, `verify` finds it.

use crate::common::{call, segments};
use proptest::prelude::*;
use registry::{OpenOptions, Registry, VerifyError, verify};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tempfile::{TempDir, tempdir};

/// The files of a log of 60 calls in several segments, made once. In memory: a folder that is never dropped is never removed.
static ORIGINAL: LazyLock<Vec<(PathBuf, Vec<u8>)>> = LazyLock::new(|| {
    let dir = tempdir().unwrap();
    let options = OpenOptions { segment_bytes: 8192, ..OpenOptions::default() };
    let registry = Registry::open_with(dir.path(), options).unwrap();
    for number in 0..60 {
        registry.audit().append(&call(&format!("t{number}"), "prices", "ok")).unwrap();
    }
    registry.close().unwrap();
    drop(registry);
    let mut paths = segments(dir.path());
    assert!(paths.len() >= 5);
    paths.push(dir.path().join("bulkhead.db"));
    let name = |path: &Path| path.strip_prefix(dir.path()).unwrap().to_owned();
    paths.iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
});

fn copy() -> TempDir {
    let dir = tempdir().unwrap();
    fs::create_dir(dir.path().join("audit")).unwrap();
    for (name, bytes) in ORIGINAL.iter() {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    dir
}

/// The lines of each segment, with their line breaks.
fn read(dir: &Path) -> Vec<Vec<Vec<u8>>> {
    let lines =
        |path: &Path| fs::read(path).unwrap().split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    segments(dir).iter().map(|path| lines(path)).collect()
}

fn write(dir: &Path, log: &[Vec<Vec<u8>>]) {
    for (path, lines) in segments(dir).iter().zip(log) {
        fs::write(path, lines.concat()).unwrap();
    }
}

/// A place in the log: an index into each of two things of unknown size.
type Place = (prop::sample::Index, prop::sample::Index);

#[derive(Clone, Debug)]
enum Harm {
    Flip(prop::sample::Index, u8),
    DropLine(Place),
    RepeatLine(Place),
    Swap(Place, Place),
    MoveToEnd(Place),
    Truncate(prop::sample::Index),
    DropSegment(prop::sample::Index),
    SwapSegments(prop::sample::Index, prop::sample::Index),
    Insert(Place, Vec<u8>),
    EmptySegment(prop::sample::Index),
}

fn harm() -> impl Strategy<Value = Harm> {
    let index = any::<prop::sample::Index>;
    let place = any::<Place>;
    prop_oneof![
        6 => (index(), 0..8u8).prop_map(|(at, bit)| Harm::Flip(at, bit)),
        1 => place().prop_map(Harm::DropLine),
        1 => place().prop_map(Harm::RepeatLine),
        1 => (place(), place()).prop_map(|(a, b)| Harm::Swap(a, b)),
        1 => place().prop_map(Harm::MoveToEnd),
        3 => index().prop_map(Harm::Truncate),
        1 => index().prop_map(Harm::DropSegment),
        1 => (index(), index()).prop_map(|(a, b)| Harm::SwapSegments(a, b)),
        1 => (place(), prop::collection::vec(any::<u8>(), 0..200)).prop_map(|(at, line)| Harm::Insert(at, line)),
        1 => index().prop_map(Harm::EmptySegment),
    ]
}

fn do_harm(dir: &Path, harm: &Harm) {
    let mut log = read(dir);
    let at = |log: &[Vec<Vec<u8>>], place: &Place| {
        let segment = place.0.index(log.len());
        (segment, place.1.index(log[segment].len()))
    };
    match harm {
        Harm::Flip(index, bit) => {
            let total = log.iter().flatten().map(Vec::len).sum();
            let byte = log.iter_mut().flatten().flatten().nth(index.index(total)).unwrap();
            *byte ^= 1 << bit;
        }
        Harm::DropLine(place) => {
            let (segment, line) = at(&log, place);
            log[segment].remove(line);
        }
        Harm::RepeatLine(place) => {
            let (segment, line) = at(&log, place);
            let again = log[segment][line].clone();
            log[segment].insert(line, again);
        }
        Harm::Swap(a, b) => {
            let ((one, first), (two, second)) = (at(&log, a), at(&log, b));
            let kept = log[one][first].clone();
            log[one][first] = std::mem::replace(&mut log[two][second], kept);
        }
        Harm::MoveToEnd(place) => {
            let (segment, line) = at(&log, place);
            let moved = log[segment].remove(line);
            log.last_mut().unwrap().push(moved);
        }
        Harm::Truncate(index) => {
            let path = segments(dir)[index.index(log.len())].clone();
            let content = fs::read(&path).unwrap();
            fs::write(path, &content[..index.index(content.len())]).unwrap();
            return;
        }
        Harm::DropSegment(index) => return fs::remove_file(&segments(dir)[index.index(log.len())]).unwrap(),
        Harm::SwapSegments(a, b) => {
            let (a, b) = (a.index(log.len()), b.index(log.len()));
            log.swap(a, b);
        }
        Harm::Insert(place, line) => {
            let (segment, before) = at(&log, place);
            log[segment].insert(before, [line, &b"\n"[..]].concat());
        }
        Harm::EmptySegment(index) => {
            let segment = index.index(log.len());
            log[segment].clear();
        }
    }
    write(dir, &log);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_harm_goes_unnoticed(harm in harm()) {
        let dir = copy();
        do_harm(dir.path(), &harm);
        let result = verify(dir.path(), None);
        if read(dir.path()) == read(copy().path()) {
            prop_assert!(result.is_ok(), "nothing happened: {:?}", result);
        } else {
            prop_assert!(matches!(result, Err(VerifyError::Broken { .. })), "{:?}: {:?}", harm, result);
        }
    }
}

#[test]
fn the_place_is_named() {
    let dir = copy();
    let mut log = read(dir.path());
    log[2].remove(3);
    write(dir.path(), &log);
    let error = verify(dir.path(), None).unwrap_err();
    let missing: u64 = log.iter().take(2).map(|lines| lines.len() as u64).sum::<u64>() + 4;
    assert_eq!(
        error.to_string(),
        format!("00000003.log, line 4: number {missing} was expected here, not {}", missing + 1)
    );
}

/// Somebody who can write everywhere makes the chain anew from the middle, and the database fit it. Only who wrote a head
/// down can know.
#[test]
fn a_chain_made_anew_is_found_by_who_kept_the_head() {
    let dir = copy();
    let original = verify(dir.path(), None).unwrap();
    let mut prev = String::new();
    let mut log = read(dir.path());
    for (number, line) in log.iter_mut().flatten().enumerate() {
        let mut text = String::from_utf8(line.clone()).unwrap();
        if number == 30 {
            text = text.replace("\"outcome\":\"ok\"", "\"outcome\":\"no\"");
        }
        if number >= 30 {
            let cut = text.rfind(",\"prev\"").unwrap();
            text = format!("{},\"prev\":\"{prev}\"", &text[..cut]);
            prev = hex::encode(Sha256::digest(&text));
            *line = format!("{text},\"hash\":\"{prev}\"}}\n").into_bytes();
        } else {
            prev = serde_json::from_str::<serde_json::Value>(&text).unwrap()["hash"].as_str().unwrap().to_owned();
        }
    }
    write(dir.path(), &log);
    assert!(verify(dir.path(), None).is_err(), "the database knows better");
    let database = rusqlite::Connection::open(dir.path().join("bulkhead.db")).unwrap();
    database.execute("UPDATE audit_head SET hash = ?1", [hex::decode(&prev).unwrap()]).unwrap();
    drop(database);
    assert_eq!(verify(dir.path(), None).unwrap().lines, original.lines, "nobody here can know");
    assert!(verify(dir.path(), Some(&original.head)).is_err());
}
