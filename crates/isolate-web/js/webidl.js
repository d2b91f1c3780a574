// The rules by which web interfaces take arguments and show themselves (Web IDL, JavaScript binding).
import { native } from "./host.js";
import {
  TypeErrorCtor, abs, bufferByteLength, bufferDetached, bufferResizable, create, dataViewBuffer, dataViewByteLength, dataViewOffset,
  defineProperty, floor, getOwnPropertyDescriptor, isView, iteratorPrototype, max, min, ownKeys, push,
  setPrototypeOf, sharedByteLength, sharedGrowable, toWellFormed, trunc, typedArrayBuffer,
  typedArrayByteLength, typedArrayOffset, typedArrayTag, Uint8ArrayCtor, uncurry,
} from "./primordials.js";

/** Throws unless at least `need` arguments were given. */
export function requireArguments(given, need, what) {
  if (given < need) {
    throw new TypeErrorCtor(`${what}: ${need} argument${need === 1 ? "" : "s"} required, but only ${given} present`);
  }
}

export const domString = (value) => `${value}`;
export const usvString = (value) => toWellFormed(`${value}`);

export function byteString(value) {
  const text = `${value}`;
  if (!native.isLatin1(text)) throw new TypeErrorCtor("the string has a character above U+00FF");
  return text;
}

/** An integer type of `bits` bits, with the conversion that the attributes ask for. */
export function integer(value, bits, { signed = false, enforceRange = false, clamp = false } = {}) {
  let x = +value;
  const high = bits === 64 ? 2 ** 53 - 1 : signed ? 2 ** (bits - 1) - 1 : 2 ** bits - 1;
  const low = bits === 64 ? (signed ? -(2 ** 53) + 1 : 0) : signed ? -(2 ** (bits - 1)) : 0;
  if (enforceRange) {
    if (x !== x || x === Infinity || x === -Infinity) throw new TypeErrorCtor("the value is not a finite number");
    x = trunc(x);
    if (x < low || x > high) throw new TypeErrorCtor(`the value is outside ${low} to ${high}`);
    return x + 0;
  }
  if (clamp) {
    if (x !== x) return 0;
    x = min(max(x, low), high);
    const below = floor(x);
    const rest = x - below;
    return (rest < 0.5 || (rest === 0.5 && below % 2 === 0) ? below : below + 1) + 0;
  }
  if (x !== x || x === 0 || x === Infinity || x === -Infinity) return 0;
  x = trunc(x);
  const modulus = 2 ** bits;
  let wrapped = x - floor(x / modulus) * modulus;
  if (signed && wrapped >= 2 ** (bits - 1)) wrapped -= modulus;
  return abs(wrapped) === 0 ? 0 : wrapped;
}

export const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";

/** A dictionary argument: `undefined` and `null` mean an empty one. */
export function dictionary(value, what) {
  if (value === undefined || value === null) return create(null);
  if (!isObject(value)) throw new TypeErrorCtor(`${what} is not an object`);
  return value;
}

export function enumValue(value, allowed, what) {
  const text = `${value}`;
  for (let i = 0; i < allowed.length; i++) if (allowed[i] === text) return text;
  throw new TypeErrorCtor(`${what}: "${text}" is not one of its values`);
}

/** sequence<T>: anything iterable. */
export function sequence(value, convert, what) {
  if (!isObject(value)) throw new TypeErrorCtor(`${what} is not a sequence`);
  const method = value[Symbol.iterator];
  if (method === undefined || method === null) throw new TypeErrorCtor(`${what} is not iterable`);
  return sequenceFrom(value, method, convert, what);
}

const callFunction = uncurry(function () {}.call);

export function sequenceFrom(value, method, convert, what) {
  if (typeof method !== "function") throw new TypeErrorCtor(`${what} is not iterable`);
  const iterator = callFunction(method, value);
  if (!isObject(iterator)) throw new TypeErrorCtor(`${what}: its iterator is not an object`);
  const next = iterator.next;
  const list = [];
  for (;;) {
    const step = callFunction(next, iterator);
    if (!isObject(step)) throw new TypeErrorCtor(`${what}: its iterator gave no object`);
    if (step.done) return list;
    push(list, convert(step.value));
  }
}

/** record<K, V>, as a list of pairs. */
export function record(value, convertKey, convertValue) {
  const pairs = [];
  const keys = ownKeys(value);
  const at = new Map();
  for (let i = 0; i < keys.length; i++) {
    const descriptor = getOwnPropertyDescriptor(value, keys[i]);
    if (descriptor === undefined || !descriptor.enumerable) continue;
    const key = convertKey(keys[i]);
    const converted = convertValue(value[keys[i]]);
    if (at.has(key)) pairs[at.get(key)][1] = converted;
    else {
      at.set(key, pairs.length);
      push(pairs, [key, converted]);
    }
  }
  return pairs;
}

