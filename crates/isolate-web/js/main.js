// Puts the web APIs on the global object and gives the embedder its functions.
import { native } from "./host.js";
import { defineProperty, getOwnPropertyDescriptor, ownKeys, resolve, root, then } from "./primordials.js";
import { AbortController, AbortSignal, makeAbort } from "./abort.js";
import { atob, btoa } from "./base64.js";
import { console } from "./console.js";
import { Crypto } from "./crypto.js";
import { DOMException } from "./dom_exception.js";
import { TextDecoder, TextEncoder } from "./encoding.js";
import { CustomEvent, ErrorEvent, Event, MessageEvent, PromiseRejectionEvent } from "./event.js";
import { EventTarget, becomeEventTarget, fire, handlerAttribute } from "./event_target.js";
import { connectInspect, formatError } from "./format_error.js";
import { inspect, registerInspector } from "./inspect.js";
import { Performance, performance } from "./performance.js";
import { connectErrorEvent, reportException } from "./report.js";
import { structuredClone } from "./structured_clone.js";
import { clearInterval, clearTimeout, clearTimers, runTimers, setInterval, setTimeout } from "./timers.js";
import { URL, isURL } from "./url.js";
import { URLSearchParams, paramsHooks } from "./url_search_params.js";
import { internal, requireArguments } from "./webidl.js";

import * as streams from "./streams.js";

const classes = { ...streams,
  AbortController, AbortSignal, Crypto, CustomEvent, DOMException, ErrorEvent, Event, EventTarget, MessageEvent,
  Performance, PromiseRejectionEvent, TextDecoder, TextEncoder, URL, URLSearchParams,
};
for (const name of ownKeys(classes)) {
  defineProperty(root, name, { value: classes[name], writable: true, enumerable: false, configurable: true });
}

const { queueMicrotask, reportError } = {
  queueMicrotask(callback) {
    requireArguments(arguments.length, 1, "queueMicrotask");
    if (typeof callback !== "function") throw new TypeError("queueMicrotask: the callback is not a function");
    // A promise's reaction carries the running call along; a bare microtask would not.
    then(resolve(), () => {
      try {
        callback();
      } catch (error) {
        reportException(error);
      }
    });
  },
  reportError(error) {
    requireArguments(arguments.length, 1, "reportError");
    reportException(error);
  },
};

const functions = {
  atob, btoa, clearInterval, clearTimeout, queueMicrotask, reportError, setInterval, setTimeout, structuredClone,
};
for (const name of ownKeys(functions)) {
  defineProperty(root, name, { value: functions[name], writable: true, enumerable: true, configurable: true });
}

/** An attribute of the global object; assigning replaces it, as [Replaceable] says. */
function attribute(name, value) {
  const accessors = {
    get [name]() {
      return value;
    },
    set [name](replacement) {
      defineProperty(root, name, { value: replacement, writable: true, enumerable: true, configurable: true });
    },
  };
  defineProperty(root, name, { ...getOwnPropertyDescriptor(accessors, name), enumerable: true, configurable: true });
}
attribute("self", root);
attribute("performance", performance);
attribute("crypto", new Crypto(internal));

defineProperty(root, "console", { value: console, writable: true, enumerable: false, configurable: true });
defineProperty(Math, "random", { value: native.random, writable: true, enumerable: false, configurable: true });
delete root.eval;

becomeEventTarget(root);
const handlers = {};
handlerAttribute(root, "error", () => handlers);
handlerAttribute(root, "unhandledrejection", () => handlers);
connectErrorEvent((error) => {
  const message = `Uncaught ${formatError(error)}`;
  return fire(root, new ErrorEvent("error", { message, error, cancelable: true }));
});

connectInspect(inspect);
registerInspector(isURL, (url) => ({ label: "URL", parts: { href: url.href } }));
registerInspector(paramsHooks.is, (params) => ({ label: "URLSearchParams", parts: Object.fromEntries(paramsHooks.list(params)) }));

/** For the embedder alone. */
export const embedderExports = {
  __proto__: null,
  /** runTimers(): number: runs what is due; milliseconds until the next timer, or -1. */
  runTimers,
  /** clearTimers(): void */
  clearTimers,
  /** inspect(value): string */
  inspect: (value) => inspect(value),
  /** formatError(error): string */
  formatError,
  /** makeAbort(): { signal, abort(reason) } */
  makeAbort,
  /** reportException(error): void: an `error` event, and the log unless a listener prevents it. */
  reportException,
};
