// The streams classes are npm's web-streams-polyfill; this module adds what the rest of the runtime needs of them.
import {
  ByteLengthQueuingStrategy, CountQueuingStrategy, ReadableByteStreamController, ReadableStream,
  ReadableStreamBYOBReader, ReadableStreamBYOBRequest, ReadableStreamDefaultController, ReadableStreamDefaultReader,
  TransformStream, TransformStreamDefaultController, WritableStream, WritableStreamDefaultController,
  WritableStreamDefaultWriter,
} from "npm:web-streams-polyfill";
import {
  asyncIteratorPrototype, getOwnPropertyDescriptor, getPrototypeOf, hasOwn, ownKeys, setPrototypeOf, then, uncurry,
} from "./primordials.js";
import { isObject } from "./webidl.js";

export {
  ByteLengthQueuingStrategy, CountQueuingStrategy, ReadableByteStreamController, ReadableStream,
  ReadableStreamBYOBReader, ReadableStreamBYOBRequest, ReadableStreamDefaultController, ReadableStreamDefaultReader,
  TransformStream, TransformStreamDefaultController, WritableStream, WritableStreamDefaultController,
  WritableStreamDefaultWriter,
};

// The package finds its own idea of %AsyncIteratorPrototype%; iterators must inherit the language's.
setPrototypeOf(getPrototypeOf(new ReadableStream().values()), asyncIteratorPrototype);

const lockedGetter = uncurry(getOwnPropertyDescriptor(ReadableStream.prototype, "locked").get);
const tee = uncurry(ReadableStream.prototype.tee);
const readerCancel = uncurry(ReadableStreamDefaultReader.prototype.cancel);
const pipeThrough = uncurry(ReadableStream.prototype.pipeThrough);
const pipeTo = uncurry(ReadableStream.prototype.pipeTo);

function internalMethod(prototype, description) {
  for (const key of ownKeys(prototype)) if (typeof key === "symbol" && key.description === description) return key;
  throw new Error(`web-streams-polyfill has no ${description}`);
}
const pullSteps = internalMethod(ReadableStreamDefaultController.prototype, "[[PullSteps]]");

const isA = (Class, slot) => (value) => isObject(value) && hasOwn(value, slot) && value instanceof Class;
export const isReadableStream = isA(ReadableStream, "_readableStreamController");
export const isWritableStream = isA(WritableStream, "_writableStreamController");
export const isTransformStream = isA(TransformStream, "_transformStreamController");
export const isLocked = (stream) => lockedGetter(stream);
export const isDisturbed = (stream) => stream._disturbed === true;
export const teeStream = (stream) => tee(stream);
export const pipeStreamTo = (stream, destination) => pipeTo(stream, destination);
export const pipeStreamThrough = (stream, transform) => pipeThrough(stream, transform);

/** Asks a locked stream for one chunk without making a promise, which tenant code could look into. */
function readChunk(stream, { chunk, close, error }) {
  stream._disturbed = true;
  if (stream._state === "closed") close();
  else if (stream._state === "errored") error(stream._storedError);
  else {
    stream._readableStreamController[pullSteps]({
      _canReadSync: () => true, _chunkSteps: chunk, _closeSteps: close, _errorSteps: error,
    });
  }
}

/**
 * Locks the stream and feeds every chunk to `chunk`; a chunk for which that throws is an error like any other.
 * Where `chunk` returns a promise, the next chunk is asked for when that is fulfilled.
 */
export function readEach(stream, chunk, close, error) {
  const reader = new ReadableStreamDefaultReader(stream);
  const fail = (failure) => {
    cancelReader(reader, failure);
    error(failure);
  };
  const next = () => {
    // Chunks that are there already come back at once; a loop instead of recursion keeps the stack flat.
    let again = true;
    let inside = true;
    while (again) {
      again = false;
      readChunk(stream, {
        chunk(value) {
          let wait;
          try {
            wait = chunk(value);
          } catch (failure) {
            fail(failure);
            return;
          }
          if (wait !== undefined) then(wait, next, fail);
          else if (inside) again = true;
          else next();
        },
        close,
        error,
      });
    }
    inside = false;
  };
  next();
  return reader;
}

/** Cancels without waiting for it. */
export function cancelReader(reader, reason) {
  then(readerCancel(reader, reason), undefined, () => {});
}

/** A byte stream over bytes that are there already. */
export function streamOfBytes(bytes) {
  const CHUNK = 64 * 1024;
  let at = 0;
  // No prototypes: what tenant code puts on Object.prototype must not become an option.
  return new ReadableStream({
    __proto__: null,
    type: "bytes",
    pull(controller) {
      const end = Math.min(at + CHUNK, bytes.length);
      if (end > at) controller.enqueue(bytes.slice(at, end));
      at = end;
      if (at >= bytes.length) {
        controller.close();
        controller.byobRequest?.respond(0);
      }
    },
  }, { __proto__: null, highWaterMark: 0 });
}

/** A stream that was read to its end by a reader who still holds it. */
export function spentStream() {
  const stream = new ReadableStream({ __proto__: null, type: "bytes", start: (controller) => controller.close() }, { __proto__: null });
  new ReadableStreamDefaultReader(stream);
  stream._disturbed = true;
  return stream;
}

/** A TransformStream whose options nobody can add to. */
export const makeTransform = (transformer, writable = {}, readable = {}) =>
  new TransformStream({ __proto__: null, ...transformer }, { __proto__: null, ...writable }, { __proto__: null, ...readable });
