import { native } from "./host.js";
import { TypeErrorCtor, Uint8ArrayCtor } from "./primordials.js";
import { bytesOf, enumValue, expose, requireArguments } from "./webidl.js";
import { makeTransform } from "./streams.js";

const formats = ["deflate", "deflate-raw", "gzip"];
const empty = new Uint8ArrayCtor(0);

function zlibTransform(format, compress) {
  const holder = native.zlibNew(format, compress);
  const run = (bytes, last, controller) => {
    const output = native.zlibRun(holder.id, bytes, last);
    if (output === undefined) throw new TypeErrorCtor(`the data are not ${format}`);
    if (output.length > 0) controller.enqueue(output);
  };
  return makeTransform({
    transform: (chunk, controller) => run(bytesOf(chunk, "the chunk"), false, controller),
    flush: (controller) => run(empty, true, controller),
  });
}

export class CompressionStream {
  #transform;
  constructor(format) {
    requireArguments(arguments.length, 1, "CompressionStream");
    this.#transform = zlibTransform(enumValue(format, formats, "the format"), true);
  }
  get readable() {
    return this.#transform.readable;
  }
  get writable() {
    return this.#transform.writable;
  }
}
expose(CompressionStream);

export class DecompressionStream {
  #transform;
  constructor(format) {
    requireArguments(arguments.length, 1, "DecompressionStream");
    this.#transform = zlibTransform(enumValue(format, formats, "the format"), false);
  }
  get readable() {
    return this.#transform.readable;
  }
  get writable() {
    return this.#transform.writable;
  }
}
expose(DecompressionStream);
