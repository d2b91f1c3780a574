//! The functions JavaScript can call, and what they keep.

use crate::account::Accounts;
use crate::channel::{self, Gone};
use crate::rejections::Rejection;
use isolate_wire::{FailCode, Failed, HostCall, Kind, Log, Refused, Used, encode_with};
use std::collections::HashMap;

/// What the natives of this process know. Lives in a slot of the isolate.
#[derive(Default)]
pub struct State {
    /// Off while a server initialises: no host calls, no log.
    pub serving: bool,
    /// Nothing is sent: see `compartment::rehearse`.
    pub rehearsing: bool,
    pub accounts: Accounts,
    /// Calls in flight, with the greatest result each may give.
    pub calls: HashMap<u32, u64>,
    /// Of this turn, not sent yet.
    pub answers: Vec<Vec<u8>>,
    /// Rejected in this turn and not handled so far.
    pub rejections: Vec<Rejection>,
    /// What this turn asks of clients, not sent yet.
    asks: Vec<Asks>,
    waiting: HashMap<u32, v8::Global<v8::PromiseResolver>>,
    /// On whose behalf each host call is made.
    asked_by: HashMap<u32, u32>,
    next_host_call: u32,
}

/// All that one call asks of its client in one turn: it leaves as one host call.
struct Asks {
    call: u32,
    /// JSON objects with commas between them, and how long they are in a frame.
    list: String,
    cost: usize,
    answers: v8::Global<v8::PromiseResolver>,
}

impl State {
    /// Sends what the turn that is over asks of clients, and its answers.
    pub fn send_answers(&mut self) {
        for asks in std::mem::take(&mut self.asks) {
            // A call that is answered has no client to wait for it any more.
            if self.calls.contains_key(&asks.call) {
                let meta = format!("{{\"asks\":[{}]}}", asks.list);
                self.send_host_call(asks.call, "ask".to_owned(), meta, &[], asks.answers);
            }
        }
        for frame in self.answers.drain(..) {
            if !self.rehearsing {
                sent(channel::send_frame(&frame));
            }
        }
    }

    /// Of a process that now serves calls.
    pub fn serving(accounts: Accounts) -> State {
        State { serving: true, accounts, ..State::default() }
    }

    fn send_host_call(
        &mut self,
        call: u32,
        operation: String,
        meta: String,
        body: &[u8],
        reply: v8::Global<v8::PromiseResolver>,
    ) {
        self.next_host_call = self.next_host_call.wrapping_add(1);
        let id = self.next_host_call;
        self.waiting.insert(id, reply);
        self.asked_by.insert(id, call);
        sent(channel::send_with(Kind::HostCall, id, &HostCall { call, operation, meta }, body));
    }

    /// Why the call `id` can have nothing asked of its client: while a server initialises none is in flight.
    fn refusal(&self, id: u32) -> Option<Refused> {
        (!self.serving || !self.calls.contains_key(&id)).then(|| Refused {
            code: "call_is_over".to_owned(),
            message: "this context belongs to a call that is answered already".to_owned(),
        })
    }

    /// The call on whose behalf host call `id` was made.
    pub fn asked_by(&self, id: u32) -> u32 {
        self.asked_by.get(&id).copied().unwrap_or(0)
    }
}

/// The host refuses a larger frame and ends its sender; this is the polite side of the same limit.
const HOST_CALL_BYTES: usize = 1 << 20;

type Args<'a> = v8::FunctionCallbackArguments<'a>;
type Return<'a> = v8::ReturnValue<'a, v8::Value>;

/// What the web APIs are given.
pub fn embedder<'s>(scope: &mut v8::PinScope<'s, '_>) -> Option<v8::Local<'s, v8::Object>> {
    let object = v8::Object::new(scope);
    set(scope, object, "hostCall", host_call)?;
    set(scope, object, "log", log)?;
    set(scope, object, "now", now)?;
    set(scope, object, "asyncContext", async_context)?;
    set(scope, object, "setAsyncContext", set_async_context)?;
    Some(object)
}

