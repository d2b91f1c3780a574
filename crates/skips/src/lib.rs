//! Tests that cannot run on this machine. Rust's test harness has no verdict for them: a test that returns early counts as
//! passed. Each one reports itself here instead, and `scripts/test.sh` counts it as skipped.
#![forbid(unsafe_code)]

use std::fs::OpenOptions;
use std::io::Write;

/// Names a file that gets a line for each test that was skipped.
pub const RECORD: &str = "BULKHEAD_TEST_SKIPS";

/// Set where nothing may be skipped, as in CI: a skip is then a failure.
pub const FORBIDDEN: &str = "BULKHEAD_TEST_NO_SKIPS";

/// Records that the calling test cannot run here. The test returns right after this.
///
/// # Panics
/// Where nothing may be skipped, and where the skip cannot be recorded.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    // Both harnesses name the thread after its test, except where they run it on the main one.
    let test = thread.name().filter(|name| *name != "main").unwrap_or(reason);
    assert!(std::env::var_os(FORBIDDEN).is_none(), "skipped, and {FORBIDDEN} forbids that: {reason}");
    eprintln!("SKIPPED: {test}: {reason}");
    let Some(record) = std::env::var_os(RECORD) else { return };
    let program = std::env::current_exe().expect("the path of this test");
    let program = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let file = OpenOptions::new().create(true).append(true).open(&record);
    let written = file.and_then(|mut file| file.write_all(format!("{program} {test}\t{reason}\n").as_bytes()));
    written.unwrap_or_else(|error| panic!("cannot record a skip in `{}`: {error}", record.display()));
}
