//! What the runner itself promises: counting, exit codes, time limits.

mod start;

use std::path::{Path, PathBuf};
use std::process::Output;

/// A checkout with these files, under the test's own name.
fn checkout(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(&root).unwrap();
    for (file, content) in files {
        std::fs::write(root.join(file), content).unwrap();
    }
    root
}

fn run(root: &Path, arguments: &[&str]) -> Output {
    start::runner(root, &[&["."], arguments].concat())
}

fn summary(output: &Output) -> serde_json::Value {
    serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["rows"][0].clone()
}

#[test]
fn counts_what_passes_and_what_fails() {
    let root = checkout("counts", &[("a.any.js", "test(() => {}, 'good'); test(() => { throw 1; }, 'bad');")]);
    let row = summary(&run(&root, &["--json"]));
    assert_eq!((&row["passed"], &row["total"]), (&1.into(), &2.into()));
}

#[test]
fn exits_with_1_below_the_minimum() {
    let root = checkout("minimum", &[("a.any.js", "test(() => {}, 'good');")]);
    assert_eq!(run(&root, &["--min", "1"]).status.code(), Some(0));
    assert_eq!(run(&root, &["--min", "2"]).status.code(), Some(1));
}

#[test]
fn a_file_that_does_not_end_fails_alone() {
    let root = checkout("endless", &[("a.any.js", "for (;;);"), ("b.any.js", "test(() => {}, 'good');")]);
    let row = summary(&run(&root, &["--json", "--limit", "1"]));
    assert_eq!((&row["passed"], &row["total"], &row["files"]), (&1.into(), &2.into(), &2.into()));
}

#[test]
fn a_file_that_throws_is_a_failure() {
    let root = checkout("throws", &[("a.any.js", "test(() => {}, 'good'); nonsense();")]);
    let row = summary(&run(&root, &["--json"]));
    assert_eq!((&row["passed"], &row["total"]), (&1.into(), &2.into()));
}

#[test]
fn variants_run_one_by_one_and_scripts_come_first() {
    let test = "// META: variant=?1\n// META: variant=?2\n// META: script=helper.js\ntest(() => assert_true(helped && location.search.length === 2), 'v');";
    let root = checkout("variants", &[("a.any.js", test), ("helper.js", "const helped = true;")]);
    let row = summary(&run(&root, &["--json"]));
    assert_eq!((&row["passed"], &row["files"]), (&2.into(), &2.into()));
}
