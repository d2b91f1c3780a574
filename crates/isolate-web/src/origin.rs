//! The moment from which `performance.now()` counts.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

thread_local! {
    static ORIGIN: Cell<f64> = const { Cell::new(0.0) };
}

/// Sets the origin to now, in whole milliseconds.
pub fn reset() {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    ORIGIN.set(since.as_millis() as f64);
}

/// `timeOrigin(): number`, milliseconds since the epoch.
pub fn time_origin(_scope: &mut v8::PinScope, _args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    rv.set_double(ORIGIN.get());
}
