//! A sealed process that serves calls.

use crate::account::{self, Accounts};
use crate::channel::Channel;
use crate::natives::{self, State};
use crate::realm::Engine;
use crate::rejections;
use crate::server;
use crate::zygote::{self, Sealing};
use isolate_engine::exit_now;
use isolate_wire::{
    Call, Decoder, FailCode, Fork, Frame, Kind, Load, Operation, Refused, Role, encode_with, with_grace,
};
use jail::process::{self, Memory};
use std::time::Duration;

/// Serves one call and ends. What waits here ready is a whole process of its own.
///
/// Neither this nor [`serve_many`] returns: taking V8 down in good order would cost more than the call.
///
/// `fresh` is the memory of a process that has made ready for a call. One whose call waits already does not: it touches in
/// the call what it needs, and what it would have touched before is not counted.
pub fn serve_one(mut engine: Engine, mut channel: Channel, fork: &Fork, sealing: &Sealing, fresh: Memory) -> ! {
    // What is resident can be compared only when all has been touched that is everybody's.
    let ready = fork.role == Role::Spare || !account::by_touch();
    if ready {
        touch(&mut engine, sealing);
    }
    // This call's own time. Armed before the filter takes away the means to change it.
    let budget = Duration::from_millis(fork.cpu_ms);
    if process::arm_cpu_timer(Some(with_grace(budget))).is_err() || sealing.child.install().is_err() {
        exit_now(1);
    }
    *engine.state() = State::serving(Accounts::open_one((!ready).then_some(fresh)));
    let Ok(frame) = channel.receive() else { exit_now(0) };
    if frame.kind != Kind::Call || !begin(&mut engine, &frame) {
        exit_now(1);
    }
    while !engine.state().calls.is_empty() && turn(&mut engine, &mut channel) {}
    exit_now(0)
}

/// Serves calls, several at a time, until the host closes the channel.
pub fn serve_many(mut engine: Engine, mut channel: Channel, sealing: &Sealing) -> ! {
    touch(&mut engine, sealing);
    // From here on the host has a timer on it.
    if process::arm_cpu_timer(None).is_err() || sealing.child.install().is_err() {
        exit_now(1);
    }
    *engine.state() = State::serving(Accounts::open_many());
    while turn(&mut engine, &mut channel) {}
    exit_now(0)
}

/// CPU time for what is done between a server's code and a call's: far more than it takes. No code of the tenant's runs
/// then; should any after all, this is what ends it.
pub const BETWEEN: Duration = Duration::from_secs(1);

/// Touches what every call touches, before anything is counted. The timer stays armed.
pub fn touch(engine: &mut Engine, sealing: &Sealing) {
    if process::arm_cpu_timer(Some(BETWEEN)).is_err() {
        exit_now(1);
    }
    if let Some(image) = &sealing.image {
        image.touch();
    }
    rehearse(engine);
}

/// The number that no call has.
const REHEARSAL: u32 = 0;

/// The servers that no tenant deploys: in the realm that none is ever loaded into, and in the one that waits for its first.
const IN_REHEARSAL_REALM: u32 = u32::MAX;
const IN_SPARE_REALM: u32 = u32::MAX - 1;

/// Takes the whole way of a call with trusted code and an answer that is not sent, so that this process has touched the
/// pages that its first call will need: that is most of what a first call would cost.
///
/// Never in the realm of a server: it can have replaced whatever is reached there, and there is no budget here.
pub fn rehearse(engine: &mut Engine) {
    rehearse_in(engine, IN_REHEARSAL_REALM);
    if engine.spare.is_some() {
        rehearse_in(engine, IN_SPARE_REALM);
    }
}

fn rehearse_in(engine: &mut Engine, server: u32) {
    let name = "rehearse".to_owned();
    let call = Call { operation: Operation::Tool, name, server, result_bytes: 1 << 20 };
    let Some(bytes) = encode_with(Kind::Call, REHEARSAL, &call, br#"{"price":1,"text":"x","list":[1,2]}"#) else {
        return;
    };
    let mut decoder = Decoder::new(bytes.len());
    decoder.push(&bytes);
    *engine.state() = State::serving(Accounts::open_rehearsal());
    engine.state().rehearsing = true;
    if let Ok(Some(frame)) = decoder.next_frame() {
        begin(engine, &frame);
    }
    *engine.state() = State::default();
}

/// One piece of work: due timers, then one frame. False when the host is gone.
fn turn(engine: &mut Engine, channel: &mut Channel) -> bool {
    // With no call in flight nothing of the tenant's runs, whatever timers it left.
    let timeout = if engine.state().calls.is_empty() { None } else { run_timers(engine) };
    if timeout.is_some() && engine.state().calls.is_empty() {
        return true;
    }
    match channel.receive_within(timeout) {
        Ok(Some(frame)) => handle(engine, &frame),
        Ok(None) => true,
        Err(_) => false,
    }
}

fn handle(engine: &mut Engine, frame: &Frame) -> bool {
    match frame.kind {
        Kind::Call => begin(engine, frame),
        Kind::Load => load(engine, frame),
        Kind::Reply => {
            settle_host_call(engine, frame.id, Ok((&frame.meta, &frame.body)));
            true
        }
        Kind::Refuse => match frame.meta::<Refused>() {
            Ok(refused) => {
                settle_host_call(engine, frame.id, Err(refused));
                true
            }
            Err(_) => false,
        },
        Kind::Abort => {
            abort(engine, frame.id);
            true
        }
        _ => false,
    }
}

