// Shows values to people. Bounded in depth, breadth and length; runs no getter, no proxy trap and no method of the
// value, so that a hostile one can neither throw nor take long.
import { native } from "./host.js";
import {
  StringCtor, bigIntToString, booleanValueOf, bufferByteLength, dateGetTime, dateToISOString, functionToString,
  getOwnPropertyDescriptor, getPrototypeOf, includes, isArray, join, jsonStringify, mapEntries, mapIteratorNext, mapSize,
  min, numberValueOf, ownKeys, pop, push, regExpExec, regExpFlags, regExpSource, sameValue, setIteratorNext, setSize,
  setValues, stringSlice, stringValueOf, symbolToString, typedArrayLength, typedArrayTag,
} from "./primordials.js";
import { errorText } from "./format_error.js";

const MAX_DEPTH = 4;
const MAX_ITEMS = 100;
const MAX_STRING = 10_000;
const MAX_NODES = 5_000;
const MAX_LENGTH = 64 * 1024;
const WIDTH = 76;

const platform = [];
/** Tells how to show a class of the platform: `test(value)` must be a brand check, `describe(value)` runs trusted code only. */
export function registerInspector(test, describe) {
  push(platform, { test, describe });
}

export function inspect(value, { depth = MAX_DEPTH, quote = true } = {}) {
  const state = { nodes: 0, length: 0, path: [], limit: min(depth, MAX_DEPTH * 2) };
  try {
    if (typeof value === "string" && !quote) return clip(value, MAX_LENGTH);
    return clip(show(value, state, 0), MAX_LENGTH);
  } catch {
    return "[value that cannot be shown]";
  }
}

export function clip(text, limit) {
  return text.length <= limit ? text : `${stringSlice(text, 0, limit)}… ${text.length - limit} more characters`;
}

function show(value, state, depth) {
  state.nodes++;
  switch (typeof value) {
    case "string":
      return quoteString(value, state);
    case "number":
      return sameValue(value, -0) ? "-0" : `${value}`;
    case "bigint":
      return `${clip(bigIntText(value), 1000)}n`;
    case "symbol":
      return clip(symbolToString(value), 1000);
    case "function":
    case "object":
      return value === null ? "null" : showObject(value, state, depth);
    default:
      return `${value}`;
  }
}

// A number of a million digits takes seconds to print.
const LARGE = 2n ** 4096n;
const bigIntText = (value) => (value >= LARGE || value <= -LARGE ? "[very large] " : bigIntToString(value));

function quoteString(text, state) {
  const clipped = clip(text, MAX_STRING);
  state.length += clipped.length;
  return jsonStringify(clipped);
}

function showObject(value, state, depth) {
  if (native.isProxy(value)) {
    const target = native.proxyTarget(value);
    return target === null ? "[revoked Proxy]" : `Proxy(${show(target, state, depth)})`;
  }
  if (includes(state.path, value)) return "[Circular]";
  if (depth > state.limit || state.nodes > MAX_NODES || state.length > MAX_LENGTH) return shortForm(value);
  push(state.path, value);
  const text = showParts(value, state, depth);
  pop(state.path);
  state.length += min(text.length, 200);
  return text;
}

const shortForm = (value) => (typeof value === "function" ? functionHead(value) : isArray(value) ? "[Array]" : `[${className(value)}]`);

function showParts(value, state, depth) {
  if (isArray(value)) return showArray(value, state, depth);
  const kind = native.kindOf(value);
  switch (kind) {
    case "error":
      return errorText(value, 0);
    case "date":
      return dateGetTime(value) !== dateGetTime(value) ? "Invalid Date" : dateToISOString(value);
    case "regexp":
      return clip(`/${regExpSource(value)}/${flagsOf(value)}`, 1000);
    case "map":
      return showMap(value, state, depth);
    case "set":
      return showSet(value, state, depth);
    case "typedarray":
      return showTypedArray(value, state);
    case "arraybuffer":
      return `ArrayBuffer { byteLength: ${bufferByteLength(value)} }`;
    case "promise":
      return showPromise(value, state, depth);
    case "function":
      return showFunction(value, state, depth);
    case "boxed":
      return showBoxed(value);
    case "weakmap":
    case "weakset":
    case "weakref":
      return `${className(value)} { … }`;
    default:
      return showOther(value, state, depth);
  }
}

