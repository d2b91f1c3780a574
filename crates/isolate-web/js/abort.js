import {
  SetCtor, TypeErrorCtor, WeakRefCtor, deref, includes, indexOf, push, setAdd, setClear, setDelete, splice,
} from "./primordials.js";
import { asyncContext } from "./host.js";
import { expose, illegalConstructor, integer, internal, isObject, requireArguments, sequence } from "./webidl.js";
import { DOMException } from "./dom_exception.js";
import { Event } from "./event.js";
import { EventTarget, connectSignals, fire, handlerAttribute } from "./event_target.js";
import { addTimer } from "./timers.js";

/**
 * The signals that depend on one. A signal may live for long and be given to many calls, so those that nobody
 * waits for are held weakly; the others are pinned.
 */
class Dependents {
  #weak = [];
  #pinned = new SetCtor();
  #pruneAt = 16;
  add(signal) {
    push(this.#weak, new WeakRefCtor(signal));
    if (this.#weak.length < this.#pruneAt) return;
    const alive = [];
    for (let i = 0; i < this.#weak.length; i++) if (deref(this.#weak[i]) !== undefined) push(alive, this.#weak[i]);
    this.#weak = alive;
    this.#pruneAt = alive.length * 2 + 16;
  }
  pin(signal) {
    setAdd(this.#pinned, signal);
  }
  unpin(signal) {
    setDelete(this.#pinned, signal);
  }
  /** All that are left, oldest first; forgets them. */
  take() {
    const signals = [];
    for (let i = 0; i < this.#weak.length; i++) {
      const signal = deref(this.#weak[i]);
      if (signal !== undefined) push(signals, signal);
    }
    this.#weak = [];
    setClear(this.#pinned);
    return signals;
  }
}

let recordOf;
export let isAbortSignal;

export class AbortSignal extends EventTarget {
  #record = {
    aborted: false, reason: undefined, algorithms: [], dependents: new Dependents(), sources: [], dependent: false,
    pins: 0, listened: false,
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
      if (includes(record.sources, sources[j])) continue;
      push(record.sources, sources[j]);
      recordOf(sources[j]).dependents.add(result);
    }
  }
  return result;
}

function signalAbort(signal, reason) {
  const record = recordOf(signal);
  if (record.aborted) return;
  setReason(record, reason);
  const aborting = [];
  const dependents = record.dependents.take();
  for (let i = 0; i < dependents.length; i++) {
    const dependent = recordOf(dependents[i]);
    if (dependent.aborted) continue;
    setReason(dependent, record.reason);
    push(aborting, dependents[i]);
  }
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
  pin(signal, record);
  return () => {
    const at = indexOf(record.algorithms, callback);
    if (at < 0) return;
    splice(record.algorithms, at, 1);
    unpin(signal, record);
  };
}

function pin(signal, record) {
  if (record.pins++ > 0) return;
  for (let i = 0; i < record.sources.length; i++) recordOf(record.sources[i]).dependents.pin(signal);
}

function unpin(signal, record) {
  if (--record.pins > 0) return;
  for (let i = 0; i < record.sources.length; i++) recordOf(record.sources[i]).dependents.unpin(signal);
}

/** A signal that somebody listens to must live as long as what it depends on. */
function onListener(target, type) {
  if (type !== "abort" || !isAbortSignal(target)) return;
  const record = recordOf(target);
  if (!record.listened) pin(target, record);
  record.listened = true;
}
connectSignals({ isSignal: isAbortSignal, aborted: isAborted, onAbort, onListener });

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