/// Runs the code of the call up to where it waits.
fn begin(engine: &mut Engine, frame: &Frame) -> bool {
    let Ok(call) = frame.meta::<Call>() else { return false };
    let Ok(input) = std::str::from_utf8(&frame.body) else { return false };
    let id = frame.id;
    let state = engine.state();
    state.calls.insert(id, call.result_bytes);
    state.accounts.open(id);
    state.accounts.switch_to(id);
    {
        let rehearsal = engine.state().rehearsing;
        let realm = match call.server {
            IN_REHEARSAL_REALM if rehearsal => Some(&engine.rehearsal),
            IN_SPARE_REALM if rehearsal => engine.spare.as_ref(),
            server => engine.realms.get(server as usize),
        };
        v8::scope!(let scope, &mut engine.isolate);
        let Some(realm) = realm else { return false };
        let context = v8::Local::new(scope, &realm.context);
        let scope = &mut v8::ContextScope::new(scope, context);
        let current = v8::Integer::new_from_unsigned(scope, id);
        scope.set_continuation_preserved_embedder_data(current.into());
        v8::tc_scope!(let scope, scope);
        let operation = match call.operation {
            Operation::Tool => "tool",
            Operation::Resource => "resource",
            Operation::Prompt => "prompt",
            Operation::Complete => "complete",
        };
        let ran = (|| {
            let operation = v8::String::new(scope, operation)?;
            let name = v8::String::new(scope, &call.name)?;
            let input = v8::String::new(scope, input)?;
            let run = v8::Local::new(scope, &realm.call);
            let (receiver, server) =
                (v8::undefined(scope).into(), v8::Integer::new(scope, if rehearsal { -1 } else { 0 }));
            run.call(scope, receiver, &[current.into(), operation.into(), name.into(), server.into(), input.into()])
        })();
        if ran.is_none() {
            let message = "the call could not be started: the input may be too large for V8".to_owned();
            natives::report_failure(scope, id, FailCode::ToolError, message);
        }
        let none = v8::undefined(scope);
        scope.set_continuation_preserved_embedder_data(none.into());
    }
    finish_turn(engine);
    true
}

fn load(engine: &mut Engine, frame: &Frame) -> bool {
    let Ok(load) = frame.meta::<Load>() else { return false };
    let state = engine.state();
    state.accounts.begin_load();
    state.serving = false;
    let loaded = server::load(engine, &load, &frame.body);
    let state = engine.state();
    state.serving = true;
    state.accounts.end_load();
    zygote::answer_load(loaded).is_ok()
}

fn settle_host_call(engine: &mut Engine, id: u32, reply: Result<(&[u8], &[u8]), Refused>) {
    let state = engine.state();
    let call = state.asked_by(id);
    state.accounts.switch_to(call);
    {
        let Some(realm) = engine.realms.first() else { return };
        v8::scope!(let scope, &mut engine.isolate);
        let context = v8::Local::new(scope, &realm.context);
        let scope = &mut v8::ContextScope::new(scope, context);
        natives::settle_host_call(scope, id, reply);
    }
    finish_turn(engine);
}

fn abort(engine: &mut Engine, id: u32) {
    engine.state().accounts.switch_to(id);
    for realm in &engine.realms {
        v8::scope!(let scope, &mut engine.isolate);
        let context = v8::Local::new(scope, &realm.context);
        let scope = &mut v8::ContextScope::new(scope, context);
        let abort = v8::Local::new(scope, &realm.abort);
        let (receiver, id) = (v8::undefined(scope).into(), v8::Integer::new_from_unsigned(scope, id).into());
        abort.call(scope, receiver, &[id]);
    }
    finish_turn(engine);
}

/// Runs what is due, realm by realm; gives the time until the next timer, `None` if there is none.
fn run_timers(engine: &mut Engine) -> Option<Duration> {
    let mut next: Option<f64> = None;
    for realm in &engine.realms {
        v8::scope!(let scope, &mut engine.isolate);
        let context = v8::Local::new(scope, &realm.context);
        let scope = &mut v8::ContextScope::new(scope, context);
        let run = v8::Local::new(scope, &realm.run_timers);
        let receiver = v8::undefined(scope).into();
        let wait = run.call(scope, receiver, &[]).and_then(|wait| wait.number_value(scope)).unwrap_or(-1.0);
        if wait >= 0.0 {
            next = Some(next.map_or(wait, |n: f64| n.min(wait)));
        }
    }
    finish_turn(engine);
    // A poll never returns early, so a timer that is due in a fraction of a millisecond waits a whole one.
    next.map(|ms| Duration::from_millis(ms.ceil().clamp(0.0, 86_400_000.0) as u64))
}

/// Everything that became ready runs before anything else is read.
fn finish_turn(engine: &mut Engine) {
    engine.isolate.perform_microtask_checkpoint();
    while rejections::tell(engine) {
        engine.isolate.perform_microtask_checkpoint();
    }
    let state = engine.state();
    state.send_answers();
    state.accounts.stop();
}
