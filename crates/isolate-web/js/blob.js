import { native } from "./host.js";
import {
  TypeErrorCtor, Uint8ArrayCtor, defineProperty, isView, max, min, regExpExec, reject, resolve, toLowerCase, typedArraySet,
  typedArraySlice, typedArraySubarray,
} from "./primordials.js";
import {
  bytesOf, dictionary, domString, enumValue, expose, integer, internal, isArrayBuffer, isObject, requireArguments,
  sequence, usvString,
} from "./webidl.js";
import { DOMException } from "./dom_exception.js";
import { utf8Decode, utf8Encode } from "./encoding.js";
import { registerInspector } from "./inspect.js";
import { streamOfBytes } from "./streams.js";
import { registerPlatformClass } from "./structured_clone.js";
import { blobUrls } from "./url.js";

const empty = new Uint8ArrayCtor(0);
export let blobBytes;
export let isBlob;
let setBlob;

/** One array of all the bytes. */
export function concatenate(chunks) {
  if (chunks.length === 1) return chunks[0];
  let length = 0;
  for (let i = 0; i < chunks.length; i++) length += chunks[i].length;
  const all = new Uint8ArrayCtor(length);
  let at = 0;
  for (let i = 0; i < chunks.length; i++) {
    typedArraySet(all, chunks[i], at);
    at += chunks[i].length;
  }
  return all;
}

const printable = /^[\x20-\x7e]*$/;
const cleanType = (type) => (regExpExec(printable, type) === null ? "" : toLowerCase(type));

export class Blob {
  /** Never changed and never shown, so slices and clones share it. */
  #bytes = empty;
  #type = "";
  static {
    blobBytes = (blob) => blob.#bytes;
    isBlob = (value) => isObject(value) && #bytes in value;
    setBlob = (blob, bytes, type) => {
      blob.#bytes = bytes;
      blob.#type = type;
      return blob;
    };
  }
  constructor(blobParts = undefined, options = undefined) {
    if (blobParts === internal) return;
    const parts = blobParts === undefined ? [] : sequence(blobParts, toPart, "the blob's parts");
    const { endings = "transparent", type = "" } = blobOptions(options);
    this.#bytes = concatenate(parts.map((part) => partBytes(part, endings)));
    this.#type = cleanType(type);
  }
  get size() {
    return this.#bytes.length;
  }
  get type() {
    return this.#type;
  }
  slice(start = 0, end = this.#bytes.length, contentType = "") {
    const size = this.#bytes.length;
    const at = (value) => {
      const position = integer(value, 64, { signed: true, clamp: true });
      return position < 0 ? max(size + position, 0) : min(position, size);
    };
    const from = at(start);
    const to = at(end);
    const type = cleanType(domString(contentType));
    return setBlob(new Blob(internal), typedArraySubarray(this.#bytes, from, max(from, to)), type);
  }
  stream() {
    return streamOfBytes(this.#bytes);
  }
  text() {
    return promised(() => utf8Decode(this.#bytes));
  }
  arrayBuffer() {
    return promised(() => typedArraySlice(this.#bytes).buffer);
  }
  bytes() {
    return promised(() => typedArraySlice(this.#bytes));
  }
}
expose(Blob);
defineProperty(Blob.prototype.slice, "length", { value: 0, configurable: true });

/** A promise for the result; what throws rejects it. */
function promised(work) {
  try {
    return resolve(work());
  } catch (error) {
    return reject(error);
  }
}

function blobOptions(options) {
  const init = dictionary(options, "the blob's options");
  let endings;
  let type;
  const givenEndings = init.endings;
  if (givenEndings !== undefined) endings = enumValue(givenEndings, ["transparent", "native"], "endings");
  const givenType = init.type;
  if (givenType !== undefined) type = domString(givenType);
  return { endings, type };
}

function toPart(value) {
  if (isBlob(value)) return value;
  if (isObject(value) && (isView(value) || isArrayBuffer(value))) return bytesOf(value, "a part", { shared: false });
  return usvString(value);
}

function partBytes(part, endings) {
  if (typeof part === "string") return utf8Encode(endings === "native" ? part.replace(/\r\n?/g, "\n") : part);
  return isBlob(part) ? blobBytes(part) : typedArraySlice(part);
}

/** A blob of bytes that nobody else can change. */
export const makeBlob = (bytes, type) => setBlob(new Blob(internal), bytes, type);

export let isFile;
let setFile;

export class File extends Blob {
  #name = "";
  #lastModified = 0;
  static {
    isFile = (value) => isObject(value) && #name in value;
    setFile = (file, name, lastModified) => {
      file.#name = name;
      file.#lastModified = lastModified;
      return file;
    };
  }
  constructor(fileBits, fileName, options = undefined) {
    if (fileBits === internal) {
      super(internal);
      return;
    }
    requireArguments(arguments.length, 2, "File");
    if (!isObject(fileBits)) throw new TypeErrorCtor("the file's parts are not a sequence");
    super(fileBits, options);
    this.#name = usvString(fileName);
    const { lastModified } = dictionary(options, "the file's options");
    this.#lastModified = lastModified === undefined ? Date.now() : integer(lastModified, 64, { signed: true });
  }
  get name() {
    return this.#name;
  }
  get lastModified() {
    return this.#lastModified;
  }
}
expose(File);

export function makeFile(bytes, type, name, lastModified = Date.now()) {
  return setFile(setBlob(new File(internal), bytes, type), name, lastModified);
}

registerPlatformClass(isFile, (file) => makeFile(blobBytes(file), file.type, file.name, file.lastModified));
registerPlatformClass(isBlob, (blob) => makeBlob(blobBytes(blob), blob.type));
registerInspector(isFile, (file) => ({ label: "File", parts: { name: file.name, size: file.size, type: file.type } }));
registerInspector(isBlob, (blob) => ({ label: "Blob", parts: { size: blob.size, type: blob.type } }));

// blob: URLs live as long as the realm or until they are revoked.
const objects = new Map();
const MAX_OBJECT_URLS = 10_000;
blobUrls.create = (object) => {
  if (!isBlob(object)) throw new TypeErrorCtor("the argument is not a Blob");
  if (objects.size >= MAX_OBJECT_URLS) throw new DOMException("too many object URLs", "QuotaExceededError");
  const url = `blob:null/${native.randomUUID()}`;
  objects.set(url, object);
  return url;
};
blobUrls.revoke = (url) => objects.delete(url);
export const blobOfUrl = (url) => objects.get(url.split("#")[0]);
