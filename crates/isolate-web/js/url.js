import { native } from "./host.js";
import { TypeErrorCtor, stringSlice } from "./primordials.js";
import { expose, isObject, requireArguments, usvString } from "./webidl.js";
import { paramsHooks } from "./url_search_params.js";

const ABSENT = 0xffffffff;
const PROTOCOL_END = 0;
const USERNAME_END = 1;
const HOST_START = 2;
const HOST_END = 3;
const PORT = 4;
const PATHNAME_START = 5;
const SEARCH_START = 6;
const HASH_START = 7;

/** Where blob: URLs lead; form.js and blob.js fill it. */
export const blobUrls = { create: undefined, revoke: undefined };
export let isURL;

export class URL {
  #href;
  /** Offsets of the parts in the text, written by Rust. */
  #parts = new Uint32Array(8);
  #params = null;
  static {
    isURL = (value) => isObject(value) && #href in value;
  }
  constructor(url, base = undefined) {
    requireArguments(arguments.length, 1, "URL");
    const input = usvString(url);
    const against = base === undefined ? undefined : usvString(base);
    this.#href = native.urlParse(input, against, this.#parts);
    if (this.#href === undefined) {
      const where = against === undefined ? "" : ` against "${stringSlice(against, 0, 200)}"`;
      throw new TypeErrorCtor(`Invalid URL: "${stringSlice(input, 0, 200)}"${where}`);
    }
  }
  static parse(url, base = undefined) {
    requireArguments(arguments.length, 1, "URL.parse");
    const input = usvString(url);
    const against = base === undefined ? undefined : usvString(base);
    return native.urlCanParse(input, against) ? new URL(input, against) : null;
  }
  static canParse(url, base = undefined) {
    requireArguments(arguments.length, 1, "URL.canParse");
    return native.urlCanParse(usvString(url), base === undefined ? undefined : usvString(base));
  }
  static createObjectURL(object) {
    requireArguments(arguments.length, 1, "URL.createObjectURL");
    return blobUrls.create(object);
  }
  static revokeObjectURL(url) {
    requireArguments(arguments.length, 1, "URL.revokeObjectURL");
    blobUrls.revoke(usvString(url));
  }
  #set(part, value) {
    this.#href = native.urlSet(this.#href, part, value, this.#parts);
  }
  /** The text from one offset to another; an absent end is the end of the text. */
  #cut(start, end) {
    return stringSlice(this.#href, start, end === ABSENT ? this.#href.length : end);
  }
  #pathEnd() {
    const search = this.#parts[SEARCH_START];
    return search === ABSENT ? this.#parts[HASH_START] : search;
  }
  #hostStart() {
    const start = this.#parts[HOST_START];
    return this.#href[start] === "@" && this.#parts[HOST_END] > start ? start + 1 : start;
  }
  get href() {
    return this.#href;
  }
  set href(value) {
    this.#href;
    const next = native.urlParse(usvString(value), undefined, this.#parts);
    if (next === undefined) throw new TypeErrorCtor("Invalid URL");
    this.#href = next;
    if (this.#params !== null) paramsHooks.replace(this.#params, stringSlice(this.search, 1));
  }
  get origin() {
    return native.urlOrigin(this.#href);
  }
  get protocol() {
    return this.#cut(0, this.#parts[PROTOCOL_END]);
  }
  set protocol(value) {
    this.#href;
    this.#set("protocol", usvString(value));
  }
  get username() {
    const start = this.#parts[PROTOCOL_END] + 2;
    return start < this.#parts[USERNAME_END] ? this.#cut(start, this.#parts[USERNAME_END]) : "";
  }
  set username(value) {
    this.#href;
    this.#set("username", usvString(value));
  }
  get password() {
    const start = this.#parts[USERNAME_END];
    return this.#parts[HOST_START] > start ? this.#cut(start + 1, this.#parts[HOST_START]) : "";
  }
  set password(value) {
    this.#href;
    this.#set("password", usvString(value));
  }
  get host() {
    const start = this.#hostStart();
    return start === this.#parts[HOST_END] ? "" : this.#cut(start, this.#parts[PATHNAME_START]);
  }
  set host(value) {
    this.#href;
    this.#set("host", usvString(value));
  }
  get hostname() {
    return this.#cut(this.#hostStart(), this.#parts[HOST_END]);
  }
  set hostname(value) {
    this.#href;
    this.#set("hostname", usvString(value));
  }
  get port() {
    return this.#parts[PORT] === ABSENT ? "" : `${this.#parts[PORT]}`;
  }
  set port(value) {
    this.#href;
    this.#set("port", usvString(value));
  }
  get pathname() {
    return this.#cut(this.#parts[PATHNAME_START], this.#pathEnd());
  }
  set pathname(value) {
    this.#href;
    this.#set("pathname", usvString(value));
  }
  get search() {
    const start = this.#parts[SEARCH_START];
    if (start === ABSENT) return "";
    const text = this.#cut(start, this.#parts[HASH_START]);
    return text.length <= 1 ? "" : text;
  }
  set search(value) {
    this.#href;
    const text = usvString(value);
    this.#set("search", text);
    if (this.#params !== null) paramsHooks.replace(this.#params, text[0] === "?" ? stringSlice(text, 1) : text);
  }
  get searchParams() {
    this.#params ??= paramsHooks.make(stringSlice(this.search, 1), () => this.#set("search", this.#params.toString()));
    return this.#params;
  }
  get hash() {
    const start = this.#parts[HASH_START];
    if (start === ABSENT) return "";
    const text = this.#cut(start, ABSENT);
    return text.length <= 1 ? "" : text;
  }
  set hash(value) {
    this.#href;
    this.#set("hash", usvString(value));
  }
  toJSON() {
    return this.#href;
  }
  toString() {
    return this.#href;
  }
}
expose(URL);

const parts = new Uint32Array(8);
/** The serialised URL, or undefined. */
export const parseUrl = (input, base) => native.urlParse(input, base, parts);
