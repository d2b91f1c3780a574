//! The isolate that all tests are forked from, and the run of one test in a fork.

use crate::checkout::Test;
use crate::report::FileResult;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const HARNESS: &str = "resources/testharness.js";
const SETUP: &str = include_str!("../js/setup.js");
const OWN_HARNESS: &str = include_str!("../js/harness.js");

/// An isolate with the web APIs, ready to be forked.
pub struct Realm<'a, 's, 'i> {
    scope: &'a mut v8::PinScope<'s, 'i>,
    /// What `js/setup.js` returns to us.
    setup: v8::Local<'s, v8::Object>,
    exports: v8::Local<'s, v8::Object>,
    checkout: PathBuf,
    install: Duration,
}

/// Where natives of this runner find the checkout.
struct Root(PathBuf);

/// Makes the realm and runs `action` with it.
pub fn with(checkout: &Path, action: impl FnOnce(&mut Realm) -> Result<(), String>) -> Result<(), String> {
    let checkout = checkout.canonicalize().map_err(|error| format!("`{}`: {error}", checkout.display()))?;
    let mut isolate = v8::Isolate::new(v8::CreateParams::default().allow_atomics_wait(false));
    isolate.set_microtasks_policy(v8::MicrotasksPolicy::Explicit);
    isolate.set_slot(Root(checkout.clone()));
    v8::scope!(let scope, &mut isolate);
    let context = v8::Context::new(scope, v8::ContextOptions::default());
    let scope = &mut v8::ContextScope::new(scope, context);
    let (setup, exports, install) = prepare(scope)?;
    action(&mut Realm { scope, setup, exports, checkout, install })
}

type Prepared<'s> = (v8::Local<'s, v8::Object>, v8::Local<'s, v8::Object>, Duration);

fn prepare<'s>(scope: &mut v8::PinScope<'s, '_>) -> Result<Prepared<'s>, String> {
    let make = evaluate(scope, "bulkhead:setup.js", SETUP)?;
    let make = v8::Local::<v8::Function>::try_from(make).map_err(|_| "setup.js is not a function")?;
    let natives = natives(scope).ok_or("the natives of the runner could not be made")?;
    let receiver = v8::undefined(scope);
    let setup = make.call(scope, receiver.into(), &[natives.into()]).ok_or("setup.js threw")?;
    let setup = v8::Local::<v8::Object>::try_from(setup).map_err(|_| "setup.js gave no object")?;
    let embedder = property(scope, setup, "embedder").ok_or("setup.js gave no embedder")?;
    let embedder = v8::Local::<v8::Object>::try_from(embedder).map_err(|_| "the embedder is no object")?;
    let before = jail::process::cpu_used();
    let installed = isolate_web::install(scope, embedder)?;
    Ok((setup, installed.exports, jail::process::cpu_used().saturating_sub(before)))
}

fn property<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    object: v8::Local<'s, v8::Object>,
    name: &str,
) -> Option<v8::Local<'s, v8::Value>> {
    let key = v8::String::new(scope, name)?;
    object.get(scope, key.into())
}

fn evaluate<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    name: &str,
    source: &str,
) -> Result<v8::Local<'s, v8::Value>, String> {
    v8::tc_scope!(let scope, scope);
    let run = |scope: &mut v8::PinScope<'s, '_>| {
        let name = v8::String::new(scope, name)?;
        let source = v8::String::new(scope, source)?;
        let origin = v8::ScriptOrigin::new(scope, name.into(), 0, 0, false, 0, None, false, false, false, None);
        v8::Script::compile(scope, source, Some(&origin))?.run(scope)
    };
    run(scope).ok_or_else(|| {
        let error = scope.stack_trace().or_else(|| scope.exception());
        error.map_or_else(|| format!("{name} was terminated"), |error| error.to_rust_string_lossy(scope))
    })
}

impl<'s> Realm<'_, 's, '_> {
    pub fn install_ms(&self) -> f64 {
        self.install.as_secs_f64() * 1000.0
    }

    /// Runs one test to its end and gives the results as JSON. Only ever called in a fork.
    pub fn run(&mut self, test: &Test) -> Vec<u8> {
        isolate_web::after_fork();
        let error = self.load(test).err();
        let outcome = match error {
            Some(error) => self.results(Some(error)),
            None => {
                self.turn_until_done();
                self.results(None)
            }
        };
        outcome.unwrap_or_else(|| {
            let failed = FileResult { checks: Vec::new(), error: Some("the results could not be read".into()) };
            serde_json::to_vec(&failed).unwrap_or_default()
        })
    }

