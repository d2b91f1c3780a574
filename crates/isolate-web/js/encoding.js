import { native } from "./host.js";
import { RangeErrorCtor, TypeErrorCtor, Uint8ArrayCtor, typedArrayTag } from "./primordials.js";
import { bytesOf, dictionary, domString, expose, requireArguments, usvString } from "./webidl.js";

const empty = new Uint8ArrayCtor(0);

export const utf8Encode = native.utf8Encode;
/** Text of bytes, with replacement characters, without the byte order mark. */
export const utf8Decode = (bytes) => native.utf8Decode(bytes, false, false);
/** The same, with the mark left in. */
export const utf8DecodeAll = (bytes) => native.utf8Decode(bytes, false, true);

export class TextEncoder {
  #brand = true;
  get encoding() {
    this.#brand;
    return "utf-8";
  }
  encode(input = "") {
    this.#brand;
    return native.utf8Encode(domString(input));
  }
  encodeInto(source, destination) {
    this.#brand;
    requireArguments(arguments.length, 2, "TextEncoder.encodeInto");
    const text = usvString(source);
    if (typeof destination !== "object" || destination === null || typedArrayTag(destination) !== "Uint8Array") {
      throw new TypeErrorCtor("the destination is not a Uint8Array");
    }
    const [read, written] = native.utf8EncodeInto(text, destination);
    return { read, written };
  }
}
expose(TextEncoder);

/** Parses the arguments that TextDecoder and TextDecoderStream share. */
export function decoderSettings(label, options, what) {
  const name = domString(label);
  const init = dictionary(options, `${what}'s options`);
  const fatal = !!init.fatal;
  const ignoreBOM = !!init.ignoreBOM;
  const encoding = native.encodingName(name);
  if (encoding === undefined) throw new RangeErrorCtor(`"${name}" is not the label of an encoding`);
  return { encoding, fatal, ignoreBOM };
}

/** A decoder that is fed piece by piece. */
export class PieceDecoder {
  #settings;
  #holder = null;
  constructor(settings) {
    this.#settings = settings;
  }
  /** Throws a TypeError when the data are malformed and that is fatal; the next piece then starts anew. */
  run(bytes, last) {
    const { encoding, fatal, ignoreBOM } = this.#settings;
    if (last && this.#holder === null && encoding === "utf-8") {
      const text = native.utf8Decode(bytes, fatal, ignoreBOM);
      if (text === undefined) throw malformed(encoding);
      return text;
    }
    this.#holder ??= native.decoderNew(encoding, fatal, ignoreBOM);
    const text = native.decoderRun(this.#holder.id, bytes, last);
    if (last || text === undefined) this.#holder = null;
    if (text === undefined) throw malformed(encoding);
    return text;
  }
}

const malformed = (encoding) => new TypeErrorCtor(`the data are not valid ${encoding}`);

export class TextDecoder {
  #settings;
  #decoder;
  constructor(label = "utf-8", options = undefined) {
    this.#settings = decoderSettings(label, options, "TextDecoder");
    this.#decoder = new PieceDecoder(this.#settings);
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
  decode(input = undefined, options = undefined) {
    this.#settings;
    const bytes = input === undefined ? empty : bytesOf(input, "the input", { shared: true, resizable: true });
    const stream = !!dictionary(options, "the options").stream;
    return this.#decoder.run(bytes, !stream);
  }
}
expose(TextDecoder);
