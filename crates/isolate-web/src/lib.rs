//! The web-standard APIs that untrusted JavaScript sees inside an isolate: `fetch`, streams, URL, encoding, crypto …
//!
//! The public classes are JavaScript of our own (`js/`), thin, over functions in Rust (`src/`). [`install`] runs once,
//! in a trusted zygote, before any tenant code. The functions in Rust are handed to our modules only: tenant code
//! reaches them through the public classes and in no other way.

#![forbid(unsafe_code)]

mod base64;
mod bytes;
mod clone;
mod digest;
mod form;
mod held;
mod inflate;
mod loader;
mod native;
mod origin;
mod random;
mod text;
mod url;
mod value;

/// What the embedder gets back from [`install`].
pub struct Installed<'s> {
    /// An object with the functions `runTimers`, `clearTimers`, `inspect`, `formatError`, `makeAbort`,
    /// `reportException`, `reportRejection` and `setBaseUrl`; `js/main.js` says what each takes and gives.
    pub exports: v8::Local<'s, v8::Object>,
}

/// Installs the web APIs into the current context.
///
/// `embedder` is an object with the functions `hostCall(op, meta, body)`, `log(level, text)`, `now()`,
/// `asyncContext()` and `setAsyncContext(value)`. They are read now; changing the object later changes nothing.
///
/// # Errors
/// With the JavaScript error's text, when a module of ours does not compile or throws.
pub fn install<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    embedder: v8::Local<'s, v8::Object>,
) -> Result<Installed<'s>, String> {
    after_fork();
    let natives = native::object(scope).ok_or("the native functions could not be made")?;
    let exports = loader::run(scope, natives, embedder)?;
    Ok(Installed { exports })
}

/// To be called first thing in a forked child: drops random bytes drawn before the fork, and starts
/// `performance.now()` at zero.
pub fn after_fork() {
    random::forget();
    origin::reset();
}
