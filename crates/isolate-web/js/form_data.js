import { TypeErrorCtor, push } from "./primordials.js";
import { expose, isObject, pairIterable, requireArguments, usvString } from "./webidl.js";
import { blobBytes, isBlob, isFile, makeFile } from "./blob.js";
import { registerInspector } from "./inspect.js";
import { registerPlatformClass } from "./structured_clone.js";

export let formEntries;
export let isFormData;

export class FormData {
  #entries = [];
  static {
    formEntries = (form) => form.#entries;
    isFormData = (value) => isObject(value) && #entries in value;
  }
  constructor(form = undefined, submitter = undefined) {
    void submitter;
    if (form !== undefined) throw new TypeErrorCtor("there are no form elements here");
  }
  append(name, value, filename = undefined) {
    this.#entries;
    requireArguments(arguments.length, 2, "FormData.append");
    push(this.#entries, toEntry(name, value, filename, arguments.length));
  }
  delete(name) {
    this.#entries;
    requireArguments(arguments.length, 1, "FormData.delete");
    const key = usvString(name);
    this.#entries = this.#entries.filter((entry) => entry[0] !== key);
  }
  get(name) {
    this.#entries;
    requireArguments(arguments.length, 1, "FormData.get");
    const key = usvString(name);
    return this.#entries.find((entry) => entry[0] === key)?.[1] ?? null;
  }
  getAll(name) {
    this.#entries;
    requireArguments(arguments.length, 1, "FormData.getAll");
    const key = usvString(name);
    return this.#entries.filter((entry) => entry[0] === key).map((entry) => entry[1]);
  }
  has(name) {
    this.#entries;
    requireArguments(arguments.length, 1, "FormData.has");
    const key = usvString(name);
    return this.#entries.some((entry) => entry[0] === key);
  }
  set(name, value, filename = undefined) {
    this.#entries;
    requireArguments(arguments.length, 2, "FormData.set");
    const entry = toEntry(name, value, filename, arguments.length);
    const at = this.#entries.findIndex((each) => each[0] === entry[0]);
    if (at < 0) {
      push(this.#entries, entry);
      return;
    }
    this.#entries = this.#entries.filter((each, index) => index <= at || each[0] !== entry[0]);
    this.#entries[at] = entry;
  }
}
pairIterable(FormData, (form) => formEntries(form));
expose(FormData);
registerPlatformClass(isFormData);
registerInspector(isFormData, (form) => ({ label: "FormData", parts: Object.fromEntries(formEntries(form)) }));

function toEntry(name, value, filename, given) {
  const key = usvString(name);
  if (!isBlob(value)) {
    if (given >= 3) throw new TypeErrorCtor("a file name was given for a value that is not a Blob");
    return [key, usvString(value)];
  }
  if (isFile(value) && filename === undefined) return [key, value];
  const fileName = filename === undefined ? "blob" : usvString(filename);
  return [key, makeFile(blobBytes(value), value.type, fileName, isFile(value) ? value.lastModified : Date.now())];
}
