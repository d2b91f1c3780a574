//! Frames of a compartment that was taken over.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    isolate::fuzz::decode(bytes);
    // Slower, so for short inputs alone: the driver behind the decoder, with two calls in flight.
    if bytes.len() < 4096 {
        isolate::fuzz::compartment(bytes).expect("the host has sockets");
    }
});
