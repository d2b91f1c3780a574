// data: URLs (the Fetch standard's processor).
import { native } from "./host.js";
import { stringIndexOf, stringSlice } from "./primordials.js";
import { parseMime, serializeMime } from "./mime.js";

/** { type, bytes } or null. */
export function readDataUrl(href) {
  const hash = stringIndexOf(href, "#");
  const input = stringSlice(href, 5, hash < 0 ? href.length : hash);
  const comma = stringIndexOf(input, ",");
  if (comma < 0) return null;
  let type = stringSlice(input, 0, comma).replace(/^[\t\n\f\r ]+|[\t\n\f\r ]+$/g, "");
  let bytes = native.percentDecode(stringSlice(input, comma + 1));
  const marker = /; *base64$/i.exec(type);
  if (marker !== null) {
    const text = native.atob(native.latin1Decode(bytes));
    if (text === undefined) return null;
    bytes = native.latin1Encode(text);
    type = stringSlice(type, 0, marker.index);
  }
  if (type[0] === ";") type = `text/plain${type}`;
  const mime = parseMime(type);
  return { type: mime === null ? "text/plain;charset=US-ASCII" : serializeMime(mime), bytes };
}
