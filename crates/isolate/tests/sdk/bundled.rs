//! Bundles as authors make them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn built() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")
}

/// An example of this tree, with its packages.
pub fn example(name: &str) -> String {
    let source = std::fs::read_to_string(format!("{}/../../examples/{name}/server.ts", env!("CARGO_MANIFEST_DIR")));
    with_packages_of(name, &source.expect("the example is there"))
}

/// TypeScript that may use the packages of an example.
pub fn with_packages_of(example: &str, source: &str) -> String {
    let folder = built().join("examples").join(example);
    let esbuild = built().join("esbuild/esbuild");
    let started = Command::new(&esbuild)
        .args(["--bundle", "--format=esm", "--loader=ts", "--log-level=error"])
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut esbuild) = started else {
        panic!("there is no {} or no {}; run `make test`", esbuild.display(), folder.display())
    };
    esbuild.stdin.take().expect("it was asked for").write_all(source.as_bytes()).expect("esbuild reads");
    let out = esbuild.wait_with_output().expect("esbuild ends");
    assert!(out.status.success(), "esbuild does not take it");
    String::from_utf8(out.stdout).expect("esbuild writes UTF-8")
}
