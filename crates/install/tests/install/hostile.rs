//! Packages that run what they can while they are installed.

use crate::place::Place;
use crate::shelf::Shelf;
use install::Error;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Somebody on this machine who is not to be reached, and a file that is not to be read.
struct Bait {
    listener: TcpListener,
    port: u16,
    file: String,
}

impl Bait {
    fn new(place: &Place) -> Bait {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("no waiting");
        let port = listener.local_addr().expect("an address").port();
        let file = place.path().join("private");
        std::fs::write(&file, "a private key").expect("a file");
        Bait { listener, port, file: file.to_string_lossy().into_owned() }
    }

    fn untouched(&self) -> bool {
        self.listener.accept().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }
}

fn report(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("probe.json")).expect("a report");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn an_install_script_of_npm_gets_nothing() {
    let shelf = Shelf::new();
    let place = Place::with("npm-hostile", &[("npm_config_registry", &shelf.url)]);
    let registry = shelf.url.trim_start_matches("http:");
    std::fs::write(place.around.home.join(".npmrc"), format!("{registry}:_authToken=a-registry-token\n"))
        .expect("a file");
    let bait = Bait::new(&place);
    let described = json!({
        "name": "hostile", "version": "1.0.0", "bin": "server.js", "scripts": {"postinstall": "node probe.js"},
    });
    let probe = include_str!("hostile/probe.js").replace("PORT", &bait.port.to_string()).replace("PRIVATE", &bait.file);
    let tool = "#!/bin/sh\necho a tool runs\n";
    let files = [("probe.js", probe.as_str()), ("server.js", "#!/usr/bin/env node\n"), ("tool.sh", tool)];
    shelf.npm(place.path(), &described, &files);

    let without = place.install("npm:hostile@1.0.0", false).expect("an installation");
    assert!(!without.folder.join("probe.json").exists(), "a script has run");
    assert!(shelf.asked().iter().any(|head| head.contains("a-registry-token")), "npm itself has the token");

    let before = shelf.asked().len();
    let with = place.install("npm:hostile@1.0.0", true).expect("an installation");
    assert_ne!(with.folder, without.folder);
    let told = report(&with.folder);
    assert_eq!(told["tool"], "a tool runs\n", "{told}");
    for closed in ["file", "direct", "passwords", "setuid"] {
        assert!(told[closed].as_str().is_some_and(|why| why.starts_with("refused")), "{closed}: {told}");
    }
    assert_eq!((&told["tunnel"], &told["plain"]), (&json!(403), &json!(403)), "{told}");
    assert_eq!((&told["registry"], &told["kept"]), (&json!(200), &json!([])), "{told}");
    let all = told.to_string();
    for secret in ["a secret value", "a-registry-token", "a private key"] {
        assert!(!all.contains(secret), "{secret}: {told}");
    }
    let last = shelf.asked()[before..].last().cloned().unwrap_or_default().to_ascii_lowercase();
    assert!(last.contains("x-probe: 1") && !last.contains("authorization"), "{last}");
    assert!(bait.untouched());

    let mode = |name: &str| with.folder.join(name).metadata().expect(name).permissions().mode() & 0o7777;
    assert_eq!((mode("setuid"), mode("closed"), mode("closed/open")), (0o755, 0o755, 0o644));
    assert!(with.folder.join("outside").symlink_metadata().is_err(), "a link leads out");
    assert!(install::pack(&with.folder).is_ok());
    assert_eq!(with.command, ["node", "node_modules/hostile/server.js"]);
}

#[test]
fn a_build_from_source_gets_nothing() {
    let shelf = Shelf::new();
    let index = format!("{}simple", shelf.url);
    let mut place = Place::with("pip-hostile", &[("PIP_INDEX_URL", &index)]);
    let bait = Bait::new(&place);
    let backend =
        include_str!("hostile/backend.py").replace("PORT", &bait.port.to_string()).replace("PRIVATE", &bait.file);
    let project = "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n";
    let about = "Metadata-Version: 2.1\nName: hostile\nVersion: 1.0\n";
    shelf.sdist(place.path(), "hostile", &[("backend.py", &backend), ("pyproject.toml", project), ("PKG-INFO", about)]);

    let refused = place.install("pypi:hostile==1.0", false);
    assert!(matches!(refused, Err(Error::Install { .. })), "{refused:?}");

    let with = place.install("pypi:hostile==1.0", true).expect("an installation");
    let told = report(&with.folder);
    for closed in ["file", "direct"] {
        assert!(told[closed].as_str().is_some_and(|why| why.starts_with("refused")), "{closed}: {told}");
    }
    assert_eq!((&told["tunnel"], &told["plain"], &told["registry"]), (&json!(403), &json!(403), &json!(200)), "{told}");
    let all = told.to_string();
    assert!(!all.contains("a secret value") && !all.contains("a private key"), "{told}");
    assert!(bait.untouched());
    assert_eq!(with.command, ["python3", "bin/hostile"]);

    let secret = index.replace("http://", "http://person:word@");
    place.around.variables.insert("PIP_INDEX_URL".to_owned(), secret);
    let refused = place.install("pypi:hostile==1.0", true).expect_err("a refusal").to_string();
    assert!(refused.contains("password") && !refused.contains("word@"), "{refused}");
}

#[test]
fn what_goes_wrong_leaves_nothing() {
    let shelf = Shelf::new();
    let place = Place::with("nothing-left", &[("npm_config_registry", &shelf.url)]);
    let described = json!({
        "name": "deep", "version": "1.0.0", "bin": "x.js",
        "scripts": {"postinstall": "node -e \"for (let i = 0; i < 300; i++) { fs.mkdirSync('d'); process.chdir('d'); }\""},
    });
    shelf.npm(place.path(), &described, &[("x.js", "")]);
    let refused = place.install("npm:deep@1.0.0", true).expect_err("a refusal").to_string();
    assert!(refused.contains("folders in each other"), "{refused}");
    let refused = place.install("npm:nobody-has-this@1.0.0", false).expect_err("a refusal").to_string();
    assert!(refused.contains("404"), "{refused}");
    let left = std::fs::read_dir(&place.around.cache).expect("the cache").map(|entry| entry.expect("an entry").path());
    let left: Vec<_> = left.filter(|path| path.extension().is_none_or(|end| end != "lock")).collect();
    assert!(left.is_empty(), "{left:?}");
}
