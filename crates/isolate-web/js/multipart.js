// multipart/form-data, both ways.
import { native } from "./host.js";
import { TypeErrorCtor, push, typedArraySlice } from "./primordials.js";
import { blobBytes, concatenate, makeFile } from "./blob.js";
import { utf8Decode, utf8DecodeAll, utf8Encode } from "./encoding.js";
import { FormData } from "./form_data.js";

const normalize = (text) => text.replace(/\r\n?|\n/g, "\r\n");
const escape = (text) => text.replace(/\n/g, "%0A").replace(/\r/g, "%0D").replace(/"/g, "%22");

/** { bytes, boundary } of the entries of a form. */
export function encodeMultipart(entries) {
  const boundary = `----bulkhead${native.randomUUID().replaceAll("-", "")}`;
  const chunks = [];
  for (const [name, value] of entries) {
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${escape(normalize(name))}"`;
    if (typeof value === "string") {
      push(chunks, utf8Encode(`${head}\r\n\r\n${normalize(value)}\r\n`));
    } else {
      const type = value.type || "application/octet-stream";
      push(chunks, utf8Encode(`${head}; filename="${escape(value.name)}"\r\nContent-Type: ${type}\r\n\r\n`));
      push(chunks, blobBytes(value), utf8Encode("\r\n"));
    }
  }
  push(chunks, utf8Encode(`--${boundary}--\r\n`));
  return { bytes: concatenate(chunks), boundary };
}

const malformed = () => new TypeErrorCtor("the body is not multipart/form-data");
const unescape = (text) => text.replace(/%0A/gi, "\n").replace(/%0D/gi, "\r").replace(/%22/g, '"');

function parameter(header, name) {
  const found = new RegExp(`;[ \\t]*${name}="([^"]*)"`, "i").exec(header);
  // The header was read one character a byte; its text is UTF-8.
  return found === null ? null : unescape(utf8DecodeAll(native.latin1Encode(found[1])));
}

/** A FormData of the bytes; throws a TypeError when they are malformed. */
export function decodeMultipart(bytes, boundary) {
  const form = new FormData();
  // One character a byte, so that positions in the text are positions in the bytes.
  const text = native.latin1Decode(bytes);
  const delimiter = `--${boundary}`;
  let at = text.startsWith(delimiter) ? 0 : text.indexOf(`\r\n${delimiter}`) + 2;
  if (at === 1) throw malformed();
  for (;;) {
    at += delimiter.length;
    if (text.startsWith("--", at)) {
      if (!/^[ \t]*(?:\r\n[^]*)?$/.test(text.slice(at + 2))) throw malformed();
      return form;
    }
    if (!text.startsWith("\r\n", at)) throw malformed();
    const headEnd = text.indexOf("\r\n\r\n", at);
    const headers = headEnd === at ? "" : text.slice(at + 2, headEnd);
    if (headEnd < 0) throw malformed();
    const start = headEnd + 4;
    const end = text.indexOf(`\r\n${delimiter}`, start - 2);
    if (end < 0) throw malformed();
    addPart(form, headers, typedArraySlice(bytes, start, Math.max(start, end)));
    at = end + 2;
  }
}

function addPart(form, headers, content) {
  const disposition = /^content-disposition:[ \t]*(form-data[^\r\n]*)/im.exec(headers)?.[1];
  const name = disposition === undefined ? null : parameter(disposition, "name");
  if (name === null) throw malformed();
  const filename = parameter(disposition, "filename");
  if (filename === null) {
    form.append(name, utf8Decode(content));
    return;
  }
  const type = /^content-type:[ \t]*([^\r\n]*?)[ \t]*$/im.exec(headers)?.[1] ?? "text/plain";
  form.append(name, makeFile(content, type.toLowerCase(), filename));
}
