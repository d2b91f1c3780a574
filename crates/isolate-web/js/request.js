import { TypeErrorCtor, freeze, toUpperCase } from "./primordials.js";
import { byteString, dictionary, domString, enumValue, expose, isObject, requireArguments, usvString } from "./webidl.js";
import { dependentSignal, isAbortSignal } from "./abort.js";
import { blobOfUrl } from "./blob.js";
import { cloneBody, extractBody, isUnusable, mixinBody, takeBody } from "./body.js";
import { baseUrl } from "./environment.js";
import { headersHooks } from "./headers.js";
import { registerInspector } from "./inspect.js";
import { isToken } from "./mime.js";
import { isReadableStream } from "./streams.js";
import { registerPlatformClass } from "./structured_clone.js";
import { URL, parseUrl } from "./url.js";

const referrerPolicies = [
  "", "no-referrer", "no-referrer-when-downgrade", "same-origin", "origin", "strict-origin", "origin-when-cross-origin",
  "strict-origin-when-cross-origin", "unsafe-url",
];
const enumerations = {
  referrerPolicy: referrerPolicies,
  mode: ["navigate", "same-origin", "no-cors", "cors"],
  credentials: ["omit", "same-origin", "include"],
  cache: ["default", "no-store", "reload", "no-cache", "force-cache", "only-if-cached"],
  redirect: ["follow", "error", "manual"],
  duplex: ["half"],
  priority: ["high", "low", "auto"],
};
const normalized = freeze({ __proto__: null, DELETE: 1, GET: 1, HEAD: 1, OPTIONS: 1, POST: 1, PUT: 1 });
const forbidden = freeze({ __proto__: null, CONNECT: 1, TRACE: 1, TRACK: 1 });

export let requestState;
let isRequest;

export class Request {
  #state;
  static {
    requestState = (request) => request.#state;
    isRequest = (value) => isObject(value) && #state in value;
  }
  constructor(input, init = undefined) {
    requireArguments(arguments.length, 1, "Request");
    const source = isRequest(input) ? input.#state : null;
    const address = source === null ? usvString(input) : null;
    const given = readInit(init);
    const state = source === null ? fresh(address) : { ...source, body: null };
    const changed = given.any;
    if (changed) {
      if (state.mode === "navigate") state.mode = "same-origin";
      state.referrer = "about:client";
      state.referrerPolicy = "";
    }
    if (given.referrer !== undefined) state.referrer = toReferrer(given.referrer);
    if (given.mode === "navigate") throw new TypeErrorCtor('the mode "navigate" is for browsers');
    for (const key of ["referrerPolicy", "mode", "credentials", "cache", "redirect", "integrity", "keepalive"]) {
      if (given[key] !== undefined) state[key] = given[key];
    }
    if (state.cache === "only-if-cached" && state.mode !== "same-origin") {
      throw new TypeErrorCtor('the cache mode "only-if-cached" needs the mode "same-origin"');
    }
    if (given.method !== undefined) state.method = toMethod(given.method);
    const signal = given.signal === undefined ? source?.signal : given.signal;
    state.signal = dependentSignal(signal === null || signal === undefined ? [] : [signal]);
    fillHeaders(state, source, given, changed);
    const hasBody = (given.body !== undefined && given.body !== null) || (source !== null && source.body !== null);
    if (hasBody && (state.method === "GET" || state.method === "HEAD")) {
      throw new TypeErrorCtor(`a request with the method ${state.method} cannot have a body`);
    }
    if (given.body !== undefined && given.body !== null) {
      if (isReadableStream(given.body) && given.duplex === undefined) {
        throw new TypeErrorCtor('a body that is a stream needs duplex: "half"');
      }
      const { body, type } = extractBody(given.body);
      state.body = body;
      if (source !== null && source.body !== null && !isUnusable(source.body)) takeBody(source.body);
      headersHooks.setDefault(state.headers, "content-type", type);
    } else if (source !== null && source.body !== null) {
      if (isUnusable(source.body)) throw new TypeErrorCtor("the request's body is locked or was read already");
      // `body: null` drops nothing: the standard takes the source's body whenever none is given.
      state.body = takeBody(source.body);
    }
    this.#state = state;
  }
  get method() {
    return this.#state.method;
  }
  get url() {
    return this.#state.url;
  }
  get headers() {
    return this.#state.headers;
  }
  get destination() {
    this.#state;
    return "";
  }
  get referrer() {
    return this.#state.referrer === "no-referrer" ? "" : this.#state.referrer;
  }
  get referrerPolicy() {
    return this.#state.referrerPolicy;
  }
  get mode() {
    return this.#state.mode;
  }
  get credentials() {
    return this.#state.credentials;
  }
  get cache() {
    return this.#state.cache;
  }
  get redirect() {
    return this.#state.redirect;
  }
  get integrity() {
    return this.#state.integrity;
  }
  get keepalive() {
    return this.#state.keepalive;
  }
  get isReloadNavigation() {
    this.#state;
    return false;
  }
  get isHistoryNavigation() {
    this.#state;
    return false;
  }
  get signal() {
    return this.#state.signal;
  }
  get duplex() {
    this.#state;
    return "half";
  }
  clone() {
    const state = this.#state;
    if (isUnusable(state.body)) throw new TypeErrorCtor("the request's body is locked or was read already");
    const headers = headersHooks.make("request", headersHooks.copy(state.headers));
    const copy = new Request(state.url);
    copy.#state = { ...state, headers, body: cloneBody(state.body), signal: dependentSignal([state.signal]) };
    return copy;
  }
}
mixinBody(Request, (request) => requestState(request), contentTypes);
expose(Request);
registerPlatformClass(isRequest);
registerInspector(isRequest, ({ method, url, headers }) => ({ label: "Request", parts: { method, url, headers } }));

