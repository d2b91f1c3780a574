//! HTTP answers and server-sent events of a program that speaks HTTP. The first byte says how the stream is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::LazyCell;
use tokio::runtime::{Builder, Runtime};

thread_local! {
    static RUNTIME: LazyCell<Runtime> = LazyCell::new(|| Builder::new_current_thread().build().expect("a runtime"));
}

fuzz_target!(|bytes: &[u8]| {
    let Some((piece, rest)) = bytes.split_first() else { return };
    process::fuzzing::events(rest, usize::from(*piece).max(1), 1 << 16);
    RUNTIME.with(|runtime| runtime.block_on(process::fuzzing::answer(rest, 1 << 16)));
});
