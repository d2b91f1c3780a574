// Puts the web APIs on the global object and gives the embedder its functions.
import { log, native } from "./host.js";
import { defineProperty, getOwnPropertyDescriptor, ownKeys, resolve, root, then } from "./primordials.js";
import { AbortController, AbortSignal, makeAbort } from "./abort.js";
import { atob, btoa } from "./base64.js";
import { Blob, File } from "./blob.js";
import { CompressionStream, DecompressionStream } from "./compression.js";
import { console } from "./console.js";
import { Crypto } from "./crypto.js";
import { CryptoKey } from "./crypto_key.js";
import { DOMException } from "./dom_exception.js";
import { TextDecoder, TextEncoder } from "./encoding.js";
import { setBaseUrl } from "./environment.js";
import { CustomEvent, ErrorEvent, Event, MessageEvent, PromiseRejectionEvent, isEvent } from "./event.js";
import { EventTarget, becomeEventTarget, fire, handlerAttribute, isEventTarget } from "./event_target.js";
import { fetch } from "./fetch.js";
import { FormData } from "./form_data.js";
import { connectInspect, errorSummary, formatError } from "./format_error.js";
import { Headers } from "./headers.js";
import { MessageChannel, MessagePort } from "./message_port.js";
import "./transfer.js";
import { inspect, registerInspector } from "./inspect.js";
import { Navigator, navigator } from "./navigator.js";
import { Performance, performance } from "./performance.js";
import { connectErrorEvent, reportException } from "./report.js";
import { Request } from "./request.js";
import { Response } from "./response.js";
import * as streams from "./streams.js";
import { registerPlatformClass, structuredClone } from "./structured_clone.js";
import { SubtleCrypto, subtle } from "./subtle.js";
import { TextDecoderStream, TextEncoderStream } from "./text_streams.js";
import { clearInterval, clearTimeout, clearTimers, runTimers, setInterval, setTimeout } from "./timers.js";
import { URL, isURL } from "./url.js";
import { URLSearchParams, paramsHooks } from "./url_search_params.js";
import { internal, requireArguments } from "./webidl.js";

const {
  ByteLengthQueuingStrategy, CountQueuingStrategy, ReadableByteStreamController, ReadableStream,
  ReadableStreamBYOBReader, ReadableStreamBYOBRequest, ReadableStreamDefaultController, ReadableStreamDefaultReader,
  TransformStream, TransformStreamDefaultController, WritableStream, WritableStreamDefaultController,
  WritableStreamDefaultWriter,
} = streams;

const classes = {
  AbortController, AbortSignal, Blob, ByteLengthQueuingStrategy, CompressionStream, CountQueuingStrategy, Crypto,
  CryptoKey, CustomEvent, DOMException, DecompressionStream, ErrorEvent, Event, EventTarget, File, FormData, Headers,
  MessageChannel, MessageEvent, MessagePort, Navigator, Performance, PromiseRejectionEvent, ReadableByteStreamController, ReadableStream,
  ReadableStreamBYOBReader, ReadableStreamBYOBRequest, ReadableStreamDefaultController, ReadableStreamDefaultReader,
  Request, Response, SubtleCrypto, TextDecoder, TextDecoderStream, TextEncoder, TextEncoderStream, TransformStream,
  TransformStreamDefaultController, URL, URLSearchParams, WritableStream, WritableStreamDefaultController,
  WritableStreamDefaultWriter,
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
  atob, btoa, clearInterval, clearTimeout, fetch, queueMicrotask, reportError, setInterval, setTimeout, structuredClone,
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
attribute("navigator", navigator);
attribute("performance", performance);
attribute("crypto", new Crypto(internal, subtle));

defineProperty(root, "console", { value: console, writable: true, enumerable: false, configurable: true });
defineProperty(Math, "random", { value: native.random, writable: true, enumerable: false, configurable: true });
delete root.eval;

becomeEventTarget(root);
const handlers = {};
handlerAttribute(root, "error", () => handlers);
handlerAttribute(root, "unhandledrejection", () => handlers);
connectErrorEvent((error) => {
  const message = `Uncaught ${errorSummary(error)}`;
  return fire(root, new ErrorEvent("error", { message, error, cancelable: true }));
});

function reportRejection(promise, reason) {
  const event = new PromiseRejectionEvent("unhandledrejection", { promise, reason, cancelable: true });
  if (fire(root, event)) log("error", `Uncaught (in promise) ${formatError(reason)}`);
}

for (const test of [isURL, paramsHooks.is, isEvent, isEventTarget]) registerPlatformClass(test);

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
  /** reportRejection(promise, reason): void: an `unhandledrejection` event, and the log unless a listener prevents it. */
  reportRejection,
  /** setBaseUrl(url | undefined): against what relative URLs are resolved; nothing by default. */
  setBaseUrl,
};
