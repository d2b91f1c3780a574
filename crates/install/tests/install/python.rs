//! What pip is asked for, and what it says.

use crate::place::Place;
use crate::shelf::Shelf;

const ENTRIES: &str = "[console_scripts]\nserver = server:main\n";

fn place(name: &str, shelf: &Shelf) -> Place {
    Place::with(name, &[("PIP_INDEX_URL", &format!("{}simple", shelf.url))])
}

#[test]
fn a_package_may_be_larger_than_what_is_in_memory() {
    let shelf = Shelf::new();
    let place = place("large", &shelf);
    let large = "\0".repeat(80 << 20);
    let files = [("server.py", ""), ("data.bin", large.as_str()), ("large-1.0.dist-info/entry_points.txt", ENTRIES)];
    shelf.wheel(place.path(), "large", &files);
    let installed = place.install("pypi:large==1.0", false).expect("an installation");
    assert_eq!(installed.folder.join("data.bin").metadata().expect("the file").len(), large.len() as u64);
    assert!(!installed.folder.join(".cache").exists(), "what only the installer needs stays");
}

#[test]
fn why_there_is_no_package_is_said_in_few_words() {
    let shelf = Shelf::new();
    let place = place("why", &shelf);
    let why = |package| place.install(package, false).expect_err("nothing to install").to_string();
    let told = why("pypi:nobody==1.0");
    assert!(told.ends_with("could not be installed: the index has no package of this name"), "{told}");
    shelf.sdist(place.path(), "source", &[("source.py", "")]);
    let told = why("pypi:source==1.0");
    assert!(told.contains("only what is built already is installed, without `--scripts`"), "{told}");
}
