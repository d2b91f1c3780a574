// The parts of the language the runtime relies on, taken before tenant code can replace them.
const { bind, call } = Function.prototype;

/** Turns a method into a function whose first argument is the receiver. */
export const uncurry = bind.bind(call);

export const {
  apply,
  ownKeys,
  getPrototypeOf,
  setPrototypeOf,
  defineProperty,
  getOwnPropertyDescriptor,
} = Reflect;
export const { freeze, create, is: sameValue, hasOwn } = Object;
export const { isArray } = Array;
export const { isView } = ArrayBuffer;
export const { floor, trunc, min, max, abs } = Math;
export const { parse: jsonParse, stringify: jsonStringify } = JSON;
export const {
  Error: ErrorCtor,
  Map: MapCtor,
  Object: ObjectCtor,
  Promise: PromiseCtor,
  RangeError: RangeErrorCtor,
  Set: SetCtor,
  String: StringCtor,
  TypeError: TypeErrorCtor,
  Uint8Array: Uint8ArrayCtor,
  WeakRef: WeakRefCtor,
} = globalThis;

const getter = (object, name) => uncurry(Object.getOwnPropertyDescriptor(object, name).get);
const TypedArray = getPrototypeOf(Uint8Array);

export const functionToString = uncurry(Function.prototype.toString);
export const dateToISOString = uncurry(Date.prototype.toISOString);
export const dateGetTime = uncurry(Date.prototype.getTime);
export const regExpExec = uncurry(RegExp.prototype.exec);
export const regExpSource = getter(RegExp.prototype, "source");
// The getter `flags` asks the object for each of these, which the object may have overridden; they ask nobody.
export const regExpFlags = [
  ["d", "hasIndices"], ["g", "global"], ["i", "ignoreCase"], ["m", "multiline"], ["s", "dotAll"], ["u", "unicode"],
  ["v", "unicodeSets"], ["y", "sticky"],
].map(([letter, name]) => ({ letter, has: getter(RegExp.prototype, name) }));
export const symbolToString = uncurry(Symbol.prototype.toString);
export const bigIntToString = uncurry(BigInt.prototype.toString);
export const numberValueOf = uncurry(Number.prototype.valueOf);
export const stringValueOf = uncurry(String.prototype.valueOf);
export const booleanValueOf = uncurry(Boolean.prototype.valueOf);

export const push = uncurry(Array.prototype.push);
export const pop = uncurry(Array.prototype.pop);
export const slice = uncurry(Array.prototype.slice);
export const splice = uncurry(Array.prototype.splice);
export const join = uncurry(Array.prototype.join);
export const sort = uncurry(Array.prototype.sort);
export const indexOf = uncurry(Array.prototype.indexOf);
export const includes = uncurry(Array.prototype.includes);

export const charCodeAt = uncurry(String.prototype.charCodeAt);
export const stringSlice = uncurry(String.prototype.slice);
export const stringIndexOf = uncurry(String.prototype.indexOf);
export const startsWith = uncurry(String.prototype.startsWith);
export const repeat = uncurry(String.prototype.repeat);
export const split = uncurry(String.prototype.split);
export const padEnd = uncurry(String.prototype.padEnd);
export const toLowerCase = uncurry(String.prototype.toLowerCase);
export const toUpperCase = uncurry(String.prototype.toUpperCase);
export const toWellFormed = uncurry(String.prototype.toWellFormed);

export const mapGet = uncurry(Map.prototype.get);
export const mapSet = uncurry(Map.prototype.set);
export const mapDelete = uncurry(Map.prototype.delete);
export const mapClear = uncurry(Map.prototype.clear);
export const mapSize = getter(Map.prototype, "size");
export const mapEntries = uncurry(Map.prototype.entries);
export const mapIteratorNext = uncurry(getPrototypeOf(new Map().entries()).next);
export const setAdd = uncurry(Set.prototype.add);
export const setDelete = uncurry(Set.prototype.delete);
export const setClear = uncurry(Set.prototype.clear);
export const setSize = getter(Set.prototype, "size");
export const setValues = uncurry(Set.prototype.values);
export const setIteratorNext = uncurry(getPrototypeOf(new Set().values()).next);

export const deref = uncurry(WeakRef.prototype.deref);

export const then = uncurry(Promise.prototype.then);
export const resolve = Promise.resolve.bind(Promise);
export const reject = Promise.reject.bind(Promise);

export const typedArrayTag = getter(TypedArray.prototype, Symbol.toStringTag);
export const typedArrayBuffer = getter(TypedArray.prototype, "buffer");
export const typedArrayOffset = getter(TypedArray.prototype, "byteOffset");
export const typedArrayByteLength = getter(TypedArray.prototype, "byteLength");
export const typedArrayLength = getter(TypedArray.prototype, "length");
export const typedArraySet = uncurry(TypedArray.prototype.set);
export const typedArraySlice = uncurry(TypedArray.prototype.slice);
export const typedArraySubarray = uncurry(TypedArray.prototype.subarray);
export const dataViewBuffer = getter(DataView.prototype, "buffer");
export const dataViewOffset = getter(DataView.prototype, "byteOffset");
export const dataViewByteLength = getter(DataView.prototype, "byteLength");
export const bufferByteLength = getter(ArrayBuffer.prototype, "byteLength");
export const bufferDetached = getter(ArrayBuffer.prototype, "detached");
export const bufferResizable = getter(ArrayBuffer.prototype, "resizable");
export const sharedByteLength = getter(SharedArrayBuffer.prototype, "byteLength");
export const sharedGrowable = getter(SharedArrayBuffer.prototype, "growable");

export const iteratorPrototype = getPrototypeOf(getPrototypeOf([][Symbol.iterator]()));
export const asyncIteratorPrototype = getPrototypeOf(getPrototypeOf(async function* () {}.prototype));

/** The global object, whatever becomes of the binding `globalThis`. */
export const root = globalThis;
