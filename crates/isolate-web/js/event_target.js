import { TypeErrorCtor, apply, defineProperty, push, root, slice, splice } from "./primordials.js";
import { domString, expose, isObject, requireArguments } from "./webidl.js";
import { DOMException } from "./dom_exception.js";
import { isEvent, stateOf } from "./event.js";
import { reportException } from "./report.js";

let listenersOf;
export let isEventTarget;
/** Set by abort.js, which needs this module first: runs `callback` when the signal aborts. */
const signals = { isSignal: () => false, aborted: () => false, onAbort() {}, onListener() {} };
export const connectSignals = (hooks) => {
  signals.isSignal = hooks.isSignal;
  signals.aborted = hooks.aborted;
  signals.onAbort = hooks.onAbort;
  signals.onListener = hooks.onListener;
};

const orGlobal = (receiver) => (receiver === undefined || receiver === null ? root : receiver);

export class EventTarget {
  #listeners = [];
  static {
    listenersOf = (target) => target.#listeners;
    isEventTarget = (value) => isObject(value) && #listeners in value;
  }
  addEventListener(type, callback, options = undefined) {
    const list = listenersOf(orGlobal(this));
    requireArguments(arguments.length, 2, "EventTarget.addEventListener");
    const name = domString(type);
    checkCallback(callback);
    let capture = false;
    let once = false;
    let passive = false;
    let signal;
    if (isObject(options)) {
      capture = !!options.capture;
      once = !!options.once;
      passive = !!options.passive;
      signal = options.signal;
      if (signal !== undefined && !signals.isSignal(signal)) throw new TypeErrorCtor("the signal is not an AbortSignal");
    } else {
      capture = !!options;
    }
    if (callback === null || (signal !== undefined && signals.aborted(signal))) return;
    if (find(list, name, callback, capture) >= 0) return;
    const listener = { type: name, callback, capture, once, passive, removed: false };
    push(list, listener);
    signals.onListener(this, name);
    if (signal !== undefined) signals.onAbort(signal, () => remove(list, listener));
  }
  removeEventListener(type, callback, options = undefined) {
    const list = listenersOf(orGlobal(this));
    requireArguments(arguments.length, 2, "EventTarget.removeEventListener");
    const name = domString(type);
    checkCallback(callback);
    const capture = isObject(options) ? !!options.capture : !!options;
    const at = find(list, name, callback, capture);
    if (at >= 0) remove(list, list[at]);
  }
  dispatchEvent(event) {
    const target = orGlobal(this);
    listenersOf(target);
    requireArguments(arguments.length, 1, "EventTarget.dispatchEvent");
    if (!isEvent(event)) throw new TypeErrorCtor("the argument is not an Event");
    const state = stateOf(event);
    if (state.dispatching || !state.initialized) {
      throw new DOMException("the event is already being dispatched", "InvalidStateError");
    }
    state.trusted = false;
    return dispatch(target, event);
  }
}
expose(EventTarget);

function checkCallback(callback) {
  if (callback !== null && callback !== undefined && !isObject(callback)) throw new TypeErrorCtor("the listener is not an object");
}

function find(list, type, callback, capture) {
  for (let i = 0; i < list.length; i++) {
    const each = list[i];
    if (each.type === type && each.callback === callback && each.capture === capture) return i;
  }
  return -1;
}

function remove(list, listener) {
  listener.removed = true;
  for (let i = 0; i < list.length; i++) {
    if (list[i] === listener) {
      splice(list, i, 1);
      return;
    }
  }
}

/** Dispatches to one target: there is no tree here, so capturing listeners come first and then the others. */
function dispatch(target, event) {
  const state = stateOf(event);
  state.dispatching = true;
  state.target = target;
  state.currentTarget = target;
  state.phase = 2;
  const list = listenersOf(target);
  invoke(target, event, state, list, true);
  invoke(target, event, state, list, false);
  state.phase = 0;
  state.currentTarget = null;
  state.dispatching = false;
  state.stopped = state.stoppedImmediately = false;
  return !state.canceled;
}

function invoke(target, event, state, list, capture) {
  if (state.stopped) return;
  const current = slice(list);
  for (let i = 0; i < current.length; i++) {
    const listener = current[i];
    if (listener.removed || listener.type !== state.type || listener.capture !== capture) continue;
    if (listener.once) remove(list, listener);
    state.passive = listener.passive;
    try {
      call(listener.callback, target, event);
    } catch (error) {
      reportException(error);
    }
    state.passive = false;
    if (state.stoppedImmediately) return;
  }
}

function call(callback, target, event) {
  if (typeof callback === "function") {
    apply(callback, target, [event]);
    return;
  }
  const method = callback.handleEvent;
  if (typeof method !== "function") throw new TypeErrorCtor("the listener's handleEvent is not a function");
  apply(method, callback, [event]);
}

/** Dispatches an event that the runtime itself made. */
export function fire(target, event) {
  stateOf(event).trusted = true;
  return dispatch(target, event);
}

const orUndefined = (value) => (isObject(value) ? value : null);

/**
 * Defines an `onname` attribute. `state(this)` is an object that keeps the handler; it throws for a wrong receiver.
 * `changed(this)` is called after each assignment.
 */
export function handlerAttribute(prototype, name, state, changed = undefined) {
  const key = `on${name}`;
  const wrap = (receiver, record) => ({
    handleEvent(event) {
      if (typeof record[key] !== "function") return;
      if (apply(record[key], receiver, [event]) === false) event.preventDefault();
    },
  });
  const property = {
    get [key]() {
      return state(this)[key] ?? null;
    },
    set [key](value) {
      const record = state(this);
      const handler = orUndefined(value);
      if (handler !== null && !record[`${key}:listener`]) {
        record[`${key}:listener`] = wrap(this, record);
        apply(EventTarget.prototype.addEventListener, this, [name, record[`${key}:listener`]]);
      } else if (handler === null && record[`${key}:listener`]) {
        apply(EventTarget.prototype.removeEventListener, this, [name, record[`${key}:listener`]]);
        record[`${key}:listener`] = undefined;
      }
      record[key] = handler;
      changed?.(this);
    },
  };
  const descriptor = Object.getOwnPropertyDescriptor(property, key);
  defineProperty(prototype, key, { get: descriptor.get, set: descriptor.set, enumerable: true, configurable: true });
}

/** Makes an existing object, the global one, an event target. */
export function becomeEventTarget(object) {
  class Stamp extends function () { return object; } {
    #listeners = [];
    static {
      const plain = listenersOf;
      listenersOf = (target) => (isObject(target) && #listeners in target ? target.#listeners : plain(target));
    }
  }
  new Stamp();
  for (const name of ["addEventListener", "removeEventListener", "dispatchEvent"]) {
    defineProperty(object, name, {
      value: EventTarget.prototype[name], enumerable: true, writable: true, configurable: true,
    });
  }
}
