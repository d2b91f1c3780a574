//! The same package is the same bytes, and tells nothing of the machine that installed it.

use crate::place::Place;
use crate::shelf::Shelf;
use install::{Installed, pack};
use jail::program::End;
use serde_json::json;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// Everything in a folder, one after the other.
fn bytes(folder: &Path) -> Vec<u8> {
    let layer = pack(folder).expect("a layer");
    let mut all = Vec::new();
    install::write_layer(folder, &layer, &mut all).expect("its bytes");
    all
}

fn contains(all: &[u8], words: &str) -> bool {
    all.windows(words.len()).any(|window| window == words.as_bytes())
}

fn output(place: &Place, installed: &Installed) -> String {
    let mut child = place.start(installed);
    drop(child.stdin.take());
    let end = child.watch(Duration::from_secs(60), 1 << 30).expect("the end");
    let (mut told, mut errors) = (String::new(), String::new());
    child.stdout.take().expect("stdout").read_to_string(&mut told).expect("its words");
    child.stderr.take().expect("stderr").read_to_string(&mut errors).expect("its words");
    assert!(matches!(end, End::Exited(exit) if exit.code == Some(0)), "{end:?}: {errors}");
    told
}

#[test]
fn a_python_package_is_the_same_everywhere() {
    let shelf = Shelf::new();
    let index = format!("{}simple", shelf.url);
    let (one, two) =
        (Place::with("same", &[("PIP_INDEX_URL", &index)]), Place::with("twice", &[("PIP_INDEX_URL", &index)]));
    // Whoever imports one of these while installing runs code of the package.
    let trap = "open('/app/trapped', 'w').write(__name__)\n";
    let server = "import sys\nKNOWN = lambda word: word in {'one', 'two', 'three', 'four'}\n\
        def main():\n    print(__cached__ and __file__, sys.path[0])\n";
    let entries = "[console_scripts]\nsmall-server = small.server:main\n\n[other]\nx = y\n";
    shelf.wheel(
        one.path(),
        "small",
        &[
            ("small/__init__.py", ""),
            ("small/server.py", server),
            ("small/broken.py", "def (:\n"),
            ("compileall.py", trap),
            ("csv.py", trap),
            ("sitecustomize.py", trap),
            ("usercustomize.py", trap),
            ("small-1.0.dist-info/entry_points.txt", entries),
        ],
    );
    let first = one.install("pypi:small==1.0", false).expect("an installation");
    let second = two.install("pypi:small==1.0", false).expect("an installation");
    assert!(!first.folder.join("trapped").exists(), "code of the package has run");
    assert_eq!(first.command, ["python3", "bin/small-server"]);
    assert_ne!(first.folder, second.folder);
    let all = bytes(&first.folder);
    assert!(all == bytes(&second.folder), "the same bytes");
    assert!(contains(&all, "#!/usr/bin/env python3\n") && contains(&all, ".pyc"));
    for own in [one.path(), two.path(), &install::toolchain::find("python3", &one.around).expect("python").program] {
        assert!(!contains(&all, &own.to_string_lossy()), "{own:?} is in it");
    }
    std::fs::remove_file(first.folder.join("sitecustomize.py")).expect("the trap");
    std::fs::remove_dir_all(first.folder.join("__pycache__")).expect("its compiled form");
    assert_eq!(output(&one, &first), "/app/small/server.py /app/bin\n");
}

#[test]
fn a_package_of_npm_is_the_same_everywhere() {
    let shelf = Shelf::new();
    let settings = [("npm_config_registry", shelf.url.as_str())];
    let (one, two) = (Place::with("npm-same", &settings), Place::with("npm-twice", &settings));
    shelf.npm(one.path(), &json!({"name": "leaf", "version": "2.0.0"}), &[("index.js", "module.exports = 'a leaf'")]);
    let small =
        json!({"name": "small", "version": "1.0.0", "bin": {"other": "server.js"}, "dependencies": {"leaf": "2"}});
    shelf.npm(one.path(), &small, &[("server.js", "#!/usr/bin/env node\nconsole.log(require('leaf'), __filename);\n")]);
    let first = one.install("npm:small@1.0.0", false).expect("an installation");
    let second = two.install("npm:small@1.0.0", false).expect("an installation");
    assert_eq!(first.command, ["node", "node_modules/small/server.js"]);
    let all = bytes(&first.folder);
    assert!(all == bytes(&second.folder), "the same bytes");
    for own in [one.path().to_string_lossy().as_ref(), two.path().to_string_lossy().as_ref(), &shelf.url] {
        assert!(!contains(&all, own), "{own} is in it");
    }
    assert_eq!(output(&one, &first), "a leaf /app/node_modules/small/server.js\n");
}
