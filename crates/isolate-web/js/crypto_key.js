import { freeze } from "./primordials.js";
import { expose, illegalConstructor, internal, isObject } from "./webidl.js";
import { registerPlatformClass } from "./structured_clone.js";

export let isCryptoKey;
export let keyData;
export let makeKey;

export class CryptoKey {
  #data;
  #type;
  #extractable;
  #algorithm;
  #usages;
  static {
    isCryptoKey = (value) => isObject(value) && #data in value;
    keyData = (key) => key.#data;
    makeKey = ({ data, type, extractable, algorithm, usages }) => {
      const key = new CryptoKey(internal);
      key.#data = data;
      key.#type = type;
      key.#extractable = extractable;
      key.#algorithm = algorithm;
      key.#usages = freeze(usages);
      return key;
    };
  }
  constructor(key = undefined) {
    if (key !== internal) throw illegalConstructor();
  }
  get type() {
    return this.#type;
  }
  get extractable() {
    return this.#extractable;
  }
  get algorithm() {
    return this.#algorithm;
  }
  get usages() {
    return this.#usages;
  }
}
expose(CryptoKey);
registerPlatformClass(isCryptoKey, (key) =>
  makeKey({ data: keyData(key), type: key.type, extractable: key.extractable, algorithm: key.algorithm, usages: [...key.usages] }));