/// What the runtime is given.
pub fn natives<'s>(scope: &mut v8::PinScope<'s, '_>) -> Option<v8::Local<'s, v8::Object>> {
    let object = v8::Object::new(scope);
    set(scope, object, "done", done)?;
    set(scope, object, "fail", fail)?;
    set(scope, object, "log", log)?;
    set(scope, object, "progress", progress)?;
    set(scope, object, "ask", ask)?;
    set(scope, object, "hostCallOf", host_call_of)?;
    set(scope, object, "asyncContext", async_context)?;
    set(scope, object, "setAsyncContext", set_async_context)?;
    Some(object)
}

fn set<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    object: v8::Local<'s, v8::Object>,
    name: &str,
    callback: impl v8::MapFnTo<v8::FunctionCallback>,
) -> Option<bool> {
    let function = v8::Function::new(scope, callback)?;
    let key = v8::String::new(scope, name)?;
    object.set(scope, key.into(), function.into())
}

fn state<'a>(scope: &'a mut v8::PinScope<'_, '_>) -> &'a mut State {
    scope.get_slot_mut::<State>().expect("the state is set when the engine is made")
}

/// The call whose code is running, 0 if none.
pub fn current_call(scope: &mut v8::PinScope<'_, '_>) -> u32 {
    scope.get_continuation_preserved_embedder_data().uint32_value(scope).unwrap_or(0)
}

/// A process that cannot speak to its host has no reason to live.
fn sent(result: Result<(), Gone>) {
    if result.is_err() {
        isolate_engine::exit_now(0);
    }
}

fn done(scope: &mut v8::PinScope<'_, '_>, args: Args<'_>, _: Return<'_>) {
    let id = args.get(0).uint32_value(scope).unwrap_or(0);
    let Some(most) = state(scope).calls.get(&id).copied() else { return };
    let Ok(text) = v8::Local::<v8::String>::try_from(args.get(1)) else { return };
    let bytes = text.utf8_length(scope);
    if bytes as u64 > most {
        let message = format!("the result has {bytes} bytes of JSON, {most} are allowed (`result_kb`)");
        return report_failure(scope, id, FailCode::ResultLimit, message);
    }
    let text = text.to_rust_string_lossy(scope);
    let used = settle(scope, id);
    answer(scope, encode_with(Kind::Done, id, &used, text.as_bytes()));
}

fn fail(scope: &mut v8::PinScope<'_, '_>, args: Args<'_>, _: Return<'_>) {
    let id = args.get(0).uint32_value(scope).unwrap_or(0);
    let code = match args.get(1).to_rust_string_lossy(scope).as_str() {
        "unknown_tool" => FailCode::UnknownTool,
        "bad_arguments" => FailCode::BadArguments,
        _ => FailCode::ToolError,
    };
    let message = bounded_text(scope, args.get(2), 16 << 10);
    report_failure(scope, id, code, message);
}

/// Tells the host that the call failed; does nothing for a call that is answered already.
pub fn report_failure(scope: &mut v8::PinScope<'_, '_>, id: u32, code: FailCode, message: String) {
    if state(scope).calls.contains_key(&id) {
        let used = settle(scope, id);
        answer(scope, encode_with(Kind::Failed, id, &Failed { code, message, used }, b""));
    }
}

/// Answers leave when the turn is over, after what the turn has to say in the log.
fn answer(scope: &mut v8::PinScope<'_, '_>, frame: Option<Vec<u8>>) {
    let Some(frame) = frame else { isolate_engine::exit_now(0) };
    state(scope).answers.push(frame);
}

fn settle(scope: &mut v8::PinScope<'_, '_>, id: u32) -> Used {
    let state = state(scope);
    state.calls.remove(&id);
    state.accounts.close(id)
}

