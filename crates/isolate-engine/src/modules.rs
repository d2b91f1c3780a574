//! Where the modules are that a module imports.

/// Finds modules by their names.
pub trait Modules {
    /// `None` after it has thrown.
    fn find<'s>(scope: &mut v8::PinScope<'s, '_>, specifier: &str) -> Option<v8::Local<'s, v8::Module>>;
}

/// For V8's `instantiate_module`.
pub fn resolve<'s, M: Modules>(
    context: v8::Local<'s, v8::Context>,
    specifier: v8::Local<'s, v8::String>,
    _attributes: v8::Local<'s, v8::FixedArray>,
    _referrer: v8::Local<'s, v8::Module>,
) -> Option<v8::Local<'s, v8::Module>> {
    // SAFETY: V8 calls this while `instantiate_module` runs, with the context it instantiates in, on the isolate's own
    // thread, and nothing else uses a scope of that isolate meanwhile.
    v8::callback_scope!(unsafe scope, context);
    let specifier = specifier.to_rust_string_lossy(scope);
    M::find(scope, &specifier)
}
