//! Runs our own tests of the web APIs (crates/isolate-web/tests/js) in the executable that carries V8.

mod start;

use std::path::{Path, PathBuf};
use std::process::Output;

fn own_tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../isolate-web/tests/js")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Every file is a test of its own, so that a failure names it.
macro_rules! own {
    ($($name:ident: $file:literal),* $(,)?) => {
        $(#[test]
        fn $name() {
            let output = start::runner(&own_tests(), &[$file, "--verbose", "--strict"]);
            assert!(output.status.success(), "{}{}", stdout(&output), String::from_utf8_lossy(&output.stderr));
        })*

        #[test]
        fn no_file_is_forgotten() {
            let listed = [$($file),*];
            for entry in std::fs::read_dir(own_tests()).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                assert!(listed.contains(&name.as_str()), "{name} is in no test");
            }
        }
    };
}

own! {
    blobs_files_and_forms: "blob.any.js",
    structured_clone: "clone.any.js",
    console_inspect_and_format_error: "console.any.js",
    crypto_and_math_random: "crypto.any.js",
    text_and_base64: "encoding.any.js",
    events_abort_and_messages: "events.any.js",
    fetch_request_and_response: "fetch.any.js",
    forks_share_no_randomness: "fork.any.js",
    globals_present_and_absent: "globals.any.js",
    hostile_values_are_shown_in_bounds: "hostile.any.js",
    odd_memory_and_deep_values: "limits.any.js",
    streams_and_compression: "streams.any.js",
    tampering_reaches_no_embedder_function: "tamper.any.js",
    timers: "timers.any.js",
    urls: "url.any.js",
}
