// Subresource integrity: the digests that a body must have, as a request's `integrity` says.
import { native } from "./host.js";

const strengths = { __proto__: null, sha256: 1, sha384: 2, sha512: 3 };
const names = { __proto__: null, sha256: "SHA-256", sha384: "SHA-384", sha512: "SHA-512" };

/** The digests of the strongest algorithm named; none means that anything goes. */
function strongest(metadata) {
  let found = [];
  let strength = 0;
  for (const item of metadata.split(/[\t\n\f\r ]+/)) {
    const match = /^(sha256|sha384|sha512)-([A-Za-z0-9+/_-]+={0,2})(?:\?.*)?$/i.exec(item);
    if (match === null) continue;
    const algorithm = match[1].toLowerCase();
    if (strengths[algorithm] > strength) {
      strength = strengths[algorithm];
      found = [];
    }
    const digest = match[2].replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
    if (strengths[algorithm] === strength) found.push({ algorithm, digest });
  }
  return found;
}

export function hasIntegrity(bytes, metadata) {
  const digests = strongest(metadata);
  if (digests.length === 0) return true;
  return digests.some(({ algorithm, digest }) => native.base64UrlEncode(native.digest(names[algorithm], bytes)) === digest);
}