function flagsOf(value) {
  let flags = "";
  for (let i = 0; i < regExpFlags.length; i++) if (regExpFlags[i].has(value)) flags += regExpFlags[i].letter;
  return flags;
}

const boxes = [
  { open: numberValueOf, name: "Number" }, { open: stringValueOf, name: "String" }, { open: booleanValueOf, name: "Boolean" },
];
function showBoxed(value) {
  for (let i = 0; i < boxes.length; i++) {
    try {
      return `[${boxes[i].name}: ${clip(jsonStringify(boxes[i].open(value)) ?? "", 1000)}]`;
    } catch {
      // Another kind.
    }
  }
  return `[${className(value)}]`;
}

function showOther(value, state, depth) {
  for (let i = 0; i < platform.length; i++) {
    if (platform[i].test(value)) {
      const { label, parts } = platform[i].describe(value);
      const entries = [];
      const keys = ownKeys(parts);
      for (let j = 0; j < keys.length; j++) push(entries, `${keys[j]}: ${show(parts[keys[j]], state, depth + 1)}`);
      return wrap(`${label} {`, entries, "}", depth);
    }
  }
  const name = className(value);
  return wrap(name === "Object" ? "{" : `${name} {`, properties(value, state, depth), "}", depth);
}

const functionHead = (value) => {
  const name = dataProperty(value, "name");
  const label = typeof name === "string" && name !== "" ? name : "(anonymous)";
  const kind = regExpExec(/^class\b/, stringSlice(functionToString(value), 0, 6)) === null ? "Function" : "class";
  return kind === "class" ? `[class ${clip(label, 200)}]` : `[Function: ${clip(label, 200)}]`;
};

function showFunction(value, state, depth) {
  const extra = properties(value, state, depth);
  return extra.length === 0 ? functionHead(value) : wrap(`${functionHead(value)} {`, extra, "}", depth);
}

function showArray(value, state, depth) {
  const entries = [];
  const shown = min(value.length, MAX_ITEMS);
  let holes = 0;
  const flushHoles = () => {
    if (holes > 0) push(entries, `<${holes} empty item${holes === 1 ? "" : "s"}>`);
    holes = 0;
  };
  for (let i = 0; i < shown; i++) {
    const descriptor = getOwnPropertyDescriptor(value, StringCtor(i));
    if (descriptor === undefined) {
      holes++;
      continue;
    }
    flushHoles();
    push(entries, propertyValue(descriptor, state, depth));
  }
  flushHoles();
  if (value.length > shown) push(entries, `… ${value.length - shown} more items`);
  else if (value.length <= MAX_ITEMS) addProperties(entries, value, state, depth, (key) => !isIndex(key) && key !== "length");
  const name = className(value);
  return wrap(name === "Array" ? "[" : `${name}(${value.length}) [`, entries, "]", depth);
}

const isIndex = (key) => typeof key === "string" && regExpExec(/^(?:0|[1-9]\d{0,9})$/, key) !== null;

function showTypedArray(value, state) {
  const length = typedArrayLength(value);
  const shown = min(length, MAX_ITEMS);
  const entries = [];
  for (let i = 0; i < shown; i++) push(entries, show(value[i], state, 0));
  if (length > shown) push(entries, `… ${length - shown} more items`);
  return wrap(`${typedArrayTag(value)}(${length}) [`, entries, "]", 0);
}

