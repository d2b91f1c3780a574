import { native } from "./host.js";
import { TypeErrorCtor, push, sort, splice } from "./primordials.js";
import { expose, isObject, pairIterable, record, requireArguments, sequence, sequenceFrom, usvString } from "./webidl.js";

export let paramsHooks;

export class URLSearchParams {
  #list = [];
  /** Called after each change, by the URL that these belong to. */
  #changed = null;
  static {
    paramsHooks = {
      make: (query, changed) => {
        const params = new URLSearchParams();
        params.#list = parseForm(query);
        params.#changed = changed;
        return params;
      },
      replace: (params, query) => {
        params.#list = parseForm(query);
      },
      list: (params) => params.#list,
      is: (value) => isObject(value) && #list in value,
    };
  }
  constructor(init = "") {
    if (isObject(init)) {
      const method = init[Symbol.iterator];
      if (method !== undefined && method !== null) {
        const pairs = sequenceFrom(init, method, toPair, "the initial value");
        for (let i = 0; i < pairs.length; i++) {
          if (pairs[i].length !== 2) throw new TypeErrorCtor("each pair must have exactly two items");
        }
        this.#list = pairs;
      } else {
        this.#list = record(init, usvString, usvString);
      }
      return;
    }
    const text = usvString(init);
    this.#list = parseForm(text[0] === "?" ? text.slice(1) : text);
  }
  get size() {
    return this.#list.length;
  }
  append(name, value) {
    this.#list;
    requireArguments(arguments.length, 2, "URLSearchParams.append");
    push(this.#list, [usvString(name), usvString(value)]);
    this.#changed?.();
  }
  delete(name, value = undefined) {
    this.#list;
    requireArguments(arguments.length, 1, "URLSearchParams.delete");
    const key = usvString(name);
    const wanted = value === undefined ? undefined : usvString(value);
    this.#list = this.#list.filter((pair) => pair[0] !== key || (wanted !== undefined && pair[1] !== wanted));
    this.#changed?.();
  }
  get(name) {
    this.#list;
    requireArguments(arguments.length, 1, "URLSearchParams.get");
    const key = usvString(name);
    for (let i = 0; i < this.#list.length; i++) if (this.#list[i][0] === key) return this.#list[i][1];
    return null;
  }
  getAll(name) {
    this.#list;
    requireArguments(arguments.length, 1, "URLSearchParams.getAll");
    const key = usvString(name);
    const values = [];
    for (let i = 0; i < this.#list.length; i++) if (this.#list[i][0] === key) push(values, this.#list[i][1]);
    return values;
  }
  has(name, value = undefined) {
    this.#list;
    requireArguments(arguments.length, 1, "URLSearchParams.has");
    const key = usvString(name);
    const wanted = value === undefined ? undefined : usvString(value);
    for (let i = 0; i < this.#list.length; i++) {
      if (this.#list[i][0] === key && (wanted === undefined || this.#list[i][1] === wanted)) return true;
    }
    return false;
  }
  set(name, value) {
    this.#list;
    requireArguments(arguments.length, 2, "URLSearchParams.set");
    const key = usvString(name);
    const text = usvString(value);
    let found = false;
    for (let i = 0; i < this.#list.length; ) {
      if (this.#list[i][0] !== key) i++;
      else if (found) splice(this.#list, i, 1);
      else {
        this.#list[i++][1] = text;
        found = true;
      }
    }
    if (!found) push(this.#list, [key, text]);
    this.#changed?.();
  }
  sort() {
    // By UTF-16 code units, which is what `<` compares.
    sort(this.#list, (a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
    this.#changed?.();
  }
  toString() {
    return serializeForm(this.#list);
  }
}
pairIterable(URLSearchParams, (params) => paramsHooks.list(params));
expose(URLSearchParams);

const toPair = (value) => sequence(value, usvString, "a pair");

/** Pairs of an application/x-www-form-urlencoded text. */
export function parseForm(text) {
  const flat = native.formParse(text);
  const list = [];
  for (let i = 0; i < flat.length; i += 2) push(list, [flat[i], flat[i + 1]]);
  return list;
}

export function serializeForm(list) {
  const flat = [];
  for (let i = 0; i < list.length; i++) push(flat, list[i][0], list[i][1]);
  return native.formSerialize(flat);
}
