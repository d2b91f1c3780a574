//! Starts the runner with a library that is up to date.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Once;

const RUNNER: &str = env!("CARGO_BIN_EXE_bulkhead-wpt");

pub fn runner(checkout: &Path, arguments: &[&str]) -> Output {
    static LIBRARY: Once = Once::new();
    LIBRARY.call_once(build_library);
    let output = Command::new(RUNNER).arg(checkout).args(arguments).output();
    output.expect("the runner starts; `scripts/v8.sh` provides its carrier")
}

/// `cargo test` builds the binary but not the library that it loads, because no test can link that; an older one
/// may lie beside the binary.
fn build_library() {
    let folder = Path::new(RUNNER).parent().expect("the binary is in a folder");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--lib", "--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    cargo.arg("--target-dir").arg(folder.parent().expect("the folder is in a target folder"));
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    let status = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo starts");
    assert!(status.success(), "the library does not build");
}
