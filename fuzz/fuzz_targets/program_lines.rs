//! What a program behind the process wall writes to its stdout.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| process::fuzzing::lines(bytes, 1 << 16));
