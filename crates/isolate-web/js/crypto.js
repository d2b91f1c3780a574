import { native } from "./host.js";
import { TypeErrorCtor, isView, typedArrayByteLength, typedArrayTag } from "./primordials.js";
import { expose, illegalConstructor, internal, isObject, requireArguments } from "./webidl.js";
import { DOMException } from "./dom_exception.js";

const MAX_BYTES = 65536;
const integerArrays = {
  __proto__: null,
  Int8Array: true, Uint8Array: true, Uint8ClampedArray: true, Int16Array: true, Uint16Array: true, Int32Array: true,
  Uint32Array: true, BigInt64Array: true, BigUint64Array: true,
};

export class Crypto {
  #subtle;
  constructor(key = undefined, subtle = undefined) {
    if (key !== internal) throw illegalConstructor();
    this.#subtle = subtle;
  }
  get subtle() {
    return this.#subtle;
  }
  getRandomValues(array) {
    this.#subtle;
    requireArguments(arguments.length, 1, "Crypto.getRandomValues");
    if (!isObject(array) || !isView(array)) throw new TypeErrorCtor("the argument is not an ArrayBufferView");
    if (integerArrays[typedArrayTag(array)] !== true) {
      throw new DOMException("the array is not of an integer type", "TypeMismatchError");
    }
    if (typedArrayByteLength(array) > MAX_BYTES) {
      throw new DOMException(`more than ${MAX_BYTES} bytes at once`, "QuotaExceededError");
    }
    native.fillRandom(array);
    return array;
  }
  randomUUID() {
    this.#subtle;
    return native.randomUUID();
  }
}
expose(Crypto);
