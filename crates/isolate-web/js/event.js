import { defineProperty, freeze, getOwnPropertyDescriptor } from "./primordials.js";
import { dictionary, domString, expose, integer, isObject, requireArguments, sequence, usvString } from "./webidl.js";
import { performanceNow } from "./clock.js";

/** The dispatch machinery's view of an event; not reachable from the event's public face. */
export let stateOf;
export let isEvent;

export class Event {
  #state;
  static {
    stateOf = (event) => event.#state;
    isEvent = (value) => isObject(value) && #state in value;
  }
  constructor(type, eventInitDict = undefined) {
    requireArguments(arguments.length, 1, "Event");
    const name = domString(type);
    const init = dictionary(eventInitDict, "the event's options");
    const bubbles = !!init.bubbles;
    const cancelable = !!init.cancelable;
    const composed = !!init.composed;
    this.#state = {
      type: name, bubbles, cancelable, composed, target: null, currentTarget: null, phase: 0, canceled: false,
      stopped: false, stoppedImmediately: false, passive: false, dispatching: false, initialized: true,
      trusted: false, timeStamp: performanceNow(),
    };
    defineProperty(this, "isTrusted", isTrusted);
  }
  get type() {
    return this.#state.type;
  }
  get target() {
    return this.#state.target;
  }
  get srcElement() {
    return this.#state.target;
  }
  get currentTarget() {
    return this.#state.currentTarget;
  }
  composedPath() {
    return this.#state.currentTarget === null ? [] : [this.#state.currentTarget];
  }
  get eventPhase() {
    return this.#state.phase;
  }
  stopPropagation() {
    this.#state.stopped = true;
  }
  get cancelBubble() {
    return this.#state.stopped;
  }
  set cancelBubble(value) {
    const state = this.#state;
    if (value) state.stopped = true;
  }
  stopImmediatePropagation() {
    this.#state.stopped = true;
    this.#state.stoppedImmediately = true;
  }
  get bubbles() {
    return this.#state.bubbles;
  }
  get cancelable() {
    return this.#state.cancelable;
  }
  get returnValue() {
    return !this.#state.canceled;
  }
  set returnValue(value) {
    const state = this.#state;
    if (!value) cancel(state);
  }
  preventDefault() {
    cancel(this.#state);
  }
  get defaultPrevented() {
    return this.#state.canceled;
  }
  get composed() {
    return this.#state.composed;
  }
  get timeStamp() {
    return this.#state.timeStamp;
  }
  initEvent(type, bubbles = false, cancelable = false) {
    const state = this.#state;
    requireArguments(arguments.length, 1, "Event.initEvent");
    const name = domString(type);
    if (state.dispatching) return;
    state.initialized = true;
    state.stopped = state.stoppedImmediately = state.canceled = false;
    state.trusted = false;
    state.target = null;
    state.type = name;
    state.bubbles = !!bubbles;
    state.cancelable = !!cancelable;
  }
}
expose(Event, { constants: { NONE: 0, CAPTURING_PHASE: 1, AT_TARGET: 2, BUBBLING_PHASE: 3 } });

// One accessor for all events, as [LegacyUnforgeable] asks: not configurable, on the object itself.
const isTrusted = getOwnPropertyDescriptor({ get isTrusted() { return stateOf(this).trusted; } }, "isTrusted");
isTrusted.configurable = false;

function cancel(state) {
  if (state.cancelable && !state.passive) state.canceled = true;
}

export class CustomEvent extends Event {
  #detail;
  constructor(type, eventInitDict = undefined) {
    requireArguments(arguments.length, 1, "CustomEvent");
    super(type, eventInitDict);
    this.#detail = eventInitDict?.detail ?? null;
  }
  get detail() {
    return this.#detail;
  }
  initCustomEvent(type, bubbles = false, cancelable = false, detail = null) {
    requireArguments(arguments.length, 1, "CustomEvent.initCustomEvent");
    this.#detail;
    if (stateOf(this).dispatching) return;
    this.initEvent(type, bubbles, cancelable);
    this.#detail = detail;
  }
}
expose(CustomEvent);

export class ErrorEvent extends Event {
  #message;
  #filename;
  #lineno;
  #colno;
  #error;
  constructor(type, eventInitDict = undefined) {
    requireArguments(arguments.length, 1, "ErrorEvent");
    super(type, eventInitDict);
    const { colno = 0, error, filename = "", lineno = 0, message = "" } = dictionary(eventInitDict, "the event's options");
    this.#colno = integer(colno, 32);
    this.#error = error;
    this.#filename = usvString(filename);
    this.#lineno = integer(lineno, 32);
    this.#message = domString(message);
  }
  get message() {
    return this.#message;
  }
  get filename() {
    return this.#filename;
  }
  get lineno() {
    return this.#lineno;
  }
  get colno() {
    return this.#colno;
  }
  get error() {
    return this.#error;
  }
}
expose(ErrorEvent);

export class MessageEvent extends Event {
  #data;
  #origin;
  #lastEventId;
  #ports;
  #source;
  constructor(type, eventInitDict = undefined) {
    requireArguments(arguments.length, 1, "MessageEvent");
    super(type, eventInitDict);
    const { data = null, lastEventId = "", origin = "", ports = [], source = null } = dictionary(eventInitDict, "the event's options");
    this.#data = data;
    this.#ports = freeze(sequence(ports, (port) => port, "the ports"));
    this.#source = source;
    this.#origin = usvString(origin);
    this.#lastEventId = domString(lastEventId);
  }
  get data() {
    return this.#data;
  }
  get origin() {
    return this.#origin;
  }
  get lastEventId() {
    return this.#lastEventId;
  }
  get source() {
    return this.#source;
  }
  get ports() {
    return this.#ports;
  }
}
expose(MessageEvent);

export class PromiseRejectionEvent extends Event {
  #promise;
  #reason;
  constructor(type, eventInitDict) {
    requireArguments(arguments.length, 2, "PromiseRejectionEvent");
    super(type, eventInitDict);
    const { promise, reason } = eventInitDict;
    if (promise === undefined) throw new TypeError("PromiseRejectionEvent: the promise is missing");
    this.#promise = promise;
    this.#reason = reason;
  }
  get promise() {
    return this.#promise;
  }
  get reason() {
    return this.#reason;
  }
}
expose(PromiseRejectionEvent);
