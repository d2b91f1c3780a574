//! Looks at values without running any code of theirs.

/// `drainMicrotasks()`: runs what is waiting, unless microtasks are running already.
pub fn drain_microtasks(scope: &mut v8::PinScope, _args: v8::FunctionCallbackArguments, _rv: v8::ReturnValue) {
    scope.perform_microtask_checkpoint();
}

/// `isProxy(value): boolean`
pub fn is_proxy(_scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    rv.set_bool(args.get(0).is_proxy());
}

/// `proxyTarget(proxy): object | null`, null for a revoked one.
pub fn proxy_target(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    match v8::Local::<v8::Proxy>::try_from(args.get(0)) {
        Ok(proxy) if !proxy.is_revoked() => rv.set(proxy.get_target(scope)),
        _ => rv.set_null(),
    }
}

/// `kindOf(object): string`, by internal slots alone.
pub fn kind_of(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let value = args.get(0);
    let kind = if value.is_native_error() {
        "error"
    } else if value.is_function() {
        "function"
    } else if value.is_date() {
        "date"
    } else if value.is_reg_exp() {
        "regexp"
    } else if value.is_map() {
        "map"
    } else if value.is_set() {
        "set"
    } else if value.is_typed_array() {
        "typedarray"
    } else if value.is_array_buffer() {
        "arraybuffer"
    } else if value.is_promise() {
        "promise"
    } else if value.is_number_object() || value.is_string_object() || value.is_boolean_object() {
        "boxed"
    } else if value.is_weak_map() {
        "weakmap"
    } else if value.is_weak_set() {
        "weakset"
    } else {
        "object"
    };
    crate::bytes::set_string(scope, &mut rv, kind);
}

/// `promiseState(promise): [state, result]`
pub fn promise_state(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let Ok(promise) = v8::Local::<v8::Promise>::try_from(args.get(0)) else {
        return;
    };
    let (state, result) = match promise.state() {
        v8::PromiseState::Pending => ("pending", v8::undefined(scope).into()),
        v8::PromiseState::Fulfilled => ("fulfilled", promise.result(scope)),
        v8::PromiseState::Rejected => ("rejected", promise.result(scope)),
    };
    if let Some(state) = v8::String::new(scope, state) {
        rv.set(v8::Array::new_with_elements(scope, &[state.into(), result]).into());
    }
}
