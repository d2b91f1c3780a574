//! Runs our JavaScript modules out of a table in this library.

use v8::script_compiler::{Source, compile_module};

/// Where stack traces say that a frame of ours is.
const PREFIX: &str = "bulkhead:";
/// The name under which `js/host.js` finds what Rust hands over, and from which it takes it away.
const HANDOVER: &str = "__bulkhead";

macro_rules! table {
    ($($name:literal),* $(,)?) => { &[$((concat!("./", $name), include_str!(concat!("../js/", $name)))),*] };
}

/// Every module by the specifier that the others import it with.
const MODULES: &[(&str, &str)] = table![
    "abort.js",
    "base64.js",
    "blob.js",
    "body.js",
    "clock.js",
    "compression.js",
    "console.js",
    "crypto.js",
    "crypto_key.js",
    "data_url.js",
    "dom_exception.js",
    "encoding.js",
    "environment.js",
    "event.js",
    "event_target.js",
    "fetch.js",
    "form_data.js",
    "format_error.js",
    "headers.js",
    "host.js",
    "inspect.js",
    "integrity.js",
    "main.js",
    "message_port.js",
    "mime.js",
    "multipart.js",
    "navigator.js",
    "performance.js",
    "primordials.js",
    "report.js",
    "request.js",
    "response.js",
    "streams.js",
    "structured_clone.js",
    "subtle.js",
    "text_streams.js",
    "timers.js",
    "transfer.js",
    "url.js",
    "url_search_params.js",
    "webidl.js",
];

fn source_of(specifier: &str) -> Option<&'static str> {
    if specifier == "npm:web-streams-polyfill" {
        return Some(include_str!(env!("BULKHEAD_STREAMS_JS")));
    }
    MODULES.iter().find(|(name, _)| *name == specifier).map(|(_, source)| *source)
}

/// Modules that were compiled, so that each exists once.
#[derive(Default)]
struct Compiled(Vec<(String, v8::Global<v8::Module>)>);

/// Compiles and evaluates `js/main.js` and all that it imports; gives its exports.
pub fn run<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    natives: v8::Local<'s, v8::Object>,
    embedder: v8::Local<'s, v8::Object>,
) -> Result<v8::Local<'s, v8::Object>, String> {
    v8::tc_scope!(let scope, scope);
    scope.set_slot(Compiled::default());
    let result = hand_over(scope, natives, embedder).and_then(|()| evaluate(scope));
    scope.remove_slot::<Compiled>();
    result.ok_or_else(|| {
        let error = scope.stack_trace().or_else(|| scope.exception());
        error.map_or_else(|| "the web APIs did not load".into(), |error| error.to_rust_string_lossy(scope))
    })
}

fn hand_over<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    natives: v8::Local<'s, v8::Object>,
    embedder: v8::Local<'s, v8::Object>,
) -> Option<()> {
    let handed = v8::Object::new(scope);
    for (name, object) in [("native", natives), ("embedder", embedder)] {
        let key = v8::String::new(scope, name)?;
        handed.set(scope, key.into(), object.into())?;
    }
    let key = v8::String::new(scope, HANDOVER)?;
    let global = scope.get_current_context().global(scope);
    global.set(scope, key.into(), handed.into())?;
    Some(())
}

fn evaluate<'s>(scope: &mut v8::PinScope<'s, '_>) -> Option<v8::Local<'s, v8::Object>> {
    let main = compile(scope, "./main.js")?;
    main.instantiate_module(scope, isolate_engine::resolve::<Ours>)?;
    let promise = v8::Local::<v8::Promise>::try_from(main.evaluate(scope)?).ok()?;
    if main.get_status() == v8::ModuleStatus::Errored {
        // The rejection is ours to report, not an unhandled one.
        promise.mark_as_handled();
        let error = main.get_exception();
        scope.throw_exception(error);
        return None;
    }
    let namespace = v8::Local::<v8::Object>::try_from(main.get_module_namespace()).ok()?;
    let key = v8::String::new(scope, "embedderExports")?;
    v8::Local::<v8::Object>::try_from(namespace.get(scope, key.into())?).ok()
}

fn compile<'s>(scope: &mut v8::PinScope<'s, '_>, specifier: &str) -> Option<v8::Local<'s, v8::Module>> {
    let known = scope
        .get_slot::<Compiled>()
        .and_then(|compiled| compiled.0.iter().find(|(name, _)| name == specifier).map(|(_, module)| module.clone()));
    if let Some(module) = known {
        return Some(v8::Local::new(scope, module));
    }
    let Some(text) = source_of(specifier) else {
        let message = v8::String::new(scope, &format!("there is no module `{specifier}`"))?;
        let error = v8::Exception::error(scope, message);
        scope.throw_exception(error);
        return None;
    };
    let text = v8::String::new(scope, text)?;
    let name = v8::String::new(scope, &specifier.replacen("./", PREFIX, 1))?;
    let origin = v8::ScriptOrigin::new(scope, name.into(), 0, 0, false, 0, None, false, false, true, None);
    let module = compile_module(scope, &mut Source::new(text, Some(&origin)))?;
    let kept = v8::Global::new(scope, module);
    if let Some(compiled) = scope.get_slot_mut::<Compiled>() {
        compiled.0.push((specifier.to_owned(), kept));
    }
    Some(module)
}

/// Our own modules, and no others.
struct Ours;

impl isolate_engine::Modules for Ours {
    fn find<'s>(scope: &mut v8::PinScope<'s, '_>, specifier: &str) -> Option<v8::Local<'s, v8::Module>> {
        compile(scope, specifier)
    }
}
