//! The first bytes of a connection to the proxy.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = egress::fuzz::hello_name(bytes);
});
