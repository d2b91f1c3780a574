// MIME types (the WHATWG's MIME Sniffing standard).
import { regExpExec, stringSlice, toLowerCase } from "./primordials.js";

const token = /^[-!#$%&'*+.^_`|~A-Za-z0-9]+$/;
const quotable = /^[\t\x20-\x7e\x80-\xff]*$/;

export const isToken = (text) => regExpExec(token, text) !== null;
const trimEnd = (text) => text.replace(/[\t\n\r ]+$/, "");

/** { type, subtype, parameters: Map } or null. */
export function parseMime(input) {
  const text = input.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
  const slash = text.indexOf("/");
  if (slash < 0 || !isToken(stringSlice(text, 0, slash))) return null;
  let at = text.indexOf(";", slash);
  if (at < 0) at = text.length;
  const subtype = trimEnd(stringSlice(text, slash + 1, at));
  if (!isToken(subtype)) return null;
  const mime = { type: toLowerCase(stringSlice(text, 0, slash)), subtype: toLowerCase(subtype), parameters: new Map() };
  while (at < text.length) {
    at++;
    while (at < text.length && "\t\n\r ".includes(text[at])) at++;
    const start = at;
    while (at < text.length && text[at] !== ";" && text[at] !== "=") at++;
    const name = toLowerCase(stringSlice(text, start, at));
    if (at >= text.length) break;
    if (text[at] === ";") continue;
    at++;
    let value;
    if (text[at] === '"') {
      [value, at] = quotedString(text, at);
      while (at < text.length && text[at] !== ";") at++;
    } else {
      const from = at;
      while (at < text.length && text[at] !== ";") at++;
      value = trimEnd(stringSlice(text, from, at));
      if (value === "") continue;
    }
    if (isToken(name) && regExpExec(quotable, value) !== null && !mime.parameters.has(name)) mime.parameters.set(name, value);
  }
  return mime;
}

function quotedString(text, start) {
  let value = "";
  let at = start + 1;
  while (at < text.length && text[at] !== '"') {
    if (text[at] === "\\" && at + 1 < text.length) at++;
    value += text[at++];
  }
  return [value, at + 1];
}

export const essence = (mime) => `${mime.type}/${mime.subtype}`;

export function serializeMime(mime) {
  let text = essence(mime);
  for (const [name, value] of mime.parameters) {
    text += `;${name}=`;
    text += isToken(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`;
  }
  return text;
}

/** The MIME type of a message: the last good one of its Content-Type headers, with an inherited charset. */
export function extractMime(values) {
  let mime = null;
  let charset = null;
  for (const value of values) {
    const next = parseMime(value);
    if (next === null || essence(next) === "*/*") continue;
    if (mime === null || essence(next) !== essence(mime)) {
      charset = next.parameters.get("charset") ?? null;
    } else if (!next.parameters.has("charset") && charset !== null) {
      next.parameters.set("charset", charset);
    }
    mime = next;
  }
  return mime;
}
