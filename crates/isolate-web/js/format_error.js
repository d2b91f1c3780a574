// The text of a thrown value: name, message, stack and causes, bounded, and never itself throwing.
// It does read `stack`, `name`, `message` and `cause`, which may be the value's own accessors.
import { native } from "./host.js";
import { getOwnPropertyDescriptor, isArray, join, push, startsWith, stringIndexOf, stringSlice } from "./primordials.js";
import { isDOMException } from "./dom_exception.js";

const MAX_CAUSES = 4;
const MAX_TEXT = 8 * 1024;

const clip = (text, limit) => (text.length <= limit ? text : `${stringSlice(text, 0, limit)}…`);

let inspectValue = (value) => typeof value;
/** inspect.js needs this module, so it hands its function over. */
export const connectInspect = (inspect) => {
  inspectValue = inspect;
};

function read(value, key, limit) {
  try {
    const found = value[key];
    return typeof found === "string" ? clip(found, limit) : undefined;
  } catch {
    return undefined;
  }
}

const isErrorLike = (value) =>
  typeof value === "object" && value !== null && !native.isProxy(value) && (native.kindOf(value) === "error" || isDOMException(value));

function causesOf(value) {
  const causes = [];
  try {
    const cause = getOwnPropertyDescriptor(value, "cause");
    if (cause !== undefined && "value" in cause) push(causes, ["caused by", cause.value]);
    const errors = getOwnPropertyDescriptor(value, "errors")?.value;
    if (native.isProxy(errors) || !isArray(errors)) return causes;
    for (let i = 0; i < errors.length && i < MAX_CAUSES; i++) push(causes, [`error ${i + 1} of ${errors.length}`, errors[i]]);
  } catch {
    // What could be read is enough.
  }
  return causes;
}

function headOf(value) {
  const name = read(value, "name", 200) ?? "Error";
  const message = read(value, "message", MAX_TEXT) ?? "";
  return message === "" ? name : `${name}: ${message}`;
}

/** Name and message alone. */
export function errorSummary(value) {
  try {
    return isErrorLike(value) ? headOf(value) : clip(inspectValue(value), MAX_TEXT);
  } catch {
    return "an error that cannot be shown";
  }
}

function headAndStack(value) {
  const head = headOf(value);
  const stack = read(value, "stack", MAX_TEXT * 2);
  if (stack === undefined || stack === "") return head;
  // V8 writes the head into the stack when the error is made; name and message may have changed since.
  if (startsWith(stack, head)) return stack;
  const frames = stringIndexOf(stack, "\n    at ");
  return frames < 0 ? head : `${head}${stringSlice(stack, frames)}`;
}

export function errorText(value, depth) {
  const lines = [headAndStack(value)];
  if (depth >= MAX_CAUSES) return lines[0];
  const causes = causesOf(value);
  for (let i = 0; i < causes.length; i++) {
    push(lines, `${causes[i][0]}: ${isErrorLike(causes[i][1]) ? errorText(causes[i][1], depth + 1) : inspectValue(causes[i][1])}`);
  }
  return clip(join(lines, "\n"), MAX_TEXT * 2);
}

export function formatError(value) {
  try {
    return isErrorLike(value) ? errorText(value, 0) : clip(inspectValue(value), MAX_TEXT);
  } catch {
    return "an error that cannot be shown";
  }
}
