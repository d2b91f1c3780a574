import { TypeErrorCtor, push } from "./primordials.js";
import { asyncContext } from "./host.js";
import { expose, illegalConstructor, integer, internal, isObject, requireArguments, sequence } from "./webidl.js";
import { DOMException } from "./dom_exception.js";
import { Event } from "./event.js";
import { EventTarget, connectSignals, fire, handlerAttribute } from "./event_target.js";
import { addTimer } from "./timers.js";

let recordOf;
export let isAbortSignal;

export class AbortSignal extends EventTarget {
  #record = {
    aborted: false, reason: undefined, algorithms: [], dependents: [], sources: [], dependent: false,
  };
  static {
    recordOf = (signal) => signal.#record;
    isAbortSignal = (value) => isObject(value) && #record in value;
  }
  constructor(key = undefined) {
    if (key !== internal) throw illegalConstructor();
    super();
  }
  static abort(reason = undefined) {
    const signal = new AbortSignal(internal);
    setReason(signal.#record, reason);
    return signal;
  }
  static timeout(milliseconds) {
    requireArguments(arguments.length, 1, "AbortSignal.timeout");
    const delay = integer(milliseconds, 64, { enforceRange: true });
    const signal = new AbortSignal(internal);
    addTimer(() => signalAbort(signal, new DOMException("signal timed out", "TimeoutError")), delay, asyncContext());
    return signal;
  }
  static any(signals) {
    requireArguments(arguments.length, 1, "AbortSignal.any");
    return dependentSignal(sequence(signals, toSignal, "the signals"));
  }
  get aborted() {
    return this.#record.aborted;
  }
  get reason() {
    return this.#record.reason;
  }
  throwIfAborted() {
    if (this.#record.aborted) throw this.#record.reason;
  }
}
expose(AbortSignal);
handlerAttribute(AbortSignal.prototype, "abort", (signal) => recordOf(signal));

function toSignal(value) {
  if (!isAbortSignal(value)) throw new TypeErrorCtor("not an AbortSignal");
  return value;
}

function setReason(record, reason) {
  record.aborted = true;
  record.reason = reason === undefined ? new DOMException("signal is aborted without reason", "AbortError") : reason;
}

export function dependentSignal(signals) {
  const result = new AbortSignal(internal);
  const record = recordOf(result);
  for (let i = 0; i < signals.length; i++) {
    const each = recordOf(signals[i]);
    if (each.aborted) {
      setReason(record, each.reason);
      return result;
    }
  }
  record.dependent = true;
  for (let i = 0; i < signals.length; i++) {
    const each = recordOf(signals[i]);
    const sources = each.dependent ? each.sources : [signals[i]];
    for (let j = 0; j < sources.length; j++) {
      if (record.sources.includes(sources[j])) continue;
      push(record.sources, sources[j]);
      push(recordOf(sources[j]).dependents, result);
    }
  }
  return result;
}

function signalAbort(signal, reason) {
  const record = recordOf(signal);
  if (record.aborted) return;
  setReason(record, reason);
  const aborting = [];
  for (let i = 0; i < record.dependents.length; i++) {
    const dependent = recordOf(record.dependents[i]);
    if (dependent.aborted) continue;
    setReason(dependent, record.reason);
    push(aborting, record.dependents[i]);
  }
  record.dependents = [];
  runAbort(signal);
  for (let i = 0; i < aborting.length; i++) runAbort(aborting[i]);
}

function runAbort(signal) {
  const record = recordOf(signal);
  const algorithms = record.algorithms;
  record.algorithms = [];
  for (let i = 0; i < algorithms.length; i++) algorithms[i]();
  fire(signal, new Event("abort"));
}

export const isAborted = (signal) => recordOf(signal).aborted;
export const abortReason = (signal) => recordOf(signal).reason;

/** Runs `callback` before the event is dispatched; returns a function that takes it off again. */
export function onAbort(signal, callback) {
  const record = recordOf(signal);
  if (record.aborted) return () => {};
  push(record.algorithms, callback);
  return () => {
    const at = record.algorithms.indexOf(callback);
    if (at >= 0) record.algorithms.splice(at, 1);
  };
}
connectSignals({ isSignal: isAbortSignal, aborted: isAborted, onAbort });

export class AbortController {
  #signal = new AbortSignal(internal);
  get signal() {
    return this.#signal;
  }
  abort(reason = undefined) {
    signalAbort(this.#signal, reason);
  }
}
expose(AbortController);

/** For the embedder: a signal, and the function that aborts it. */
export function makeAbort() {
  const signal = new AbortSignal(internal);
  return { signal, abort: (reason) => signalAbort(signal, reason) };
}
