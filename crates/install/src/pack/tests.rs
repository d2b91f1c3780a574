use super::*;
use crate::testing::Folder;
use std::fs::Permissions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

/// A project with files of all kinds that are allowed.
fn project(name: &str) -> (Folder, PathBuf) {
    let folder = Folder::new(name);
    let root = folder.path().join("project");
    for path in ["src/deep", ".git/objects", "sub/.git", "empty", "logs/kept"] {
        fs::create_dir_all(root.join(path)).unwrap();
    }
    for (path, text) in [
        ("main.py", "print(1)"),
        ("src/ein Ordner [x] ü.txt", ""),
        ("src/deep/run", "#!/bin/sh\n"),
        (".git/config", "secret"),
        ("sub/.git/config", "secret"),
        ("logs/one.log", "x"),
        ("logs/kept/two.log", "y"),
        (".env", "TOKEN=x"),
    ] {
        fs::write(root.join(path), text).unwrap();
    }
    fs::set_permissions(root.join("src/deep/run"), Permissions::from_mode(0o755)).unwrap();
    (folder, root)
}

fn paths(layer: &Layer) -> Vec<String> {
    layer.entries().map(|(path, _)| path.to_string()).collect()
}

fn refused(root: &Path) -> String {
    pack(root).unwrap_err().to_string()
}

#[test]
fn a_folder_is_packed_without_what_is_the_authors_own() {
    let (_folder, root) = project("pack");
    symlink("deep/run", root.join("src/link")).unwrap();
    symlink("./deep/../deep/./run", root.join("src/wandering")).unwrap();
    symlink("../nothing", root.join("src/dangling")).unwrap();
    let all = pack(&root).unwrap();
    let ever = ["main.py", "src/dangling", "src/deep/run", "src/ein Ordner [x] ü.txt", "src/link", "src/wandering"];
    assert_eq!(paths(&all), [&[".env", "logs/kept/two.log", "logs/one.log"], &ever[..]].concat());
    let target = |path: &str| match all.get(path) {
        Some(LayerEntry::Link(target)) => target.to_string(),
        other => panic!("{path}: {other:?}"),
    };
    assert_eq!(["src/link", "src/wandering", "src/dangling"].map(target), ["deep/run", "deep/run", "../nothing"]);
    let sha256 = Digest::new(Sha256::digest("print(1)").into());
    assert_eq!(all.get("main.py"), Some(&LayerEntry::File { sha256, size: 8, executable: false }));
    assert!(matches!(all.get("src/deep/run"), Some(LayerEntry::File { executable: true, size: 10, .. })));
    fs::write(root.join(IGNORE), "# own\n*.log\n!two.log\n/.env\nempty/\n").unwrap();
    assert_eq!(paths(&pack(&root).unwrap()), [&["logs/kept/two.log"], &ever[..]].concat());
    fs::write(root.join(IGNORE), "logs\n!two.log\n.env").unwrap();
    assert_eq!(paths(&pack(&root).unwrap()), ever, "nothing comes back from a folder that is left out");
}

#[test]
fn the_same_files_are_the_same_layer() {
    let (_one, first) = project("pack-first");
    let (_two, second) = project("pack-second");
    fs::set_permissions(second.join("main.py"), Permissions::from_mode(0o666)).unwrap();
    assert_eq!(pack(&first).unwrap().digest(), pack(&second).unwrap().digest());
    fs::set_permissions(second.join("main.py"), Permissions::from_mode(0o755)).unwrap();
    assert_ne!(pack(&first).unwrap().digest(), pack(&second).unwrap().digest());
}

#[test]
fn what_cannot_be_deployed_is_refused_by_name() {
    let (_folder, root) = project("pack-hostile");
    let socket = UnixListener::bind(root.join("src/socket")).unwrap();
    assert_eq!(refused(&root), "`src/socket` cannot be part of a program: it is a socket");
    drop(socket);
    fs::remove_file(root.join("src/socket")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, root.join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert_eq!(refused(&root), "`pipe` cannot be part of a program: it is a pipe");
    fs::write(root.join(IGNORE), "pipe").unwrap();
    assert!(pack(&root).is_ok(), "what is left out need not be packed");
    for target in ["/etc/passwd", "..", "../project/main.py", "src/../../x", "out"] {
        symlink(target, root.join("out")).unwrap();
        assert_eq!(refused(&root), "`out` cannot be part of a program: it leads out of the folder", "{target}");
        fs::remove_file(root.join("out")).unwrap();
    }
    for name in [&b"line\nbreak"[..], b"\xff"] {
        let path = root.join(std::ffi::OsStr::from_bytes(name));
        fs::write(&path, "").unwrap();
        assert!(matches!(pack(&root), Err(Error::Content { .. })), "{name:?}");
        fs::remove_file(path).unwrap();
    }
    let sparse = File::create(root.join("sparse")).unwrap();
    sparse.set_len(MOST.bytes + 1).unwrap();
    assert!(refused(&root).ends_with("holds more than 1024 MB"));
    fs::remove_file(root.join("sparse")).unwrap();
    fs::create_dir_all(root.join("d/".repeat(70))).unwrap();
    assert!(refused(&root).ends_with("64 folders in each other"));
    fs::write(root.join(IGNORE), "x".repeat(IGNORE_BYTES as usize + 1)).unwrap();
    assert!(refused(&root).contains("it is longer than"));
    fs::remove_file(root.join(IGNORE)).unwrap();
    symlink("/etc/passwd", root.join(IGNORE)).unwrap();
    assert!(matches!(pack(&root), Err(Error::Path { .. })), "it is not followed");
    assert!(matches!(pack(&root.join("nothing")), Err(Error::Path { .. })));
}

#[test]
fn a_layer_is_written_as_it_was_packed_or_not_at_all() {
    let (_folder, root) = project("pack-write");
    let layer = pack(&root).unwrap();
    let mut written = Vec::new();
    write_layer(&root, &layer, &mut written).unwrap();
    let body = ["TOKEN=x", "y", "x", "print(1)", "#!/bin/sh\n", ""].concat();
    assert_eq!(written, [&layer.head(), body.as_bytes()].concat());
    let main = root.join("main.py");
    let changed = || matches!(write_layer(&root, &layer, io::sink()), Err(Error::Changed(path)) if path == main);
    for text in ["print(2)", "print(1) ", "print(1"] {
        fs::write(&main, text).unwrap();
        assert!(changed(), "{text}");
    }
    fs::write(&main, "print(1)").unwrap();
    fs::set_permissions(&main, Permissions::from_mode(0o755)).unwrap();
    assert!(changed(), "it has become a program");
    fs::remove_file(&main).unwrap();
    symlink("src", &main).unwrap();
    assert!(write_layer(&root, &layer, io::sink()).is_err());
}
