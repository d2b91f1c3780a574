import { charCodeAt, stringSlice, Uint8ArrayCtor } from "./primordials.js";
import { bytesOf, domString, expose } from "./webidl.js";
import { PieceDecoder, decoderSettings, utf8Encode } from "./encoding.js";
import { makeTransform } from "./streams.js";

const isHighSurrogate = (unit) => unit >= 0xd800 && unit <= 0xdbff;
const empty = new Uint8ArrayCtor(0);

export class TextEncoderStream {
  #transform;
  constructor() {
    // The first half of a surrogate pair whose second half is in the next chunk.
    let pending = "";
    this.#transform = makeTransform({
      transform(chunk, controller) {
        const text = pending + domString(chunk);
        const last = text.length === 0 ? 0 : charCodeAt(text, text.length - 1);
        const keep = isHighSurrogate(last) ? 1 : 0;
        pending = keep === 0 ? "" : stringSlice(text, -1);
        const bytes = utf8Encode(keep === 0 ? text : stringSlice(text, 0, -1));
        if (bytes.length > 0) controller.enqueue(bytes);
      },
      flush(controller) {
        if (pending !== "") controller.enqueue(utf8Encode(pending));
      },
    });
  }
  get encoding() {
    this.#transform;
    return "utf-8";
  }
  get readable() {
    return this.#transform.readable;
  }
  get writable() {
    return this.#transform.writable;
  }
}
expose(TextEncoderStream);

export class TextDecoderStream {
  #settings;
  #transform;
  constructor(label = "utf-8", options = undefined) {
    this.#settings = decoderSettings(label, options, "TextDecoderStream");
    const decoder = new PieceDecoder(this.#settings);
    this.#transform = makeTransform({
      transform(chunk, controller) {
        const text = decoder.run(bytesOf(chunk, "the chunk", { shared: true, resizable: true }), false);
        if (text !== "") controller.enqueue(text);
      },
      flush(controller) {
        const text = decoder.run(empty, true);
        if (text !== "") controller.enqueue(text);
      },
    });
  }
  get encoding() {
    return this.#settings.encoding;
  }
  get fatal() {
    return this.#settings.fatal;
  }
  get ignoreBOM() {
    return this.#settings.ignoreBOM;
  }
  get readable() {
    return this.#transform.readable;
  }
  get writable() {
    return this.#transform.writable;
  }
}
expose(TextDecoderStream);
