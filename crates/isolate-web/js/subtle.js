// SubtleCrypto: digests and HMAC. Other algorithms are refused with NotSupportedError.
import { native } from "./host.js";
import {
  TypeErrorCtor, Uint8ArrayCtor, reject, resolve, toUpperCase, typedArrayBuffer, typedArraySlice,
} from "./primordials.js";
import {
  bytesOf, domString, enumValue, expose, illegalConstructor, integer, internal, isBufferSource, isObject, requireArguments,
  sequence,
} from "./webidl.js";
import { isCryptoKey, keyData, makeKey } from "./crypto_key.js";
import { DOMException } from "./dom_exception.js";

const digests = { __proto__: null, "SHA-1": 64, "SHA-256": 64, "SHA-384": 128, "SHA-512": 128 };
const usageNames = ["encrypt", "decrypt", "sign", "verify", "deriveKey", "deriveBits", "wrapKey", "unwrapKey"];
const formats = ["raw", "spki", "pkcs8", "jwk"];

const fail = (name, message) => new DOMException(message, name);
const notSupported = (what) => fail("NotSupportedError", `${what} is not supported`);

/** { name, …members } of an AlgorithmIdentifier. */
function algorithmOf(value) {
  if (!isObject(value)) return { name: toUpperCase(domString(value)), members: {} };
  const name = value.name;
  if (name === undefined) throw new TypeErrorCtor("the algorithm has no name");
  return { name: toUpperCase(domString(name)), members: value };
}

function digestName(value) {
  const { name } = algorithmOf(value);
  if (digests[name] === undefined) throw notSupported(name);
  return name;
}

function hmacOnly(value) {
  const { name, members } = algorithmOf(value);
  if (name !== "HMAC") throw notSupported(name);
  return members;
}

const copyOf = (value, what) => {
  if (!isBufferSource(value)) throw new TypeErrorCtor(`${what} is not an ArrayBuffer or a view`);
  return typedArraySlice(bytesOf(value, what));
};

function usagesOf(value) {
  const given = sequence(value, (each) => enumValue(each, usageNames, "a usage"), "the usages");
  return usageNames.filter((name) => given.includes(name));
}

function checkHmacUsages(usages) {
  if (usages.some((usage) => usage !== "sign" && usage !== "verify")) throw fail("SyntaxError", "an HMAC key can only sign and verify");
  if (usages.length === 0) throw fail("SyntaxError", "a secret key needs at least one usage");
}

function lengthOf(members, bytes) {
  const all = bytes.length * 8;
  if (all === 0) throw fail("DataError", "the key is empty");
  const wanted = members.length === undefined ? all : integer(members.length, 32, { enforceRange: true });
  if (wanted > all || wanted <= all - 8) throw fail("DataError", "the length does not fit the key");
  return wanted;
}

function hmacKey(bytes, hash, length, extractable, usages) {
  return makeKey({ data: bytes, type: "secret", extractable, algorithm: { name: "HMAC", hash: { name: hash }, length }, usages });
}

function keyFromJwk(jwk, hash, extractable, usages) {
  if (jwk.kty !== "oct" || typeof jwk.k !== "string") throw fail("DataError", "the key is not a symmetric one");
  if (jwk.alg !== undefined && jwk.alg !== `HS${hash.slice(4)}`) throw fail("DataError", "the key's alg is another");
  if (jwk.use !== undefined && jwk.use !== "sig") throw fail("DataError", "the key's use is another");
  if (jwk.ext === false && extractable) throw fail("DataError", "the key is not extractable");
  if (jwk.key_ops !== undefined && usages.some((usage) => !jwk.key_ops.includes(usage))) {
    throw fail("DataError", "the key's key_ops are others");
  }
  const bytes = native.base64UrlDecode(jwk.k);
  if (bytes === undefined) throw fail("DataError", "the key is not base64url");
  return bytes;
}

function usable(key, usage) {
  if (!isCryptoKey(key)) throw new TypeErrorCtor("not a CryptoKey");
  if (key.algorithm.name !== "HMAC") throw fail("InvalidAccessError", "the key is for another algorithm");
  if (!key.usages.includes(usage)) throw fail("InvalidAccessError", `the key cannot ${usage}`);
}

const toBuffer = (bytes) => typedArrayBuffer(bytes);

/** Runs an operation: what it throws rejects the promise. Arguments are converted before anything waits. */
function operation(work) {
  try {
    return resolve(work());
  } catch (error) {
    return reject(error);
  }
}

