//! Specifications of APIs, in YAML or JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

fuzz_target!(|bytes: &[u8]| {
    let files = BTreeMap::from([("api.yaml".to_owned(), bytes.to_vec())]);
    let _ = openapi::convert(&files, "api.yaml", &openapi::Options::default());
});