    fn load(&mut self, test: &Test) -> Result<(), String> {
        let location = format!("{}{}", test.path, test.variant);
        let location = v8::String::new(self.scope, &location).ok_or("the path is too long")?;
        self.call("begin", &[location.into(), self.exports.into()]).ok_or("begin failed")?;
        let harness = std::fs::read_to_string(self.checkout.join(HARNESS)).ok();
        evaluate(self.scope, HARNESS, harness.as_deref().unwrap_or(OWN_HARNESS))?;
        self.call("harnessLoaded", &[]).ok_or("harnessLoaded failed")?;
        for script in test.scripts.iter().chain([&test.path]) {
            let source = std::fs::read(self.checkout.join(script)).map_err(|error| format!("`{script}`: {error}"))?;
            evaluate(self.scope, &format!("/{script}"), &String::from_utf8_lossy(&source))?;
        }
        self.call("loaded", &[]).ok_or("loaded failed")?;
        Ok(())
    }

    fn call(&mut self, name: &str, arguments: &[v8::Local<'s, v8::Value>]) -> Option<v8::Local<'s, v8::Value>> {
        let function = property(self.scope, self.setup, name)?;
        let function = v8::Local::<v8::Function>::try_from(function).ok()?;
        let receiver = v8::undefined(self.scope);
        function.call(self.scope, receiver.into(), arguments)
    }

    /// The event loop: microtasks, then answers of the host, then timers, until the harness says that it is done.
    fn turn_until_done(&mut self) {
        loop {
            self.scope.perform_microtask_checkpoint();
            let Some(wait) = self.call("turn", &[]) else { return };
            let wait = v8::Local::<v8::Number>::try_from(wait).map_or(-1.0, |wait| wait.value());
            if wait < 0.0 {
                return;
            }
            if wait > 0.0 {
                std::thread::sleep(Duration::from_secs_f64(wait.min(50.0) / 1000.0));
            }
        }
    }

    fn results(&mut self, error: Option<String>) -> Option<Vec<u8>> {
        let error: v8::Local<v8::Value> = match error {
            Some(error) => v8::String::new(self.scope, &error)?.into(),
            None => v8::null(self.scope).into(),
        };
        let json = self.call("results", &[error])?;
        let json = v8::Local::<v8::String>::try_from(json).ok()?;
        Some(json.to_rust_string_lossy(self.scope).into_bytes())
    }
}

fn natives<'s>(scope: &mut v8::PinScope<'s, '_>) -> Option<v8::Local<'s, v8::Object>> {
    let object = v8::Object::new(scope);
    let functions = [
        ("readFile", v8::Function::new(scope, read_file)?),
        ("now", v8::Function::new(scope, now)?),
        ("collect", v8::Function::new(scope, collect)?),
        ("inFork", v8::Function::new(scope, in_fork)?),
    ];
    for (name, function) in functions {
        let key = v8::String::new(scope, name)?;
        object.set(scope, key.into(), function.into())?;
    }
    Some(object)
}

/// `readFile(path): Uint8Array | undefined`, of a file inside the checkout.
fn read_file(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let path = args.get(0).to_rust_string_lossy(scope);
    let Some(root) = scope.get_slot::<Root>().map(|root| root.0.clone()) else { return };
    let Ok(full) = root.join(path.trim_start_matches('/')).canonicalize() else { return };
    if !full.starts_with(&root) {
        return;
    }
    let Ok(data) = std::fs::read(full) else { return };
    let length = data.len();
    let store = v8::ArrayBuffer::new_backing_store_from_vec(data).make_shared();
    let buffer = v8::ArrayBuffer::with_backing_store(scope, &store);
    if let Some(array) = v8::Uint8Array::new(scope, buffer, 0, length) {
        rv.set(array.into());
    }
}

/// `now(): number`
fn now(_scope: &mut v8::PinScope, _args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    rv.set_double(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1000.0);
}

/// `collect()`: asks for a garbage collection, for tests that are about it.
fn collect(scope: &mut v8::PinScope, _args: v8::FunctionCallbackArguments, _rv: v8::ReturnValue) {
    scope.low_memory_notification();
}

/// `inFork(draw): string`: what `draw()` gives in a fork of this process.
fn in_fork(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let Ok(draw) = v8::Local::<v8::Function>::try_from(args.get(0)) else { return };
    let child = crate::child::start(Duration::from_secs(10), || {
        isolate_web::after_fork();
        let receiver = v8::undefined(scope);
        let drawn = draw.call(scope, receiver.into(), &[]);
        drawn.map_or_else(Vec::new, |drawn| drawn.to_rust_string_lossy(scope).into_bytes())
    });
    let Ok(mut child) = child else { return };
    let (_, output) = crate::child::wait(&mut [&mut child]);
    let text = String::from_utf8_lossy(&output.unwrap_or_default()).into_owned();
    if let Some(text) = v8::String::new(scope, &text) {
        rv.set(text.into());
    }
}
