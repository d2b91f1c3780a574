//! Nothing in the index of a layer leads outside, and there is one way to write each.

use bundle::{Digest, File, Layer, LayerEntry, LayerError, LayerPath, LinkTarget};
use proptest::prelude::*;
use std::path::{Component, Path};

fn path(text: &str) -> LayerPath {
    text.parse().unwrap()
}

fn file(text: &str) -> LayerEntry {
    let File { sha256, size } = File::of(text.as_bytes());
    LayerEntry::File { sha256, size, executable: false }
}

fn link(target: &str) -> LayerEntry {
    LayerEntry::Link(target.parse().unwrap())
}

fn layer(entries: &[(&str, LayerEntry)]) -> Result<Layer, LayerError> {
    Layer::new(entries.iter().map(|(name, entry)| (path(name), entry.clone())))
}

fn index(files: &str) -> Vec<u8> {
    format!(r#"{{"files":{{{files}}},"version":1}}"#).into_bytes()
}

fn refused(bytes: &[u8]) -> LayerError {
    match Layer::parse(bytes) {
        Err(error) => error,
        Ok(_) => panic!("taken: {}", String::from_utf8_lossy(bytes)),
    }
}

#[test]
fn it_is_written_in_one_way() {
    let entries = [
        ("server.js", file("a")),
        ("node_modules/.bin/run", link("../@scope/pkg/cli.js")),
        (
            "node_modules/@scope/pkg/cli.js",
            LayerEntry::File { sha256: Digest::new([7; 32]), size: 9, executable: true },
        ),
        ("a/(b) [c]/d e/ü\u{200d}.txt", file("")),
        ("back\\slash:colon", file("b")),
        ("\u{ffff}", file("c")),
        ("\u{10000}", file("d")),
    ];
    let made = layer(&entries).unwrap();
    let read = Layer::parse(made.bytes()).unwrap();
    assert_eq!(made, read);
    assert_eq!(made.size(), 1 + 9 + 1 + 1 + 1);
    assert_eq!(made.digest(), File::of(made.bytes()).sha256);
    let names: Vec<_> = made.entries().map(|(path, _)| path.as_str()).collect();
    assert_eq!(names[names.len() - 2..], ["\u{10000}", "\u{ffff}"], "as canonical JSON sorts them");
    let text = std::str::from_utf8(made.bytes()).unwrap();
    let places: Vec<_> = names.iter().map(|name| text.find(&serde_json::to_string(name).unwrap()).unwrap()).collect();
    assert!(places.is_sorted());
    for (name, entry) in &entries {
        assert_eq!(made.get(name), Some(entry));
    }
    assert_eq!(made.get("nothing"), None);
    let folders: Vec<_> = made.folders().into_iter().collect();
    let expected = [
        "a",
        "a/(b) [c]",
        "a/(b) [c]/d e",
        "node_modules",
        "node_modules/.bin",
        "node_modules/@scope",
        "node_modules/@scope/pkg",
    ];
    assert_eq!(folders, expected);
    assert_eq!(made.disk(), 4096 * (7 + 7 + 1 + 1), "entries, folders, the index, and the layer's own folder");
    let head = made.head();
    assert_eq!(head[..4], (made.bytes().len() as u32).to_be_bytes());
    assert_eq!(&head[4..], made.bytes());
}

#[test]
fn anything_else_is_no_index() {
    let entry = format!(r#"{{"executable":false,"sha256":"{}","size":1}}"#, "a".repeat(64));
    let good = index(&format!(r#""a":{entry},"b":{{"link":"a"}}"#));
    assert!(Layer::parse(&good).is_ok());
    assert!(Layer::parse(&index("")).is_ok());
    for at in 0..good.len() {
        let (head, tail) = good.split_at(at);
        assert!(Layer::parse(head).is_err());
        assert!(Layer::parse(&[head, b"\n", tail].concat()).is_err(), "a line break at {at}");
    }
    let twice = format!(r#""a":{entry},"a":{entry}"#);
    let order = format!(r#""b":{entry},"a":{entry}"#);
    let more = entry.replace("}", r#","mode":493}"#);
    let both = entry.replace("}", r#","link":"b"}"#);
    for bad in [
        index(&twice),
        index(&order),
        index(&format!(r#""a":{more}"#)),
        index(&format!(r#""a":{both}"#)),
        index(r#""a":{}"#),
        index(r#""a":{"link":null}"#),
        index(r#""a":{"link":["b"]}"#),
        index(r#""a":{"link":{"b":{}}}"#),
        index(&format!(r#""a":{}"#, entry.replace(":1}", ":1.0}"))),
        index(&format!(r#""a":{}"#, entry.replace(":1}", ":-1}"))),
        index(&format!(r#""a":{}"#, entry.replace("aa", "AA"))),
        index(&format!(r#""\u0061":{entry}"#)),
        br#"{"files":{},"version":2}"#.to_vec(),
        br#"{"files":{}}"#.to_vec(),
        br#"{"files":[],"version":1}"#.to_vec(),
        br#"{"files":{},"more":1,"version":1}"#.to_vec(),
        vec![b'['; 1 << 20],
        b"\xff".to_vec(),
    ] {
        assert!(refused(&bad).to_string().len() < 1000);
    }
    assert!(matches!(refused(&vec![b' '; (16 << 20) + 1]), LayerError::TooLarge { .. }));
}

#[test]
fn hostile_names_are_no_paths() {
    let part = "a".repeat(256);
    let deep = "a/".repeat(64) + "a";
    let long = format!("{}/a", "a".repeat(200)).repeat(11);
    let bad = [
        "", "/", "/a", ".", "..", "./a", "a/.", "../a", "a/..", "a/../b", "a//b", "a/", "a\0", "a\nb", "a\u{7f}",
        "a\u{9b}",
    ];
    for name in bad.into_iter().chain([&*part, &deep, &long]) {
        assert!(name.parse::<LayerPath>().is_err(), "{name:?}");
        let bytes = index(&format!(r#"{}:{{"link":"a"}}"#, serde_json::to_string(name).unwrap()));
        assert!(matches!(refused(&bytes), LayerError::Unreadable(_)), "{name:?}");
    }
    for name in ["...", "..a", "a..", ".a", "a/...", &"a".repeat(255), "~", "-rf", "$(x)", "*", "a\u{202e}b"] {
        assert!(name.parse::<LayerPath>().is_ok(), "{name:?}");
    }
    assert!(layer(&[("a\u{202e}b", file("")), ("a\u{202e}b/c", file(""))]).unwrap_err().to_string().is_ascii());
}

#[test]
fn links_stay_inside() {
    for (name, target) in [("a", "b"), ("a/b", ".."), ("a/b", "../c"), ("a/b/c", "../../d/e"), ("a", "nothing/there")] {
        layer(&[(name, link(target))]).unwrap();
    }
    for (name, target) in [("a", ".."), ("a", "../b"), ("a/b", "../.."), ("a/b", "../../a"), ("a/b/c", "../../../d")] {
        assert!(matches!(layer(&[(name, link(target))]), Err(LayerError::LeadsOut { .. })), "{name} {target}");
    }
    // Up after down may be up from wherever another link leads.
    for target in
        ["", "/", "/etc/passwd", ".", "./a", "a/", "a/..", "a/../b", "../a/../..", "a/../../b", "a\0", "../", "..//a"]
    {
        assert!(target.parse::<LinkTarget>().is_err(), "{target:?}");
    }
    assert!("../".repeat(10_000).parse::<LinkTarget>().is_err());
    let (root, up) = (("p/q/r/b", link("../../..")), ("p/q/r/l", link("b/p")));
    layer(&[root.clone(), up]).unwrap();
    for below in ["p/q/r/b/x", "p/q/r/b/x/y"] {
        let error = layer(&[root.clone(), (below, file("x")), ("p/q/r/b!", file(""))]).unwrap_err();
        assert_eq!(error, LayerError::NoFolder(path("p/q/r/b")));
    }
}

#[test]
fn a_file_is_no_folder_and_there_once() {
    let error = layer(&[("a", file("1")), ("a!", file("2")), ("a-b/c", file("2")), ("a/b/c", file("3"))]).unwrap_err();
    assert_eq!(error, LayerError::NoFolder(path("a")));
    assert_eq!(layer(&[("a/b", file("1")), ("a/b", file("2"))]).unwrap_err(), LayerError::Twice(path("a/b")));
}

#[test]
fn it_is_bounded() {
    let sized = |size| LayerEntry::File { sha256: Digest::new([0; 32]), size, executable: false };
    layer(&[("a", sized(1 << 29)), ("b", sized(1 << 29))]).unwrap();
    assert_eq!(layer(&[("a", sized(1 << 29)), ("b", sized((1 << 29) + 1))]), Err(LayerError::TooBig { most: 1 << 30 }));
    assert_eq!(layer(&[("a", sized(u64::MAX)), ("b", sized(2))]), Err(LayerError::TooBig { most: 1 << 30 }));

    let many = |count: usize| (0..count).map(|number| (path(&format!("{number:05}")), link("a")));
    let most = Layer::new(many(60_000)).unwrap();
    assert_eq!(Layer::parse(most.bytes()).unwrap().entries().len(), 60_000);
    assert!(matches!(Layer::new(many(60_001)), Err(LayerError::TooMany { .. })));
    let text: Vec<_> = (0..60_001).map(|number| format!(r#""{number:05}":{{"link":"a"}}"#)).collect();
    assert!(matches!(refused(&index(&text.join(","))), LayerError::Unreadable(text) if text.contains("60000")));

    // Few entries, each in many folders of its own.
    let deep = (0..1000).map(|number| (path(&format!("{number}/{}", "a/".repeat(61) + "a")), link("a")));
    assert!(matches!(Layer::new(deep), Err(LayerError::TooMany { what: "folders", .. })));
    let wide = (0..60_000).map(|number| (path(&format!("{}/{number}", "a".repeat(250))), sized(0)));
    assert!(matches!(Layer::new(wide), Err(LayerError::TooLarge { .. })));
}

/// What the kernel does with a path below the folder of a layer: where it ends, or none if it comes out above. One that
/// turns in circles ends somewhere.
fn follow(layer: &Layer, from: &str) -> Option<Vec<String>> {
    let mut left: Vec<String> = from.split('/').rev().map(str::to_owned).collect();
    let mut here: Vec<String> = Vec::new();
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part == ".." {
            here.pop()?;
            continue;
        }
        here.push(part);
        if let Some(LayerEntry::Link(target)) = layer.get(&here.join("/")) {
            links += 1;
            if links > 40 {
                return Some(here);
            }
            here.pop();
            left.extend(target.as_str().split('/').rev().map(str::to_owned));
        }
    }
    Some(here)
}

fn words() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just(".."),
        Just("."),
        Just(""),
        Just("a"),
        Just("b"),
        Just("c"),
        Just("a\0"),
        Just("ü"),
        Just("...")
    ];
    prop::collection::vec(part, 1..6).prop_map(|parts| parts.join("/"))
}

proptest! {
    #[test]
    fn hostile_paths_never_pass(text in words().boxed().prop_union(any::<String>().boxed())) {
        if text.parse::<LayerPath>().is_ok() {
            let parts: Vec<_> = Path::new(&text).components().collect();
            prop_assert!(parts.iter().all(|part| matches!(part, Component::Normal(_))), "{:?}", text);
            prop_assert_eq!(parts.len(), text.split('/').count());
            prop_assert!(!text.contains(char::is_control));
        }
    }

    #[test]
    fn no_link_leads_outside(entries in prop::collection::vec(("[abc](/[abc]){0,3}", prop::option::of("(\\.\\./){0,3}([abc](/[abc]){0,2}|\\.\\.)")), 1..8)) {
        let entries = entries.into_iter().filter_map(|(name, target)| {
            let entry = target.map_or(Some(file("x")), |target| target.parse().ok().map(LayerEntry::Link))?;
            Some((path(&name), entry))
        });
        if let Ok(layer) = Layer::new(entries) {
            for (name, _) in layer.entries() {
                prop_assert!(follow(&layer, name.as_str()).is_some(), "{:?} {:?}", name, layer);
            }
            prop_assert_eq!(Layer::parse(layer.bytes()).unwrap(), layer);
        }
    }

    #[test]
    fn nothing_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[{}\":,a-z0-9\\\\ ]{0,100}") {
        let _ = Layer::parse(&bytes);
        let _ = Layer::parse(text.as_bytes());
    }
}