/// Text of a value that is a string already; never runs code of the tenant's.
fn bounded_text(scope: &mut v8::PinScope<'_, '_>, value: v8::Local<'_, v8::Value>, most: usize) -> String {
    let Ok(text) = v8::Local::<v8::String>::try_from(value) else { return String::new() };
    let mut text = text.to_rust_string_lossy(scope);
    if text.len() > most {
        let end = (0..=most).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

fn log(scope: &mut v8::PinScope<'_, '_>, args: Args<'_>, _: Return<'_>) {
    if !state(scope).serving {
        return;
    }
    let call = current_call(scope);
    let level = args.get(0).to_rust_string_lossy(scope);
    // The host counts and ends a flood; here only one line is kept from being absurd.
    let text = bounded_text(scope, args.get(1), 256 << 10);
    sent(channel::send_with(Kind::Log, call, &Log { level }, text.as_bytes()));
}

fn progress(scope: &mut v8::PinScope<'_, '_>, args: Args<'_>, _: Return<'_>) {
    if !state(scope).serving {
        return;
    }
    let call = current_call(scope);
    let text = bounded_text(scope, args.get(0), 16 << 10);
    sent(channel::send(Kind::Progress, call, b"", text.as_bytes()));
}

fn now(_: &mut v8::PinScope<'_, '_>, _: Args<'_>, mut result: Return<'_>) {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    result.set_double(since.as_secs_f64() * 1000.0);
}

fn async_context(scope: &mut v8::PinScope<'_, '_>, _: Args<'_>, mut result: Return<'_>) {
    result.set(scope.get_continuation_preserved_embedder_data());
}

fn set_async_context(scope: &mut v8::PinScope<'_, '_>, args: Args<'_>, _: Return<'_>) {
    let value = args.get(0);
    scope.set_continuation_preserved_embedder_data(value);
    let call = current_call(scope);
    state(scope).accounts.switch_to(call);
}

/// `hostCall(operation, meta, body)`, for the call whose code is running.
fn host_call(scope: &mut v8::PinScope<'_, '_>, args: Args<'_>, mut result: Return<'_>) {
    let Some(resolver) = v8::PromiseResolver::new(scope) else { return };
    result.set(resolver.get_promise(scope).into());
    let call = current_call(scope);
    let operation = args.get(0).to_rust_string_lossy(scope);
    let meta = args.get(1).to_rust_string_lossy(scope);
    let body = match v8::Local::<v8::ArrayBufferView>::try_from(args.get(2)) {
        Ok(view) => {
            let mut bytes = vec![0; view.byte_length()];
            let copied = view.copy_contents(&mut bytes);
            bytes.truncate(copied);
            bytes
        }
        Err(_) => Vec::new(),
    };
    let refused = if state(scope).serving { too_large(cost(&meta) + body.len()) } else { Some(initialising()) };
    if let Some(refused) = refused {
        return reject(scope, resolver, &refused);
    }
    let reply = v8::Global::new(scope, resolver);
    state(scope).send_host_call(call, operation, meta, &body, reply);
}

/// `hostCallOf(id, operation, meta)`, for the call `id`, whoever's code is running.
fn host_call_of(scope: &mut v8::PinScope<'_, '_>, args: Args<'_>, mut result: Return<'_>) {
    let Some(resolver) = v8::PromiseResolver::new(scope) else { return };
    result.set(resolver.get_promise(scope).into());
    let call = args.get(0).uint32_value(scope).unwrap_or(0);
    let operation = args.get(1).to_rust_string_lossy(scope);
    let meta = args.get(2).to_rust_string_lossy(scope);
    if let Some(refused) = state(scope).refusal(call).or_else(|| too_large(cost(&meta))) {
        return reject(scope, resolver, &refused);
    }
    let reply = v8::Global::new(scope, resolver);
    state(scope).send_host_call(call, operation, meta, &[], reply);
}

/// `ask(id, json)`: something the call `id` asks of its client. Gives the promise of all answers of this turn; throws a
/// refusal.
fn ask(scope: &mut v8::PinScope<'_, '_>, args: Args<'_>, mut result: Return<'_>) {
    let call = args.get(0).uint32_value(scope).unwrap_or(0);
    let json = args.get(1).to_rust_string_lossy(scope);
    let state = state(scope);
    let open = state.asks.iter().position(|asks| asks.call == call);
    let cost = cost(&json) + open.map_or(ASKS_OVERHEAD, |at| state.asks[at].cost + 1);
    if let Some(refused) = state.refusal(call).or_else(|| too_large(cost)) {
        if let Some(error) = refusal_error(scope, &refused) {
            scope.throw_exception(error);
        }
        return;
    }
    let answers = match open {
        Some(at) => {
            let asks = &mut state.asks[at];
            asks.list.push(',');
            asks.list.push_str(&json);
            asks.cost = cost;
            let answers = asks.answers.clone();
            v8::Local::new(scope, answers)
        }
        None => {
            let Some(resolver) = v8::PromiseResolver::new(scope) else { return };
            let answers = v8::Global::new(scope, resolver);
            self::state(scope).asks.push(Asks { call, list: json, cost, answers });
            resolver
        }
    };
    result.set(answers.get_promise(scope).into());
}

/// Around the list of asks.
const ASKS_OVERHEAD: usize = 16;

/// The bytes that a meta takes in a frame, where it is text within JSON. As it is JSON itself, nothing else is escaped.
fn cost(meta: &str) -> usize {
    meta.len() + meta.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count()
}

fn too_large(bytes: usize) -> Option<Refused> {
    (bytes > HOST_CALL_BYTES).then(|| Refused {
        code: "host_call_too_large".to_owned(),
        message: format!("the host takes at most {HOST_CALL_BYTES} bytes at once; stream what is larger"),
    })
}

fn initialising() -> Refused {
    Refused { code: "egress_denied".to_owned(), message: "there is no egress while a server initialises".to_owned() }
}

/// Settles a host call with what the host said.
pub fn settle_host_call(scope: &mut v8::PinScope<'_, '_>, id: u32, reply: Result<(&[u8], &[u8]), Refused>) {
    let state = state(scope);
    state.asked_by.remove(&id);
    let Some(resolver) = state.waiting.remove(&id) else { return };
    let resolver = v8::Local::new(scope, resolver);
    match reply {
        Ok((meta, body)) => {
            let object = v8::Object::new(scope);
            let bytes = v8::ArrayBuffer::new_backing_store_from_vec(body.to_vec()).make_shared();
            let buffer = v8::ArrayBuffer::with_backing_store(scope, &bytes);
            let fields = (|| {
                let meta = v8::String::new_from_utf8(scope, meta, v8::NewStringType::Normal)?;
                let view = v8::Uint8Array::new(scope, buffer, 0, body.len())?;
                let (meta_key, body_key) = (v8::String::new(scope, "meta")?, v8::String::new(scope, "body")?);
                // Defined and not set: nobody's setter on a prototype sees it.
                object.create_data_property(scope, meta_key.into(), meta.into())?;
                object.create_data_property(scope, body_key.into(), view.into())
            })();
            if fields.is_some() {
                resolver.resolve(scope, object.into());
            }
        }
        Err(refused) => reject(scope, resolver, &refused),
    }
}

fn reject(scope: &mut v8::PinScope<'_, '_>, resolver: v8::Local<'_, v8::PromiseResolver>, refused: &Refused) {
    // Out of memory inside V8: the process ends there, or the promise stays open and the call's time ends it.
    if let Some(error) = refusal_error(scope, refused) {
        resolver.reject(scope, error);
    }
}

/// An error with the refusal's message and code.
fn refusal_error<'s>(scope: &mut v8::PinScope<'s, '_>, refused: &Refused) -> Option<v8::Local<'s, v8::Value>> {
    let message = v8::String::new(scope, &refused.message)?;
    let error = v8::Exception::error(scope, message);
    let object: v8::Local<v8::Object> = error.try_into().ok()?;
    let (key, code) = (v8::String::new(scope, "code")?, v8::String::new(scope, &refused.code)?);
    object.create_data_property(scope, key.into(), code.into())?;
    Some(error)
}
