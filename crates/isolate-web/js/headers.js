import { TypeErrorCtor, includes, push, regExpExec, sort, stringSlice, toLowerCase } from "./primordials.js";
import { byteString, expose, isObject, pairIterable, record, requireArguments, sequence, sequenceFrom } from "./webidl.js";
import { essence, isToken, parseMime } from "./mime.js";
import { registerInspector } from "./inspect.js";
import { registerPlatformClass } from "./structured_clone.js";

export let headersHooks;

const badValue = /[\0\r\n]/;
const edges = /^[\t\n\r ]+|[\t\n\r ]+$/g;
const normalizeValue = (value) => (regExpExec(/^[\t\n\r ]|[\t\n\r ]$/, value) === null ? value : value.replace(edges, ""));

function checkName(name) {
  if (!isToken(name)) throw new TypeErrorCtor(`"${stringSlice(name, 0, 100)}" is not a header name`);
}

function checkValue(value) {
  if (regExpExec(badValue, value) !== null) throw new TypeErrorCtor("the header's value has a line break or a null character");
}

export class Headers {
  /** [lower-case name, value], in the order of insertion. */
  #list = [];
  #guard = "none";
  #sorted = null;
  static {
    headersHooks = {
      make: (guard, list = []) => {
        const headers = new Headers();
        headers.#list = list;
        headers.#guard = guard;
        return headers;
      },
      list: (headers) => headers.#list,
      copy: (headers) => headers.#list.map((pair) => [pair[0], pair[1]]),
      fill: (headers, init) => headers.#fill(init),
      clear: (headers) => {
        headers.#list = [];
        headers.#sorted = null;
      },
      /** Adds the header unless there is no value or it is there already. */
      setDefault: (headers, name, value) => {
        if (value !== null && headers.#get(name) === null) headers.#append(name, value);
      },
      is: (value) => isObject(value) && #list in value,
      sorted: (headers) => (headers.#sorted ??= sortAndCombine(headers.#list)),
    };
  }
  constructor(init = undefined) {
    if (init !== undefined) this.#fill(init);
  }
  append(name, value) {
    this.#list;
    requireArguments(arguments.length, 2, "Headers.append");
    const key = byteString(name);
    this.#append(key, byteString(value));
  }
  delete(name) {
    this.#list;
    requireArguments(arguments.length, 1, "Headers.delete");
    const key = byteString(name);
    checkName(key);
    this.#checkGuard();
    this.#remove(toLowerCase(key));
  }
  get(name) {
    this.#list;
    requireArguments(arguments.length, 1, "Headers.get");
    const key = byteString(name);
    checkName(key);
    return this.#get(toLowerCase(key));
  }
  getSetCookie() {
    const values = [];
    for (let i = 0; i < this.#list.length; i++) if (this.#list[i][0] === "set-cookie") push(values, this.#list[i][1]);
    return values;
  }
  has(name) {
    this.#list;
    requireArguments(arguments.length, 1, "Headers.has");
    const key = byteString(name);
    checkName(key);
    const lower = toLowerCase(key);
    for (let i = 0; i < this.#list.length; i++) if (this.#list[i][0] === lower) return true;
    return false;
  }
  set(name, value) {
    this.#list;
    requireArguments(arguments.length, 2, "Headers.set");
    const key = byteString(name);
    const text = normalizeValue(byteString(value));
    checkName(key);
    checkValue(text);
    this.#checkGuard();
    const lower = toLowerCase(key);
    if (this.#guard === "request-no-cors" && !isSafelisted(lower, text)) return;
    const at = this.#list.findIndex((pair) => pair[0] === lower);
    if (at < 0) push(this.#list, [lower, text]);
    else {
      this.#list = this.#list.filter((pair, index) => index <= at || pair[0] !== lower);
      this.#list[at] = [lower, text];
    }
    this.#sorted = null;
  }
  #checkGuard() {
    if (this.#guard === "immutable") throw new TypeErrorCtor("these headers cannot be changed");
  }
  #append(name, value) {
    const text = normalizeValue(value);
    checkName(name);
    checkValue(text);
    this.#checkGuard();
    const lower = toLowerCase(name);
    if (this.#guard === "request-no-cors") {
      const before = this.#get(lower);
      if (!isSafelisted(lower, before === null ? text : `${before}, ${text}`)) return;
    }
    push(this.#list, [lower, text]);
    this.#sorted = null;
  }
  #remove(lower) {
    this.#list = this.#list.filter((pair) => pair[0] !== lower);
    this.#sorted = null;
  }
  #get(lower) {
    let text = null;
    for (let i = 0; i < this.#list.length; i++) {
      if (this.#list[i][0] === lower) text = text === null ? this.#list[i][1] : `${text}, ${this.#list[i][1]}`;
    }
    return text;
  }
  #fill(init) {
    if (!isObject(init)) throw new TypeErrorCtor("the headers are neither a sequence nor an object");
    const method = init[Symbol.iterator];
    const pairs = method === undefined || method === null
      ? record(init, byteString, byteString)
      : sequenceFrom(init, method, (pair) => sequence(pair, byteString, "a header"), "the headers");
    for (let i = 0; i < pairs.length; i++) {
      if (pairs[i].length !== 2) throw new TypeErrorCtor("a header is not a pair");
      this.#append(pairs[i][0], pairs[i][1]);
    }
  }
}
pairIterable(Headers, (headers) => headersHooks.sorted(headers));
expose(Headers);
registerPlatformClass(headersHooks.is);
registerInspector(headersHooks.is, (headers) => ({
  label: "Headers", parts: Object.fromEntries(headersHooks.sorted(headers)),
}));

const unsafeByte = /[\0-\x08\x0a-\x1f"():<>?@[\\\]{}\x7f]/;
const simpleTypes = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];
const languageRange = /^[0-9A-Za-z *,.;=-]*$/;

/** What a request with the mode "no-cors" may carry. */
function isSafelisted(name, value) {
  if (value.length > 128) return false;
  switch (name) {
    case "accept":
      return regExpExec(unsafeByte, value) === null;
    case "accept-language":
    case "content-language":
      return regExpExec(languageRange, value) !== null;
    case "content-type": {
      const mime = regExpExec(unsafeByte, value) === null ? parseMime(value) : null;
      return mime !== null && includes(simpleTypes, essence(mime));
    }
    default:
      return false;
  }
}

/** What iteration shows: by name, values of one name together, but each Set-Cookie for itself. */
function sortAndCombine(list) {
  const combined = new Map();
  const result = [];
  for (const [name, value] of list) {
    if (name === "set-cookie") push(result, [name, value]);
    else combined.set(name, combined.has(name) ? `${combined.get(name)}, ${value}` : value);
  }
  for (const pair of combined) push(result, pair);
  // The sort is stable, so cookies keep their order.
  return sort(result, (a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
}
