//! Locks as they are uploaded: one form alone is taken.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(lock) = bundle::Lock::parse(bytes) {
        assert_eq!(lock.bytes(), bytes);
    }
});
