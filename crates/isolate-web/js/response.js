import { RangeErrorCtor, TypeErrorCtor, jsonStringify, regExpExec } from "./primordials.js";
import { byteString, dictionary, expose, integer, isObject, requireArguments, usvString } from "./webidl.js";
import { bodyOfBytes, cloneBody, extractBody, isUnusable, mixinBody } from "./body.js";
import { utf8Encode } from "./encoding.js";
import { baseUrl } from "./environment.js";
import { headersHooks } from "./headers.js";
import { registerInspector } from "./inspect.js";
import { contentTypes } from "./request.js";
import { registerPlatformClass } from "./structured_clone.js";
import { parseUrl } from "./url.js";

const reasonPhrase = /^[\t\x20-\x7e\x80-\xff]*$/;
const isNullBodyStatus = (status) => status === 101 || status === 103 || status === 204 || status === 205 || status === 304;
const isRedirect = (status) => status === 301 || status === 302 || status === 303 || status === 307 || status === 308;

export let responseState;
let isResponse;
export let makeResponse;

export class Response {
  #state;
  static {
    responseState = (response) => response.#state;
    isResponse = (value) => isObject(value) && #state in value;
    makeResponse = (state) => {
      const response = new Response();
      response.#state = { ...response.#state, ...state };
      return response;
    };
  }
  constructor(body = null, init = undefined) {
    const given = readInit(init);
    this.#state = newState(given);
    if (body !== null && body !== undefined) setBody(this.#state, extractBody(body));
  }
  static error() {
    return makeResponse({ type: "error", status: 0, headers: headersHooks.make("immutable") });
  }
  static redirect(url, status = 302) {
    requireArguments(arguments.length, 1, "Response.redirect");
    const target = parseUrl(usvString(url), baseUrl());
    const code = integer(status, 16);
    if (target === undefined) throw new TypeErrorCtor("the URL cannot be parsed");
    if (!isRedirect(code)) throw new RangeErrorCtor(`${code} is not the status of a redirect`);
    return makeResponse({ status: code, headers: headersHooks.make("immutable", [["location", target]]) });
  }
  static json(data, init = undefined) {
    requireArguments(arguments.length, 1, "Response.json");
    const text = jsonStringify(data);
    if (text === undefined) throw new TypeErrorCtor("the value has no JSON form");
    const response = new Response(null, init);
    setBody(response.#state, { body: bodyOfBytes(utf8Encode(text)), type: "application/json" });
    return response;
  }
  get type() {
    return this.#state.type;
  }
  get url() {
    return this.#state.url;
  }
  get redirected() {
    return this.#state.redirected;
  }
  get status() {
    return this.#state.status;
  }
  get ok() {
    return this.#state.status >= 200 && this.#state.status <= 299;
  }
  get statusText() {
    return this.#state.statusText;
  }
  get headers() {
    return this.#state.headers;
  }
  clone() {
    const state = this.#state;
    if (isUnusable(state.body)) throw new TypeErrorCtor("the response's body is locked or was read already");
    const guard = state.immutable ? "immutable" : "response";
    const headers = headersHooks.make(guard, headersHooks.copy(state.headers));
    return makeResponse({ ...state, headers, body: cloneBody(state.body) });
  }
}
mixinBody(Response, (response) => responseState(response), contentTypes);
expose(Response);
registerPlatformClass(isResponse);
registerInspector(isResponse, ({ status, statusText, url, headers }) => ({
  label: "Response", parts: { status, statusText, url, headers },
}));

function readInit(init) {
  const bag = dictionary(init, "the response's options");
  const given = { headers: bag.headers, status: bag.status, statusText: bag.statusText };
  const status = given.status === undefined ? 200 : integer(given.status, 16);
  const statusText = given.statusText === undefined ? "" : byteString(given.statusText);
  return { headers: given.headers, status, statusText };
}

function newState({ headers: init, status, statusText }) {
  if (status < 200 || status > 599) throw new RangeErrorCtor(`the status ${status} is outside 200 to 599`);
  if (regExpExec(reasonPhrase, statusText) === null) throw new TypeErrorCtor("the status text has a character that is not allowed");
  const headers = headersHooks.make("response");
  if (init !== undefined) headersHooks.fill(headers, init);
  return { type: "default", url: "", redirected: false, status, statusText, headers, body: null, immutable: false };
}

function setBody(state, { body, type }) {
  if (isNullBodyStatus(state.status)) throw new TypeErrorCtor(`a response with the status ${state.status} cannot have a body`);
  state.body = body;
  headersHooks.setDefault(state.headers, "content-type", type);
}