/** The values of the Content-Type headers of a message, one by one. */
export function contentTypes(state) {
  const values = [];
  for (const [name, value] of headersHooks.list(state.headers)) if (name === "content-type") values.push(...splitValue(value));
  return values;
}

/** Splits a header's value at its commas, except those inside quotes. */
function splitValue(value) {
  return value.match(/(?:[^,"]|"(?:[^"\\]|\\[^])*(?:"|$))+/g) ?? [];
}

function fresh(address) {
  const url = parseUrl(address, baseUrl());
  if (url === undefined) throw new TypeErrorCtor(`Invalid URL: "${address.slice(0, 200)}"`);
  const { username, password } = new URL(url);
  if (username !== "" || password !== "") throw new TypeErrorCtor("the URL contains credentials");
  return {
    method: "GET", url, headers: null, body: null, referrer: "about:client", referrerPolicy: "", mode: "cors",
    credentials: "same-origin", cache: "default", redirect: "follow", integrity: "", keepalive: false, signal: null,
    // A blob: URL means what it meant when the request was made, even if it is revoked later.
    blob: url.startsWith("blob:") ? blobOfUrl(url) : undefined,
  };
}

function readInit(init) {
  const bag = dictionary(init, "the request's options");
  const given = { any: false };
  const take = (key, convert) => {
    const value = bag[key];
    if (value === undefined) return;
    given.any = true;
    given[key] = convert(value);
  };
  const choice = (key) => take(key, (value) => enumValue(value, enumerations[key], key));
  take("body", (value) => value);
  choice("cache");
  choice("credentials");
  choice("duplex");
  take("headers", (value) => value);
  take("integrity", domString);
  take("keepalive", (value) => !!value);
  take("method", byteString);
  choice("mode");
  choice("priority");
  choice("redirect");
  take("referrer", usvString);
  choice("referrerPolicy");
  take("signal", (value) => {
    if (value !== null && !isAbortSignal(value)) throw new TypeErrorCtor("the signal is not an AbortSignal");
    return value;
  });
  take("window", (value) => {
    if (value !== null) throw new TypeErrorCtor("the window can only be null");
    return value;
  });
  return given;
}

function toReferrer(referrer) {
  if (referrer === "") return "no-referrer";
  const url = parseUrl(referrer, baseUrl());
  if (url === undefined) throw new TypeErrorCtor("the referrer is not a URL");
  const base = baseUrl();
  if (url === "about:client" || base === undefined || new URL(url).origin !== new URL(base).origin) return "about:client";
  return url;
}

function toMethod(method) {
  if (!isToken(method) || forbidden[toUpperCase(method)] !== undefined) {
    throw new TypeErrorCtor(`"${method}" is not a method that can be used`);
  }
  const upper = toUpperCase(method);
  return normalized[upper] !== undefined ? upper : method;
}

function fillHeaders(state, source, given, changed) {
  if (state.mode === "no-cors" && !["GET", "HEAD", "POST"].includes(state.method)) {
    throw new TypeErrorCtor(`the method ${state.method} cannot be used with the mode "no-cors"`);
  }
  const guard = state.mode === "no-cors" ? "request-no-cors" : "request";
  const inherited = source === null ? [] : headersHooks.copy(source.headers);
  state.headers = headersHooks.make(guard, inherited);
  if (changed && given.headers !== undefined) {
    headersHooks.clear(state.headers);
    // Of our own class, the list itself: iterating would join the values of one name.
    headersHooks.fill(state.headers, headersHooks.is(given.headers) ? headersHooks.copy(given.headers) : given.headers);
  }
}
