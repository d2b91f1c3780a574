//! Loading a server: a module, or a bare script.

use crate::realm::{Engine, Realm};
use isolate_wire::Load;
use std::time::Duration;

/// Evaluates the source in a realm of its own and gives its surface as JSON, or the author's error.
pub fn load(engine: &mut Engine, load: &Load, source: &[u8]) -> Result<String, String> {
    let source = std::str::from_utf8(source).map_err(|_| "the source is not UTF-8".to_owned())?;
    let realm = engine.next_realm()?;
    let surface = adopt(engine, &realm, &load.name, source);
    // What it queued runs now, at its own expense, and not in whatever turn comes next.
    engine.isolate.perform_microtask_checkpoint();
    forget_initialisation(engine, &realm);
    let surface = surface?;
    if surface.len() as u64 > load.surface_bytes {
        return Err(format!(
            "the server's surface has {} bytes of JSON, {} are allowed",
            surface.len(),
            load.surface_bytes
        ));
    }
    engine.realms.push(realm);
    Ok(surface)
}

fn adopt(engine: &mut Engine, realm: &Realm, name: &str, source: &str) -> Result<String, String> {
    let (module, is_script) = compile(engine, realm, name, source)?;
    evaluate(engine, realm, &module)?;
    read_surface(engine, realm, &module, is_script)
}

/// Timers of the initialisation never fire in a call, and its stray rejections are not a call's.
fn forget_initialisation(engine: &mut Engine, realm: &Realm) {
    v8::scope!(let scope, &mut engine.isolate);
    let context = v8::Local::new(scope, &realm.context);
    let scope = &mut v8::ContextScope::new(scope, context);
    let clear = v8::Local::new(scope, &realm.clear_timers);
    let receiver = v8::undefined(scope).into();
    clear.call(scope, receiver, &[]);
    if let Some(state) = scope.get_slot_mut::<crate::natives::State>() {
        state.rejections.clear();
    }
}

/// What the default export offers. One that speaks the protocol itself is asked, which takes a few turns.
fn read_surface(
    engine: &mut Engine,
    realm: &Realm,
    module: &v8::Global<v8::Module>,
    is_script: bool,
) -> Result<String, String> {
    let promise = {
        v8::scope!(let scope, &mut engine.isolate);
        let context = v8::Local::new(scope, &realm.context);
        let scope = &mut v8::ContextScope::new(scope, context);
        v8::tc_scope!(let scope, scope);
        let surface = (|| {
            let module = v8::Local::new(scope, module);
            let namespace: v8::Local<v8::Object> = module.get_module_namespace().try_into().ok()?;
            let key = v8::String::new(scope, "default")?;
            let exported = namespace.get(scope, key.into())?;
            let adopt = v8::Local::new(scope, if is_script { &realm.adopt_script } else { &realm.adopt });
            let receiver = v8::undefined(scope).into();
            adopt.call(scope, receiver, &[exported])
        })();
        let Some(surface) = surface else {
            let error = scope.exception();
            return Err(describe(scope, realm, error));
        };
        match v8::Local::<v8::Promise>::try_from(surface) {
            Ok(promise) => v8::Global::new(scope, promise),
            Err(_) => return Ok(surface.to_rust_string_lossy(scope)),
        }
    };
    await_promise(engine, realm, &promise, "the server leaves `connect`, `initialize` or a list request unanswered")?;
    v8::scope!(let scope, &mut engine.isolate);
    let context = v8::Local::new(scope, &realm.context);
    let scope = &mut v8::ContextScope::new(scope, context);
    let surface = v8::Local::new(scope, &promise).result(scope);
    // Never code of the tenant's: what was resolved with is a string, or nothing of ours.
    let surface: v8::Local<v8::String> = surface.try_into().map_err(|_| "the server has no surface".to_owned())?;
    Ok(surface.to_rust_string_lossy(scope))
}

/// As a module; if that does not parse or exports no server, as the body of a function of `input` and `ctx`.
fn compile(
    engine: &mut Engine,
    realm: &Realm,
    name: &str,
    source: &str,
) -> Result<(v8::Global<v8::Module>, bool), String> {
    let as_module = compile_module(engine, realm, name, source, 0);
    if let Ok((module, true)) = as_module {
        return Ok((module, false));
    }
    // On the author's own lines and columns, so that stack traces are right.
    const HEAD: &str = "export default async function (input, ctx) { ";
    let wrapped = format!("{HEAD}{source}\n}}");
    match (compile_module(engine, realm, name, &wrapped, -(HEAD.len() as i32)), as_module) {
        (Ok((module, _)), _) => Ok((module, true)),
        (Err(_), Err(error)) => Err(error),
        (Err(_), Ok(_)) => Err("the module has no default export: `export default { tools: { … } }`".to_owned()),
    }
}

