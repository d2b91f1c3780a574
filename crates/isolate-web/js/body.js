// Bodies of requests and responses: extraction from what the caller gave, and the methods that read them.
import {
  PromiseCtor, TypeErrorCtor, Uint8ArrayCtor, defineProperty, getOwnPropertyDescriptor, jsonParse, ownKeys, push, reject,
  typedArrayBuffer, typedArraySlice, typedArrayTag, isView,
} from "./primordials.js";
import { bytesOf, isArrayBuffer, isObject, usvString } from "./webidl.js";
import { blobBytes, concatenate, isBlob, makeBlob } from "./blob.js";
import { utf8Decode, utf8DecodeAll, utf8Encode } from "./encoding.js";
import { FormData, formEntries, isFormData } from "./form_data.js";
import { essence, extractMime, serializeMime } from "./mime.js";
import { decodeMultipart, encodeMultipart } from "./multipart.js";
import {
  isDisturbed, isLocked, isReadableStream, makeTransform, pipeStreamThrough, readEach, spentStream,
  streamOfBytes, teeStream,
} from "./streams.js";
import { cloningTransform } from "./transfer.js";
import { parseForm, paramsHooks, serializeForm } from "./url_search_params.js";

/**
 * A body. `bytes` is there when all is known already; the stream is then made only if somebody asks for it.
 * `used` says that the bytes were read without a stream.
 */
const makeBody = (bytes, stream) => ({ bytes, stream, used: false });

export const bodyOfBytes = (bytes) => makeBody(bytes, null);
export const bodyOfStream = (stream) => makeBody(null, stream);

/** { body, type }: a body of what a caller passed as one, and the Content-Type that goes with it or null. */
export function extractBody(object) {
  if (isReadableStream(object)) {
    if (isDisturbed(object) || isLocked(object)) throw new TypeErrorCtor("the stream is locked or was read from");
    return { body: makeBody(null, object), type: null };
  }
  if (isBlob(object)) return { body: makeBody(blobBytes(object), null), type: object.type === "" ? null : object.type };
  if (isObject(object) && (isView(object) || isArrayBuffer(object))) {
    return { body: makeBody(typedArraySlice(bytesOf(object, "the body")), null), type: null };
  }
  if (isFormData(object)) {
    const { bytes, boundary } = encodeMultipart(formEntries(object));
    return { body: makeBody(bytes, null), type: `multipart/form-data; boundary=${boundary}` };
  }
  if (paramsHooks.is(object)) {
    const bytes = utf8Encode(serializeForm(paramsHooks.list(object)));
    return { body: makeBody(bytes, null), type: "application/x-www-form-urlencoded;charset=UTF-8" };
  }
  return { body: makeBody(utf8Encode(usvString(object)), null), type: "text/plain;charset=UTF-8" };
}

const isUsed = (body) => body !== null && (body.stream === null ? body.used : isDisturbed(body.stream));
export const isUnusable = (body) => body !== null && (isUsed(body) || (body.stream !== null && isLocked(body.stream)));

function streamOf(body) {
  body.stream ??= body.used ? spentStream() : streamOfBytes(body.bytes);
  return body.stream;
}

/** A second body with the same content. The first one keeps working. */
export function cloneBody(body) {
  if (body === null) return null;
  if (body.stream === null) return makeBody(body.bytes, null);
  const [first, second] = teeStream(body.stream);
  body.stream = first;
  return makeBody(body.bytes, pipeStreamThrough(second, cloningTransform()));
}

/** Moves the content into a new body and leaves a used one behind. */
export function takeBody(body) {
  const taken = makeBody(body.bytes, null);
  if (body.stream === null) {
    body.used = true;
    return taken;
  }
  const identity = makeTransform({});
  taken.stream = pipeStreamThrough(body.stream, identity);
  taken.bytes = null;
  return taken;
}

function isBytes(chunk) {
  return isObject(chunk) && isView(chunk) && typedArrayTag(chunk) === "Uint8Array";
}

/**
 * Reads all of it and gives `done` an array that nobody else holds. With callbacks, because a promise that is resolved
 * with an object looks for `then` on it, and so would let `Object.prototype` meddle.
 */
export function readAll(body, done, fail) {
  if (body === null) {
    done(new Uint8ArrayCtor(0));
    return;
  }
  if (body.stream === null) {
    body.used = true;
    done(typedArraySlice(body.bytes));
    return;
  }
  const chunks = [];
  readEach(
    body.stream,
    (chunk) => {
      if (!isBytes(chunk)) throw new TypeErrorCtor("the stream gave something else than a Uint8Array");
      push(chunks, typedArraySlice(chunk));
    },
    () => done(chunks.length === 0 ? new Uint8ArrayCtor(0) : concatenate(chunks)),
    fail,
  );
}

function toFormData(bytes, mime) {
  const kind = mime === null ? "" : essence(mime);
  if (kind === "multipart/form-data") {
    const boundary = mime.parameters.get("boundary");
    if (boundary === undefined) throw new TypeErrorCtor("the multipart body has no boundary");
    return decodeMultipart(bytes, boundary);
  }
  if (kind !== "application/x-www-form-urlencoded") throw new TypeErrorCtor("the body is not a form");
  const form = new FormData();
  for (const [name, value] of parseForm(utf8DecodeAll(bytes))) form.append(name, value);
  return form;
}

/** Gives a class the body's members. `stateOf(this)` returns `{ body, headers }` and throws for a wrong receiver. */
export function mixinBody(Class, stateOf, contentTypes) {
  const consume = (receiver, convert) => {
    try {
      const state = stateOf(receiver);
      if (isUnusable(state.body)) return reject(new TypeErrorCtor("the body is locked or was read already"));
      return new PromiseCtor((resolve, fail) => {
        const done = (bytes) => {
          try {
            resolve(convert(bytes, () => extractMime(contentTypes(state))));
          } catch (error) {
            fail(error);
          }
        };
        readAll(state.body, done, fail);
      });
    } catch (error) {
      return reject(error);
    }
  };
  const members = {
    get body() {
      const { body } = stateOf(this);
      return body === null ? null : streamOf(body);
    },
    get bodyUsed() {
      return isUsed(stateOf(this).body);
    },
    arrayBuffer() {
      return consume(this, (bytes) => typedArrayBuffer(bytes));
    },
    blob() {
      return consume(this, (bytes, mime) => {
        const found = mime();
        return makeBlob(bytes, found === null ? "" : serializeMime(found));
      });
    },
    bytes() {
      return consume(this, (bytes) => bytes);
    },
    formData() {
      return consume(this, (bytes, mime) => toFormData(bytes, mime()));
    },
    json() {
      return consume(this, (bytes) => jsonParse(utf8Decode(bytes)));
    },
    text() {
      return consume(this, (bytes) => utf8Decode(bytes));
    },
  };
  for (const key of ownKeys(members)) {
    defineProperty(Class.prototype, key, { ...getOwnPropertyDescriptor(members, key), enumerable: true, configurable: true });
  }
}