export class SubtleCrypto {
  #brand = true;
  constructor(key = undefined) {
    if (key !== internal) throw illegalConstructor();
  }
  #run(given, need, name, work) {
    this.#brand;
    requireArguments(given, need, `SubtleCrypto.${name}`);
    return work();
  }
  decrypt(algorithm, key, data) {
    return operation(() => this.#run(arguments.length, 3, "decrypt", () => refuse(algorithm)));
  }
  deriveBits(algorithm, baseKey, length = null) {
    return operation(() => this.#run(arguments.length, 2, "deriveBits", () => refuse(algorithm)));
  }
  deriveKey(algorithm, baseKey, derivedKeyType, extractable, keyUsages) {
    return operation(() => this.#run(arguments.length, 5, "deriveKey", () => refuse(algorithm)));
  }
  digest(algorithm, data) {
    return operation(() => this.#run(arguments.length, 2, "digest", () => {
      const name = digestName(algorithm);
      return toBuffer(native.digest(name, copyOf(data, "the data")));
    }));
  }
  encrypt(algorithm, key, data) {
    return operation(() => this.#run(arguments.length, 3, "encrypt", () => refuse(algorithm)));
  }
  exportKey(format, key) {
    return operation(() => this.#run(arguments.length, 2, "exportKey", () => {
      const kind = enumValue(format, formats, "the format");
      if (!isCryptoKey(key)) throw new TypeErrorCtor("not a CryptoKey");
      if (kind !== "raw" && kind !== "jwk") throw notSupported(kind);
      if (!key.extractable) throw fail("InvalidAccessError", "the key is not extractable");
      if (kind === "raw") return toBuffer(typedArraySlice(keyData(key)));
      const alg = `HS${key.algorithm.hash.name.slice(4)}`;
      return { key_ops: [...key.usages], ext: true, kty: "oct", k: native.base64UrlEncode(keyData(key)), alg };
    }));
  }
  generateKey(algorithm, extractable, keyUsages) {
    return operation(() => this.#run(arguments.length, 3, "generateKey", () => {
      const members = hmacOnly(algorithm);
      const usages = usagesOf(keyUsages);
      const hash = digestName(members.hash);
      checkHmacUsages(usages);
      const length = members.length === undefined ? digests[hash] * 8 : integer(members.length, 32, { enforceRange: true });
      if (length === 0 || length > 65536) throw fail("OperationError", "the length cannot be used");
      const bytes = new Uint8ArrayCtor(Math.ceil(length / 8));
      native.fillRandom(bytes);
      return hmacKey(bytes, hash, length, !!extractable, usages);
    }));
  }
  importKey(format, key, algorithm, extractable, keyUsages) {
    return operation(() => this.#run(arguments.length, 5, "importKey", () => {
      const kind = enumValue(format, formats, "the format");
      const raw = kind === "jwk" ? jwkOf(key) : copyOf(key, "the key");
      const members = hmacOnly(algorithm);
      const usages = usagesOf(keyUsages);
      const hash = digestName(members.hash);
      checkHmacUsages(usages);
      if (kind !== "raw" && kind !== "jwk") throw notSupported(kind);
      const bytes = kind === "raw" ? raw : keyFromJwk(raw, hash, !!extractable, usages);
      return hmacKey(bytes, hash, lengthOf(members, bytes), !!extractable, usages);
    }));
  }
  sign(algorithm, key, data) {
    return operation(() => this.#run(arguments.length, 3, "sign", () => {
      const bytes = copyOf(data, "the data");
      hmacOnly(algorithm);
      usable(key, "sign");
      return toBuffer(native.hmacSign(key.algorithm.hash.name, keyData(key), bytes));
    }));
  }
  unwrapKey(format, wrappedKey, unwrappingKey, unwrapAlgorithm, unwrappedKeyAlgorithm, extractable, keyUsages) {
    return operation(() => this.#run(arguments.length, 7, "unwrapKey", () => refuse(unwrapAlgorithm)));
  }
  verify(algorithm, key, signature, data) {
    return operation(() => this.#run(arguments.length, 4, "verify", () => {
      const tag = copyOf(signature, "the signature");
      const bytes = copyOf(data, "the data");
      hmacOnly(algorithm);
      usable(key, "verify");
      return native.hmacVerify(key.algorithm.hash.name, keyData(key), bytes, tag);
    }));
  }
  wrapKey(format, key, wrappingKey, wrapAlgorithm) {
    return operation(() => this.#run(arguments.length, 4, "wrapKey", () => refuse(wrapAlgorithm)));
  }
}
expose(SubtleCrypto);

function refuse(algorithm) {
  throw notSupported(algorithmOf(algorithm).name);
}

function jwkOf(value) {
  if (!isObject(value) || isBufferSource(value)) throw new TypeErrorCtor("the key is not a JSON Web Key");
  return value;
}

export const subtle = new SubtleCrypto(internal);
