// The parts of the language the runtime relies on, taken before tenant code can replace them.
const { bind, call } = Function.prototype;

/** Turns a method into a function whose first argument is the receiver. */
export const uncurry = bind.bind(call);

export const {
  apply,
  construct,
  ownKeys,
  getPrototypeOf,
  setPrototypeOf,
  defineProperty,
  deleteProperty,
  getOwnPropertyDescriptor,
} = Reflect;
export const { freeze, create, is: sameValue, hasOwn } = Object;
export const { isArray } = Array;
export const { isView } = ArrayBuffer;
export const { floor, trunc, min, max, abs } = Math;
export const { isInteger } = Number;
export const { parse: jsonParse, stringify: jsonStringify } = JSON;
export const fromCharCode = String.fromCharCode;
export const {
  Array: ArrayCtor,
  ArrayBuffer: ArrayBufferCtor,
  BigInt: BigIntCtor,
  Error: ErrorCtor,
  Map: MapCtor,
  Number: NumberCtor,
  Object: ObjectCtor,
  Promise: PromiseCtor,
  RangeError: RangeErrorCtor,
  String: StringCtor,
  SyntaxError: SyntaxErrorCtor,
  TypeError: TypeErrorCtor,
  Uint8Array: Uint8ArrayCtor,
  WeakMap: WeakMapCtor,
} = globalThis;

const getter = (object, name) => uncurry(Object.getOwnPropertyDescriptor(object, name).get);
const TypedArray = getPrototypeOf(Uint8Array);

export const hasOwnProperty = uncurry(Object.prototype.hasOwnProperty);
export const propertyIsEnumerable = uncurry(Object.prototype.propertyIsEnumerable);
export const objectToString = uncurry(Object.prototype.toString);
export const functionToString = uncurry(Function.prototype.toString);
export const errorToString = uncurry(Error.prototype.toString);
export const dateToISOString = uncurry(Date.prototype.toISOString);
export const dateGetTime = uncurry(Date.prototype.getTime);
export const regExpExec = uncurry(RegExp.prototype.exec);
export const regExpSource = getter(RegExp.prototype, "source");
export const regExpFlags = getter(RegExp.prototype, "flags");
export const symbolToString = uncurry(Symbol.prototype.toString);
export const symbolDescription = getter(Symbol.prototype, "description");
export const bigIntToString = uncurry(BigInt.prototype.toString);
export const numberValueOf = uncurry(Number.prototype.valueOf);
export const stringValueOf = uncurry(String.prototype.valueOf);
export const booleanValueOf = uncurry(Boolean.prototype.valueOf);

export const push = uncurry(Array.prototype.push);
export const pop = uncurry(Array.prototype.pop);
export const shift = uncurry(Array.prototype.shift);
export const slice = uncurry(Array.prototype.slice);
export const splice = uncurry(Array.prototype.splice);
export const join = uncurry(Array.prototype.join);
export const sort = uncurry(Array.prototype.sort);
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
export const trim = uncurry(String.prototype.trim);

export const mapGet = uncurry(Map.prototype.get);
export const mapSet = uncurry(Map.prototype.set);
export const mapHas = uncurry(Map.prototype.has);
export const mapDelete = uncurry(Map.prototype.delete);
export const mapClear = uncurry(Map.prototype.clear);
export const mapSize = getter(Map.prototype, "size");
export const mapEntries = uncurry(Map.prototype.entries);
export const mapIteratorNext = uncurry(getPrototypeOf(new Map().entries()).next);
export const setSize = getter(Set.prototype, "size");
export const setValues = uncurry(Set.prototype.values);
export const setIteratorNext = uncurry(getPrototypeOf(new Set().values()).next);
export const weakMapGet = uncurry(WeakMap.prototype.get);
export const weakMapSet = uncurry(WeakMap.prototype.set);

export const then = uncurry(Promise.prototype.then);
export const resolve = Promise.resolve.bind(Promise);
export const reject = Promise.reject.bind(Promise);
export const withResolvers = Promise.withResolvers.bind(Promise);

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
export const bufferSlice = uncurry(ArrayBuffer.prototype.slice);
export const bufferDetached = getter(ArrayBuffer.prototype, "detached");
export const bufferResizable = getter(ArrayBuffer.prototype, "resizable");
export const sharedByteLength = getter(SharedArrayBuffer.prototype, "byteLength");
export const sharedGrowable = getter(SharedArrayBuffer.prototype, "growable");

export const iteratorPrototype = getPrototypeOf(getPrototypeOf([][Symbol.iterator]()));
export const asyncIteratorPrototype = getPrototypeOf(getPrototypeOf(async function* () {}.prototype));

/** The global object, whatever becomes of the binding `globalThis`. */
export const root = globalThis;
