//! Random numbers. Workers are forks of one process, so nothing drawn before a fork may be used after it.

use crate::bytes;
use std::cell::RefCell;

const POOL: usize = 1024;

struct Pool {
    bytes: [u8; POOL],
    /// How many bytes at the end are not used yet.
    left: usize,
}

thread_local! {
    static POOL_OF_BYTES: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; POOL], left: 0 }) };
}

/// Empties the pool.
pub fn forget() {
    POOL_OF_BYTES.with_borrow_mut(|pool| {
        pool.bytes = [0; POOL];
        pool.left = 0;
    });
}

fn next_u64() -> u64 {
    POOL_OF_BYTES.with_borrow_mut(|pool| {
        if pool.left < 8 {
            fill(&mut pool.bytes);
            pool.left = POOL;
        }
        let at = POOL - pool.left;
        pool.left -= 8;
        let mut drawn = [0; 8];
        drawn.copy_from_slice(&pool.bytes[at..at + 8]);
        pool.bytes[at..at + 8].fill(0);
        u64::from_le_bytes(drawn)
    })
}

/// A worker that gets no randomness from the kernel must not go on with zeros.
fn fill(buffer: &mut [u8]) {
    if !isolate_engine::fill_random(buffer) {
        isolate_engine::exit_now(isolate_engine::exit::FATAL);
    }
}

/// `random(): number`, at least 0 and below 1, with 53 random bits.
pub fn random(_scope: &mut v8::PinScope, _args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    rv.set_double((next_u64() >> 11) as f64 / (1u64 << 53) as f64);
}

/// `fillRandom(view)`: overwrites the bytes of the view.
pub fn fill_random(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, _rv: v8::ReturnValue) {
    let mut drawn = vec![0; bytes::length(args.get(0))];
    fill(&mut drawn);
    bytes::write(scope, args.get(0), &drawn);
}

/// `randomUUID(): string`, version 4.
pub fn random_uuid(scope: &mut v8::PinScope, _args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let bits = (u128::from(next_u64()) << 64) | u128::from(next_u64());
    let bits = bits & !(0xf000 << 64) & !(0xc000 << 48) | (0x4000 << 64) | (0x8000 << 48);
    let hex = format!("{bits:032x}");
    let text = format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
    bytes::set_string(scope, &mut rv, &text);
}
