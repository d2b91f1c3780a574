//! Rejected promises that nobody handles: told in the log once their turn is over, as authors know it.

use crate::natives::{self, State};
use crate::realm::Engine;

/// More than these of one turn are not told of; the log has its own limit.
const MOST: usize = 16;

pub struct Rejection {
    promise: v8::Global<v8::Promise>,
    value: v8::Global<v8::Value>,
    call: u32,
}

/// V8 calls it when a promise is rejected without a handler, and when one gets a handler after all.
pub extern "C" fn note(message: v8::PromiseRejectMessage<'_>) {
    // SAFETY: V8 calls this with a message of the isolate that is running, and uses no other scope meanwhile.
    v8::callback_scope!(unsafe scope, &message);
    let promise = v8::Global::new(scope, message.get_promise());
    let call = natives::current_call(scope);
    let value = message.get_value().map(|value| v8::Global::new(scope, value));
    let Some(state) = scope.get_slot_mut::<State>() else { return };
    match (message.get_event(), value) {
        (v8::PromiseRejectEvent::PromiseRejectWithNoHandler, Some(value)) if state.rejections.len() < MOST => {
            state.rejections.push(Rejection { promise, value, call });
        }
        (v8::PromiseRejectEvent::PromiseHandlerAddedAfterReject, _) => {
            state.rejections.retain(|rejection| rejection.promise != promise);
        }
        _ => {}
    }
}

/// Tells of what is still unhandled. True if there was any: telling may run listeners of the author's.
pub fn tell(engine: &mut Engine) -> bool {
    let rejections = std::mem::take(&mut engine.state().rejections);
    let Some(realm) = engine.realms.last() else { return false };
    for Rejection { promise, value, call } in &rejections {
        v8::scope!(let scope, &mut engine.isolate);
        let context = v8::Local::new(scope, &realm.context);
        let scope = &mut v8::ContextScope::new(scope, context);
        let (promise, value) = (v8::Local::new(scope, promise), v8::Local::new(scope, value));
        let (call, none) = (v8::Integer::new_from_unsigned(scope, *call), v8::undefined(scope));
        scope.set_continuation_preserved_embedder_data(call.into());
        let report = v8::Local::new(scope, &realm.report_rejection);
        let receiver = v8::undefined(scope).into();
        // It formats hostile values safely; if it fails all the same, the line is lost.
        report.call(scope, receiver, &[promise.into(), value]);
        scope.set_continuation_preserved_embedder_data(none.into());
    }
    !rejections.is_empty()
}
