// How values are written into paths, queries, headers and cookies: RFC 6570, and the tables of OpenAPI.

const { hasOwn, entries } = Object;
const { isArray } = Array;

class BadInput extends Error {}

// A value that stands for itself; what is nested deeper than a style can say is JSON.
const plain = (value) => (typeof value === "string" ? value : JSON.stringify(value));

const isObject = (value) => typeof value === "object" && value !== null && !isArray(value);

// Everything but letters, digits and - . _ ~ is escaped.
function escaped(text) {
  if (!text.isWellFormed()) throw new BadInput("the input has half a character in it");
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase());
}

// The reserved characters and escapes stay, but for those that would end the value: # and &.
function reserved(text) {
  if (!text.isWellFormed()) throw new BadInput("the input has half a character in it");
  return text.replace(/%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~:/?@!$'()*+,;=[\]]/gu, (part) => (part.length === 3 && part[0] === "%" ? part : encodeURIComponent(part)));
}

// Values without what is not there.
function items(value) {
  if (isArray(value)) return value.filter((item) => item !== null && item !== undefined);
  return entries(value).filter(([, item]) => item !== null && item !== undefined);
}

// One text of a list or an object: `a,b` and `k,v,k,v`, or with explode `k=v,k=v`.
function joined(value, explode, between, write) {
  if (isArray(value)) return items(value).map((item) => write(plain(item))).join(between);
  return items(value).map(([key, item]) => write(key) + (explode ? "=" : between) + write(plain(item))).join(between);
}

function writePath(parameter, value) {
  const { name, style, explode } = parameter;
  if (parameter.content) return escaped(parameter.content === "json" ? JSON.stringify(value) : plain(value));
  if (typeof value !== "object") {
    const text = escaped(plain(value));
    if (style === "label") return "." + text;
    if (style === "matrix") return `;${escaped(name)}` + (text === "" ? "" : "=" + text);
    return text;
  }
  if (style === "simple") return joined(value, explode, ",", escaped);
  if (style === "label") return "." + joined(value, explode, explode ? "." : ",", escaped);
  if (!explode) return `;${escaped(name)}=` + joined(value, false, ",", escaped);
  if (isArray(value)) return items(value).map((item) => `;${escaped(name)}=${escaped(plain(item))}`).join("");
  return items(value).map(([key, item]) => `;${escaped(key)}=${escaped(plain(item))}`).join("");
}

// The pairs of a query, of a form, or of cookies, each ready to be sent.
function pairs(how, name, value, write) {
  const pair = (key, text) => `${escaped(key)}=${write(text)}`;
  if (how.content) return [pair(name, how.content === "json" ? JSON.stringify(value) : plain(value))];
  if (typeof value !== "object") return [pair(name, plain(value))];
  if (how.style === "deepObject" && !isArray(value)) return deep(escaped(name), value, write, 0);
  if (items(value).length === 0) return [];
  if (how.style === "spaceDelimited") return [`${escaped(name)}=${joined(value, false, "%20", write)}`];
  if (how.style === "pipeDelimited") return [`${escaped(name)}=${joined(value, false, "%7C", write)}`];
  if (!how.explode) return [`${escaped(name)}=${joined(value, false, ",", write)}`];
  if (isArray(value)) return items(value).map((item) => pair(name, plain(item)));
  return items(value).map(([key, item]) => pair(key, plain(item)));
}

// `name[key]=value`. OpenAPI stops at one level; more are written as most servers read them.
function deep(prefix, value, write, depth) {
  if (depth > 8) throw new BadInput("an object in the query is nested too deeply");
  return items(value).flatMap(([key, item]) => {
    const at = `${prefix}%5B${escaped(key)}%5D`;
    if (isObject(item)) return deep(at, item, write, depth + 1);
    return (isArray(item) ? items(item) : [item]).map((one) => `${at}=${write(plain(one))}`);
  });
}

// Where secrets go is the specification's to say, and no caller's.
function unmarked(text) {
  if (text.includes("{{secret:")) throw new BadInput("the input has `{{secret:` in it, which marks the place of a secret");
  return text;
}

// Headers are not escaped, so what cannot stand in one is refused.
function headerText(name, text) {
  if (/[^\t\x20-\x7e\x80-\xff]/.test(text)) throw new BadInput(`the header ${name} cannot carry this value: it has characters that headers do not have`);
  return unmarked(text);
}

function writeHeader(parameter, value) {
  if (parameter.content === "json") return headerText(parameter.name, JSON.stringify(value));
  const text = typeof value === "object" && !parameter.content ? joined(value, parameter.explode, ",", String) : plain(value);
  return headerText(parameter.name, text);
}

function cookies(parameter, value) {
  if (parameter.style !== "cookie") return pairs(parameter, parameter.name, value, escaped);
  const bare = (text) => {
    if (/[;,\s"\\]/.test(text)) throw new BadInput(`the cookie ${parameter.name} cannot carry this value`);
    return headerText("cookie", text);
  };
  return pairs(parameter, parameter.name, value, bare);
}

