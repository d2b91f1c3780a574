//! Schemas of tools and the values that are checked against them. A line break stands between the two.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(at) = bytes.iter().position(|byte| *byte == b'\n') else { return };
    let Ok(schema) = serde_json::from_slice(&bytes[..at]) else { return };
    let _ = gateway::check_value(&schema, &bytes[at + 1..]);
});
