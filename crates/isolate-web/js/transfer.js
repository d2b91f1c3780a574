// Streams can be transferred: the new one is fed by the old one, which stays locked.
import { then } from "./primordials.js";
import { DOMException } from "./dom_exception.js";
import {
  TransformStream, isLocked, isReadableStream, isTransformStream, isWritableStream,
  makeTransform, pipeStreamThrough, pipeStreamTo,
} from "./streams.js";
import { clone, registerTransferable } from "./structured_clone.js";

const ignore = () => {};
const locked = () => new DOMException("a locked stream cannot be transferred", "DataCloneError");

/** Passes copies of the chunks on: both sides must not share memory. */
export const cloningTransform = () =>
  makeTransform(
    { transform: (chunk, controller) => controller.enqueue(clone(chunk)) }, { highWaterMark: 1 }, { highWaterMark: 0 },
  );

function transferReadable(stream) {
  if (isLocked(stream)) throw locked();
  return pipeStreamThrough(stream, cloningTransform());
}

function transferWritable(stream) {
  if (stream.locked) throw locked();
  const { readable, writable } = cloningTransform();
  then(pipeStreamTo(readable, stream), ignore, ignore);
  return writable;
}

registerTransferable(isReadableStream, transferReadable);
registerTransferable(isWritableStream, transferWritable);
registerTransferable(isTransformStream, (transform) => {
  const readable = transferReadable(transform.readable);
  const writable = transferWritable(transform.writable);
  const result = new TransformStream();
  result._readable = readable;
  result._writable = writable;
  return result;
});