/// A linked module, and whether it has a default export. Runs none of its code.
fn compile_module(
    engine: &mut Engine,
    realm: &Realm,
    name: &str,
    source: &str,
    column: i32,
) -> Result<(v8::Global<v8::Module>, bool), String> {
    v8::scope!(let scope, &mut engine.isolate);
    let context = v8::Local::new(scope, &realm.context);
    let scope = &mut v8::ContextScope::new(scope, context);
    v8::tc_scope!(let scope, scope);
    let module = (|| {
        let resource = v8::String::new(scope, name)?;
        let text = v8::String::new(scope, source)?;
        let origin = v8::ScriptOrigin::new(scope, resource.into(), 0, column, false, 0, None, false, false, true, None);
        let mut source = v8::script_compiler::Source::new(text, Some(&origin));
        v8::script_compiler::compile_module(scope, &mut source)
    })();
    match module {
        Some(module) => {
            if module.instantiate_module(scope, isolate_engine::resolve::<Alone>).is_none() {
                let error = scope.exception();
                return Err(describe(scope, realm, error));
            }
            let namespace: v8::Local<v8::Object> =
                module.get_module_namespace().try_into().map_err(|_| "the module has no namespace".to_owned())?;
            let key = v8::String::new(scope, "default").ok_or("out of memory")?;
            let exports = namespace.has_own_property(scope, key.into());
            // A default export that is not initialised yet throws here, and so is there.
            Ok((v8::Global::new(scope, module), exports.unwrap_or(true)))
        }
        None => {
            let place = scope.message().and_then(|message| {
                let line = message.get_line_number(scope)?;
                Some(format!(" ({name}:{line}:{})", message.get_start_column() + 1))
            });
            let text = scope.message().map(|m| m.get(scope).to_rust_string_lossy(scope)).unwrap_or_default();
            Err(text.trim_start_matches("Uncaught ").to_owned() + &place.unwrap_or_default())
        }
    }
}

fn evaluate(engine: &mut Engine, realm: &Realm, module: &v8::Global<v8::Module>) -> Result<(), String> {
    let promise = {
        v8::scope!(let scope, &mut engine.isolate);
        let context = v8::Local::new(scope, &realm.context);
        let scope = &mut v8::ContextScope::new(scope, context);
        v8::tc_scope!(let scope, scope);
        let promise = (|| {
            let module = v8::Local::new(scope, module);
            let promise: v8::Local<v8::Promise> = module.evaluate(scope)?.try_into().ok()?;
            Some(v8::Global::new(scope, promise))
        })();
        match promise {
            Some(promise) => promise,
            None => {
                let error = scope.exception();
                return Err(describe(scope, realm, error));
            }
        }
    };
    await_promise(engine, realm, &promise, "top-level await")
}

/// Runs what is ready and what timers bring until the promise is fulfilled; `what` is said to wait if that can never be.
fn await_promise(
    engine: &mut Engine,
    realm: &Realm,
    promise: &v8::Global<v8::Promise>,
    what: &str,
) -> Result<(), String> {
    loop {
        engine.isolate.perform_microtask_checkpoint();
        let wait = {
            v8::scope!(let scope, &mut engine.isolate);
            let context = v8::Local::new(scope, &realm.context);
            let scope = &mut v8::ContextScope::new(scope, context);
            let promise = v8::Local::new(scope, promise);
            match promise.state() {
                v8::PromiseState::Fulfilled => return Ok(()),
                v8::PromiseState::Rejected => {
                    let error = promise.result(scope);
                    promise.mark_as_handled();
                    return Err(describe(scope, realm, Some(error)));
                }
                v8::PromiseState::Pending => {}
            }
            let run_timers = v8::Local::new(scope, &realm.run_timers);
            let receiver = v8::undefined(scope).into();
            let wait = run_timers.call(scope, receiver, &[]).and_then(|wait| wait.number_value(scope)).unwrap_or(-1.0);
            // The last timer may have been what it waited for.
            if promise.state() == v8::PromiseState::Pending { wait } else { continue }
        };
        if wait < 0.0 {
            return Err(format!("initialisation waits for something that can never happen ({what})"));
        }
        // This only sleeps; the host's time limit ends a long sleep. What the host says to the tenant's other servers meanwhile
        // is read when this one is loaded.
        let pause = Duration::from_millis(wait.clamp(1.0, 1000.0) as u64);
        if jail::socket::poll_closed(crate::channel::FD, pause).unwrap_or(true) {
            return Err("the host went away".to_owned());
        }
    }
}

/// The author's error with its stack, formatted inside this process and under its limits.
fn describe<'s>(scope: &mut v8::PinScope<'s, '_>, realm: &Realm, error: Option<v8::Local<'s, v8::Value>>) -> String {
    let Some(error) = error else { return "initialisation was stopped".to_owned() };
    let format = v8::Local::new(scope, &realm.format_error);
    let receiver = v8::undefined(scope).into();
    match format.call(scope, receiver, &[error]) {
        Some(text) => text.to_rust_string_lossy(scope).chars().take(16 << 10).collect(),
        None => "initialisation failed with an error that cannot be shown".to_owned(),
    }
}

fn import_refusal(specifier: &str) -> String {
    let shown: String = specifier.chars().take(200).collect();
    let hint = if specifier.starts_with("node:") {
        "there are no `node:` modules here; use web-standard APIs"
    } else {
        "a server is one module; bundle what it needs into it"
    };
    format!("cannot import `{shown}`: {hint}")
}

/// A server is one module.
struct Alone;

impl isolate_engine::Modules for Alone {
    fn find<'s>(scope: &mut v8::PinScope<'s, '_>, specifier: &str) -> Option<v8::Local<'s, v8::Module>> {
        let text = v8::String::new(scope, &import_refusal(specifier))?;
        let error = v8::Exception::type_error(scope, text);
        scope.throw_exception(error);
        None
    }
}

pub fn refuse_dynamic_import<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    _options: v8::Local<'s, v8::Data>,
    _resource: v8::Local<'s, v8::Value>,
    specifier: v8::Local<'s, v8::String>,
    _attributes: v8::Local<'s, v8::FixedArray>,
) -> Option<v8::Local<'s, v8::Promise>> {
    let resolver = v8::PromiseResolver::new(scope)?;
    let text = import_refusal(&specifier.to_rust_string_lossy(scope));
    let text = v8::String::new(scope, &text)?;
    let error = v8::Exception::type_error(scope, text);
    resolver.reject(scope, error);
    Some(resolver.get_promise(scope))
}
