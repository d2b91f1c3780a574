//! Manifests as authors write them.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = bundle::Manifest::parse(bytes);
});