function showMap(value, state, depth) {
  const entries = [];
  const size = mapSize(value);
  const iterator = mapEntries(value);
  for (let i = 0; i < min(size, MAX_ITEMS); i++) {
    const step = mapIteratorNext(iterator);
    if (step.done) break;
    push(entries, `${show(step.value[0], state, depth + 1)} => ${show(step.value[1], state, depth + 1)}`);
  }
  if (size > MAX_ITEMS) push(entries, `… ${size - MAX_ITEMS} more items`);
  return wrap(`Map(${size}) {`, entries, "}", depth);
}

function showSet(value, state, depth) {
  const entries = [];
  const size = setSize(value);
  const iterator = setValues(value);
  for (let i = 0; i < min(size, MAX_ITEMS); i++) {
    const step = setIteratorNext(iterator);
    if (step.done) break;
    push(entries, show(step.value, state, depth + 1));
  }
  if (size > MAX_ITEMS) push(entries, `… ${size - MAX_ITEMS} more items`);
  return wrap(`Set(${size}) {`, entries, "}", depth);
}

function showPromise(value, state, depth) {
  const pair = native.promiseState(value);
  const status = pair[0];
  const result = pair[1];
  if (status === "pending") return "Promise { <pending> }";
  return wrap("Promise {", [`${status === "rejected" ? "<rejected> " : ""}${show(result, state, depth + 1)}`], "}", depth);
}

function properties(value, state, depth) {
  return addProperties([], value, state, depth, () => true);
}

function addProperties(entries, value, state, depth, wanted) {
  const keys = ownKeys(value);
  let hidden = 0;
  for (let i = 0; i < keys.length; i++) {
    if (entries.length >= MAX_ITEMS || state.nodes > MAX_NODES) {
      hidden = keys.length - i;
      break;
    }
    if (!wanted(keys[i])) continue;
    const descriptor = getOwnPropertyDescriptor(value, keys[i]);
    if (descriptor === undefined || !descriptor.enumerable) continue;
    push(entries, `${keyText(keys[i])}: ${propertyValue(descriptor, state, depth)}`);
  }
  if (hidden > 0) push(entries, `… ${hidden} more properties`);
  return entries;
}

function keyText(key) {
  if (typeof key === "symbol") return `[${clip(symbolToString(key), 200)}]`;
  return regExpExec(/^[A-Za-z_$][\w$]{0,200}$/, key) === null ? jsonStringify(clip(key, 200)) : key;
}

function propertyValue(descriptor, state, depth) {
  if (descriptor.get !== undefined) return descriptor.set !== undefined ? "[Getter/Setter]" : "[Getter]";
  if (descriptor.set !== undefined) return "[Setter]";
  return show(descriptor.value, state, depth + 1);
}

function dataProperty(object, key) {
  const descriptor = getOwnPropertyDescriptor(object, key);
  return descriptor === undefined ? undefined : descriptor.value;
}

/** The name of the constructor, read from data properties only. */
function className(value) {
  let prototype = getPrototypeOf(value);
  for (let i = 0; i < 20; i++) {
    if (prototype === null) return i === 0 ? "[Object: null prototype]" : "Object";
    if (native.isProxy(prototype)) return "Object";
    const constructor = dataProperty(prototype, "constructor");
    if (typeof constructor === "function" && !native.isProxy(constructor)) {
      const name = dataProperty(constructor, "name");
      if (typeof name === "string" && name !== "") return clip(name, 100);
    }
    prototype = getPrototypeOf(prototype);
  }
  return "Object";
}

function wrap(open, entries, close, depth) {
  if (entries.length === 0) return `${open}${close}`;
  const pad = " ";
  let width = open.length;
  let multiline = false;
  for (let i = 0; i < entries.length; i++) {
    width += entries[i].length + 2;
    if (width > WIDTH || regExpExec(/\n/, entries[i]) !== null) {
      multiline = true;
      break;
    }
  }
  if (!multiline) return `${open}${pad}${join(entries, ", ")}${pad}${close}`;
  let indent = "";
  for (let i = 0; i < depth; i++) indent += "  ";
  return `${open}\n${indent}  ${join(entries, `,\n${indent}  `)}\n${indent}${close}`;
}
