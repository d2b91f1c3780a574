//! The isolate, and a realm per loaded server: a context with the web APIs and the runtime.

use crate::compartment;
use crate::natives::{self, State};
use isolate_engine::exit;
use std::ffi::{c_char, c_void};

/// V8 with at least one realm ready for a server.
pub struct Engine {
    // Globals go before the isolate that owns them.
    pub realms: Vec<Realm>,
    /// One that no server was loaded into yet.
    pub spare: Option<Realm>,
    /// One that no server is ever loaded into: what is done in it runs no code of a tenant's.
    pub rehearsal: Realm,
    limited: bool,
    pub isolate: v8::OwnedIsolate,
}

/// A context and the functions of the runtime in it.
pub struct Realm {
    pub context: v8::Global<v8::Context>,
    pub adopt: v8::Global<v8::Function>,
    pub adopt_script: v8::Global<v8::Function>,
    pub call: v8::Global<v8::Function>,
    pub abort: v8::Global<v8::Function>,
    pub run_timers: v8::Global<v8::Function>,
    pub clear_timers: v8::Global<v8::Function>,
    pub format_error: v8::Global<v8::Function>,
    pub report_rejection: v8::Global<v8::Function>,
}

impl Engine {
    /// Runs trusted code only, outside the jail: V8 reads time zone and locale data here, once.
    pub fn new(heap_mb: u64) -> Result<Engine, String> {
        let heap = usize::try_from(heap_mb << 20).map_err(|_| "the heap limit is too large".to_owned())?;
        let mut isolate = v8::Isolate::new(v8::CreateParams::default().heap_limits(0, heap));
        v8::V8::set_fatal_error_handler(fatal);
        isolate.set_oom_error_handler(out_of_memory);
        isolate.add_near_heap_limit_callback(near_heap_limit, std::ptr::null_mut());
        isolate.set_allow_atomics_wait(false);
        isolate.set_microtasks_policy(v8::MicrotasksPolicy::Explicit);
        isolate.set_host_import_module_dynamically_callback(crate::server::refuse_dynamic_import);
        isolate.set_promise_reject_callback(crate::rejections::note);
        isolate.set_slot(State::default());
        let rehearsal = Realm::new(&mut isolate)?;
        let spare = Some(Realm::new(&mut isolate)?);
        let mut engine = Engine { realms: Vec::new(), spare, rehearsal, limited: false, isolate };
        engine.preheat()?;
        Ok(engine)
    }

    /// First uses that are slow, or need files: done before the jail, inherited by every fork.
    fn preheat(&mut self) -> Result<(), String> {
        const FIRST_USES: &str = "new Date(2026, 1, 1).toLocaleString('de-DE'); new Date().getTimezoneOffset(); \
             new Intl.DateTimeFormat().resolvedOptions().timeZone; 'a'.localeCompare('b'); \
             new Intl.NumberFormat('en', { style: 'currency', currency: 'EUR' }).format(12); \
             'İ'.normalize('NFKD').toLowerCase(); /\\p{L}/u.test('x'); new Intl.Collator().compare('a', 'b');";
        let realm = self.spare.as_ref().ok_or("there is no realm to warm")?;
        {
            v8::scope!(let scope, &mut self.isolate);
            let context = v8::Local::new(scope, &realm.context);
            let scope = &mut v8::ContextScope::new(scope, context);
            let source = v8::String::new(scope, FIRST_USES).ok_or("out of memory")?;
            let ran = v8::Script::compile(scope, source, None).and_then(|script| script.run(scope));
            ran.ok_or("the warm-up script failed")?;
        }
        for _ in 0..20 {
            compartment::rehearse(self);
        }
        self.tidy();
        Ok(())
    }

    /// Gives back what compiling and evaluating left: every fork pays for each page its parent has.
    pub fn tidy(&mut self) {
        self.isolate.low_memory_notification();
        // Twice: what the first one frees was allocated before, here and there.
        for _ in 0..2 {
            isolate_engine::layout::tidy_heap();
            compartment::rehearse(self);
        }
    }

    /// The realm for the next server. The first one is there already; more are made when a compartment holds several.
    pub fn next_realm(&mut self) -> Result<Realm, String> {
        match self.spare.take() {
            Some(realm) => Ok(realm),
            None => Realm::new(&mut self.isolate),
        }
    }

    pub fn state(&mut self) -> &mut State {
        self.isolate.get_slot_mut::<State>().expect("the state is set when the engine is made")
    }

    /// Forgets what must not be the same in two forks.
    pub fn after_fork(&self) {
        isolate_web::after_fork();
    }

    pub fn limited(&self) -> bool {
        self.limited
    }