export function isArrayBuffer(value) {
  try {
    bufferByteLength(value);
    return true;
  } catch {
    return false;
  }
}

function isSharedArrayBuffer(value) {
  try {
    sharedByteLength(value);
    return true;
  } catch {
    return false;
  }
}

export const isBufferSource = (value) => isObject(value) && (isView(value) || isArrayBuffer(value));

const viewBuffer = (view) => (typedArrayTag(view) === undefined ? dataViewBuffer(view) : typedArrayBuffer(view));

/** The bytes of an ArrayBuffer or a view, without a copy. Shared and resizable memory only where the caller allows. */
export function bytesOf(value, what, { shared = false, resizable = false } = {}) {
  let buffer = value;
  if (isView(value)) {
    buffer = viewBuffer(value);
  }
  const isShared = isSharedArrayBuffer(buffer);
  if (isShared ? !shared : !isArrayBuffer(buffer)) throw new TypeErrorCtor(`${what} is not an ArrayBuffer or a view on one`);
  if (!resizable && (isShared ? sharedGrowable(buffer) : bufferResizable(buffer))) {
    throw new TypeErrorCtor(`${what} is resizable`);
  }
  if (!isShared && bufferDetached(buffer)) return new Uint8ArrayCtor(0);
  if (buffer === value) return new Uint8ArrayCtor(buffer);
  return typedArrayTag(value) === undefined
    ? new Uint8ArrayCtor(buffer, dataViewOffset(value), dataViewByteLength(value))
    : new Uint8ArrayCtor(buffer, typedArrayOffset(value), typedArrayByteLength(value));
}

/** Makes a class look like a Web IDL interface: enumerable members, a tag, constants on both objects. */
export function expose(Class, { name = Class.name, constants = {} } = {}) {
  for (const holder of [Class, Class.prototype]) {
    for (const key of ownKeys(holder)) {
      const builtIn = holder === Class ? key === "prototype" || key === "length" || key === "name" : key === "constructor";
      if (builtIn || typeof key === "symbol") continue;
      defineProperty(holder, key, { enumerable: true });
    }
    for (const key of ownKeys(constants)) {
      defineProperty(holder, key, { value: constants[key], enumerable: true, writable: false, configurable: false });
    }
  }
  defineProperty(Class.prototype, Symbol.toStringTag, { value: name, configurable: true });
  if (Class.name !== name) defineProperty(Class, "name", { value: name });
}

/** Gives a class `entries`, `keys`, `values`, `forEach` and `Symbol.iterator` over the pairs that `list(this)` returns. */
export function pairIterable(Class, list) {
  const name = Class.name;
  let make;
  class PairIterator {
    #target;
    #kind;
    #index = 0;
    static {
      make = (target, kind) => {
        const iterator = new PairIterator();
        iterator.#target = target;
        iterator.#kind = kind;
        return iterator;
      };
    }
    next() {
      const pairs = list(this.#target);
      const index = this.#index;
      if (index >= pairs.length) return { value: undefined, done: true };
      this.#index = index + 1;
      const [key, value] = pairs[index];
      return { value: this.#kind === "key" ? key : this.#kind === "value" ? value : [key, value], done: false };
    }
  }
  setPrototypeOf(PairIterator.prototype, iteratorPrototype);
  delete PairIterator.prototype.constructor;
  defineProperty(PairIterator.prototype, "next", { enumerable: true });
  defineProperty(PairIterator.prototype, Symbol.toStringTag, { value: `${name} Iterator`, configurable: true });
  const methods = {
    entries() {
      list(this);
      return make(this, "both");
    },
    keys() {
      list(this);
      return make(this, "key");
    },
    values() {
      list(this);
      return make(this, "value");
    },
    forEach(callback, thisArg = undefined) {
      list(this);
      requireArguments(arguments.length, 1, `${name}.forEach`);
      if (typeof callback !== "function") throw new TypeErrorCtor(`${name}.forEach: the callback is not a function`);
      for (let i = 0; i < list(this).length; i++) {
        const [key, value] = list(this)[i];
        callFunction(callback, thisArg, value, key, this);
      }
    },
  };
  for (const key of ownKeys(methods)) {
    defineProperty(Class.prototype, key, { value: methods[key], enumerable: true, writable: true, configurable: true });
  }
  defineProperty(Class.prototype, Symbol.iterator, { value: methods.entries, writable: true, configurable: true });
}

/** The secret that tells a constructor that the runtime itself is calling. */
export const internal = Symbol("internal");

export function illegalConstructor() {
  return new TypeErrorCtor("Illegal constructor");
}
