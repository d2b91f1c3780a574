import { native } from "./host.js";
import { ObjectCtor, getPrototypeOf, includes, push } from "./primordials.js";
import { dictionary, isArrayBuffer, isObject, requireArguments, sequence } from "./webidl.js";
import { DOMException, cloneDOMException, isDOMException } from "./dom_exception.js";

const platform = [];
const transferable = [];
const objectPrototype = ObjectCtor.prototype;

/** Tells of a class of the platform. Without `clone` its objects are refused. */
export function registerPlatformClass(test, clone = undefined) {
  push(platform, { test, clone });
}

/** Tells of a class whose objects can be transferred: `transfer(object)` gives the new one. */
export function registerTransferable(test, transfer) {
  push(transferable, { test, transfer });
}

registerPlatformClass(isDOMException, cloneDOMException);

const dataCloneError = (message) => new DOMException(message, "DataCloneError");

function classOf(object) {
  for (let i = 0; i < platform.length; i++) if (platform[i].test(object)) return platform[i];
  return undefined;
}

function cloneWith(moved) {
  const isPlatformObject = (object) => {
    const prototype = getPrototypeOf(object);
    if (prototype === objectPrototype || prototype === null) return false;
    return classOf(object) !== undefined || isTransferable(object);
  };
  const clonePlatformObject = (object) => {
    for (let i = 0; i < moved.length; i++) if (moved[i].from === object) return moved[i].to();
    const found = classOf(object);
    if (found?.clone === undefined) throw dataCloneError("an object of this class cannot be cloned");
    return found.clone(object);
  };
  return { isPlatformObject, clonePlatformObject };
}

const isTransferable = (object) => transferable.some((entry) => entry.test(object));

/** The structured clone of a value; `transfer` is a list of objects to move instead of copying. */
export function cloneAndTransfer(value, transfer) {
  const buffers = [];
  const moved = [];
  for (let i = 0; i < transfer.length; i++) {
    const each = transfer[i];
    if (includes(buffers, each) || moved.some((entry) => entry.from === each)) {
      throw dataCloneError("an object is in the transfer list twice");
    }
    if (isArrayBuffer(each)) {
      push(buffers, each);
      continue;
    }
    const kind = transferable.find((entry) => entry.test(each));
    if (kind === undefined) throw dataCloneError("an object in the transfer list cannot be transferred");
    let result;
    push(moved, { from: each, to: () => (result ??= kind.transfer(each)) });
  }
  const { isPlatformObject, clonePlatformObject } = cloneWith(moved);
  const result = native.structuredClone(value, buffers, isPlatformObject, clonePlatformObject, dataCloneError);
  // What is in the list but not in the value moves too.
  const received = [];
  for (let i = 0; i < moved.length; i++) push(received, moved[i].to());
  return { result, received };
}

/** The structured clone of a value that comes alone. */
export const clone = (value) => cloneAndTransfer(value, []).result;

export const { structuredClone } = {
  structuredClone(value, options = undefined) {
    requireArguments(arguments.length, 1, "structuredClone");
    const { transfer } = dictionary(options, "the options");
    const list = transfer === undefined ? [] : sequence(transfer, toObject, "the transfer list");
    return cloneAndTransfer(value, list).result;
  },
};

function toObject(value) {
  if (!isObject(value)) throw new TypeError("an item of the transfer list is not an object");
  return value;
}
