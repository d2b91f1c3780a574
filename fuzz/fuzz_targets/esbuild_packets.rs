//! Packets of an esbuild that was taken over by the project it builds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    build::read_packet(bytes);
});