    /// Lowers V8's own heap limit; the kernel's limit on the process stands behind it.
    pub fn limit_heap(&mut self, bytes: u64) {
        let limit = usize::try_from(bytes).unwrap_or(usize::MAX);
        // Removing the callback is how V8 takes a new limit; nothing runs in between.
        self.isolate.remove_near_heap_limit_callback(near_heap_limit, limit);
        self.isolate.add_near_heap_limit_callback(near_heap_limit, std::ptr::null_mut());
        self.limited = true;
    }
}

impl Realm {
    fn new(isolate: &mut v8::OwnedIsolate) -> Result<Realm, String> {
        v8::scope!(let scope, isolate);
        let context = v8::Context::new(scope, Default::default());
        context.set_allow_generation_from_strings(false);
        let scope = &mut v8::ContextScope::new(scope, context);
        let embedder = natives::embedder(scope).ok_or("out of memory")?;
        let web = isolate_web::install(scope, embedder)?.exports;
        let natives = natives::natives(scope).ok_or("out of memory")?.into();
        let surface = make(scope, "bulkhead:surface", include_str!("../js/surface.js"), &[])?;
        let client = make(scope, "bulkhead:client", include_str!("../js/client.js"), &[natives])?;
        let rpc = make(scope, "bulkhead:rpc", include_str!("../js/rpc.js"), &[natives])?;
        let offer = make(scope, "bulkhead:offer", include_str!("../js/offer.js"), &[rpc, surface])?;
        let form = make(scope, "bulkhead:form", include_str!("../js/form.js"), &[])?;
        let sdk = make(scope, "bulkhead:sdk", include_str!("../js/sdk.js"), &[rpc, offer, form])?;
        let handler = make(scope, "bulkhead:handler", include_str!("../js/handler.js"), &[web.into(), rpc, offer])?;
        let parts = [natives, web.into(), surface, client, rpc, sdk, handler];
        let made = make(scope, "bulkhead:runtime", include_str!("../js/runtime.js"), &parts)?;
        let made: v8::Local<v8::Object> = made.try_into().map_err(|_| "the runtime gave no object")?;

        let function = |holder: v8::Local<v8::Object>, name: &str| -> Result<v8::Global<v8::Function>, String> {
            let key = v8::String::new(scope, name).ok_or("out of memory")?;
            let value = holder.get(scope, key.into()).ok_or_else(|| format!("`{name}` threw"))?;
            let function: v8::Local<v8::Function> = value.try_into().map_err(|_| format!("`{name}` is no function"))?;
            Ok(v8::Global::new(scope, function))
        };
        Ok(Realm {
            adopt: function(made, "adopt")?,
            adopt_script: function(made, "adoptScript")?,
            call: function(made, "call")?,
            abort: function(made, "abort")?,
            run_timers: function(web, "runTimers")?,
            clear_timers: function(web, "clearTimers")?,
            format_error: function(web, "formatError")?,
            report_rejection: function(web, "reportRejection")?,
            context: v8::Global::new(scope, context),
        })
    }
}

/// Evaluates a script of ours, which is a function, and calls it with what it needs.
fn make<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    name: &str,
    source: &str,
    parts: &[v8::Local<'s, v8::Value>],
) -> Result<v8::Local<'s, v8::Value>, String> {
    let source = v8::String::new(scope, source).ok_or("out of memory")?;
    let resource = v8::String::new(scope, name).ok_or("out of memory")?;
    let origin = v8::ScriptOrigin::new(scope, resource.into(), 0, 0, false, 0, None, false, false, false, None);
    let script = v8::Script::compile(scope, source, Some(&origin)).ok_or_else(|| format!("{name} does not compile"))?;
    let factory = script.run(scope).ok_or_else(|| format!("{name} does not run"))?;
    let factory: v8::Local<v8::Function> = factory.try_into().map_err(|_| format!("{name} is not a function"))?;
    let receiver = v8::undefined(scope).into();
    factory.call(scope, receiver, parts).ok_or_else(|| format!("{name} threw"))
}

extern "C" fn near_heap_limit(_: *mut c_void, _current: usize, _initial: usize) -> usize {
    isolate_engine::exit_now(exit::OUT_OF_MEMORY)
}

unsafe extern "C" fn out_of_memory(_location: *const c_char, _details: &v8::OomDetails) {
    isolate_engine::exit_now(exit::OUT_OF_MEMORY)
}

/// Collections that outgrow what V8 can address end here, too: that is memory, not a fault.
fn fatal(_file: &str, _line: i32, message: &str) {
    let code = if isolate_engine::MEMORY_WORDS.iter().any(|m| message.contains(m)) {
        exit::OUT_OF_MEMORY
    } else {
        exit::FATAL
    };
    isolate_engine::exit_now(code)
}
