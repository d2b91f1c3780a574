import { log, native } from "./host.js";
import {
  MapCtor, create, defineProperty, getOwnPropertyDescriptor, isArray, join, mapDelete, mapGet, mapSet, mapSize, max, min,
  ownKeys, padEnd, push, repeat, split, stringIndexOf, stringSlice, symbolToString,
} from "./primordials.js";
import { performanceNow } from "./clock.js";
import { clip, inspect } from "./inspect.js";
import { isObject } from "./webidl.js";

const MAX_MESSAGE = 64 * 1024;
const MAX_INDENT = 20;
const MAX_LABELS = 1000;

const { captureStackTrace } = Error;

let indent = 0;
const counts = new MapCtor();
const timers = new MapCtor();

function numeric(value, whole) {
  if (typeof value === "symbol") return "NaN";
  if (typeof value === "bigint") return inspect(value);
  if (isObject(value)) return "NaN";
  const number = +value;
  return `${whole && number === number ? number - (number % 1) : number}`;
}

function directive(letter, value) {
  switch (letter) {
    case "s":
      return typeof value === "symbol" ? symbolToString(value) : isObject(value) ? inspect(value, { depth: 1 }) : `${value}`;
    case "d":
    case "i":
      return numeric(value, true);
    case "f":
      return numeric(value, false);
    case "c":
      return "";
    default:
      return inspect(value);
  }
}

function format(values) {
  const parts = [];
  let next = 0;
  let length = 0;
  if (values.length > 1 && typeof values[0] === "string") {
    const template = clip(values[0], MAX_MESSAGE);
    let text = "";
    let from = 0;
    next = 1;
    for (;;) {
      const at = stringIndexOf(template, "%", from);
      if (at < 0 || at + 1 >= template.length || text.length > MAX_MESSAGE) break;
      const letter = template[at + 1];
      text += stringSlice(template, from, at);
      if (letter === "%") text += "%";
      else if (stringIndexOf("sdifoOc", letter) < 0 || next >= values.length) text += `%${letter}`;
      else text += directive(letter, values[next++]);
      from = at + 2;
    }
    push(parts, text + stringSlice(template, from));
  }
  for (; next < values.length && length < MAX_MESSAGE; next++) {
    const text = inspect(values[next], { quote: false });
    length += text.length;
    push(parts, text);
  }
  return clip(join(parts, " "), MAX_MESSAGE);
}

function write(level, text) {
  if (indent > 0) {
    const pad = repeat("  ", min(indent, MAX_INDENT));
    text = pad + join(split(text, "\n"), `\n${pad}`);
  }
  log(level, text);
}

const label = (value) => clip(value === undefined ? "default" : `${value}`, 200);

function remember(map, key, value) {
  if (mapSize(map) < MAX_LABELS) mapSet(map, key, value);
}

function stackHere() {
  const holder = {};
  captureStackTrace(holder, methods.trace);
  const text = holder.stack;
  if (typeof text !== "string") return "";
  const frames = stringIndexOf(text, "\n");
  return frames < 0 ? "" : clip(stringSlice(text, frames), MAX_MESSAGE);
}

function table(data) {
  const rows = [];
  const columns = [];
  const seen = create(null);
  const keys = ownKeys(data);
  for (let i = 0; i < keys.length && rows.length < 100; i++) {
    const descriptor = getOwnPropertyDescriptor(data, keys[i]);
    if (typeof keys[i] === "symbol" || !descriptor?.enumerable) continue;
    const row = create(null);
    row[""] = clip(keys[i], 40);
    const cell = descriptor.value;
    if (isObject(cell) && !native.isProxy(cell)) {
      const names = ownKeys(cell);
      for (let j = 0; j < names.length && j < 20; j++) {
        if (typeof names[j] === "symbol" || (isArray(cell) && names[j] === "length")) continue;
        const inner = getOwnPropertyDescriptor(cell, names[j]);
        if (seen[names[j]] === undefined && columns.length < 20) {
          seen[names[j]] = true;
          push(columns, names[j]);
        }
        row[names[j]] = clip(inspect(inner.value, { depth: 0 }), 60);
      }
    } else {
      if (seen.Value === undefined) {
        seen.Value = true;
        push(columns, "Value");
      }
      row.Value = clip(inspect(cell, { depth: 0 }), 60);
    }
    push(rows, row);
  }
  const heads = [""];
  for (let i = 0; i < columns.length; i++) push(heads, columns[i]);
  const widths = [];
  for (let c = 0; c < heads.length; c++) {
    let width = min(heads[c].length, 60);
    for (let r = 0; r < rows.length; r++) width = max(width, (rows[r][heads[c]] ?? "").length);
    push(widths, width);
  }
  const line = (cell) => {
    const cells = [];
    for (let c = 0; c < heads.length; c++) push(cells, padEnd(cell(heads[c]), widths[c]));
    return join(cells, " | ");
  };
  const lines = [line((head) => clip(head, 60))];
  for (let r = 0; r < rows.length; r++) push(lines, line((head) => rows[r][head] ?? ""));
  return join(lines, "\n");
}

const methods = {
  assert(condition = false, ...data) {
    if (condition) return;
    const text = format(data);
    write("error", text === "" ? "Assertion failed" : `Assertion failed: ${text}`);
  },
  clear() {
    indent = 0;
  },
  count(name = "default") {
    const key = label(name);
    const times = (mapGet(counts, key) ?? 0) + 1;
    remember(counts, key, times);
    write("info", `${key}: ${times}`);
  },
  countReset(name = "default") {
    mapDelete(counts, label(name));
  },
  debug(...data) {
    write("debug", format(data));
  },
  dir(item = undefined, options = undefined) {
    void options;
    write("info", inspect(item));
  },
  dirxml(...data) {
    write("info", format(data));
  },
  error(...data) {
    write("error", format(data));
  },
  group(...data) {
    if (data.length > 0) write("info", format(data));
    indent++;
  },
  groupCollapsed(...data) {
    if (data.length > 0) write("info", format(data));
    indent++;
  },
  groupEnd() {
    indent = max(0, indent - 1);
  },
  info(...data) {
    write("info", format(data));
  },
  log(...data) {
    write("info", format(data));
  },
  table(data = undefined, columns = undefined) {
    void columns;
    write("info", isObject(data) && !native.isProxy(data) ? clip(table(data), MAX_MESSAGE) : inspect(data, { quote: false }));
  },
  time(name = "default") {
    remember(timers, label(name), performanceNow());
  },
  timeEnd(name = "default") {
    const key = label(name);
    const start = mapGet(timers, key);
    if (start === undefined) return;
    mapDelete(timers, key);
    write("info", `${key}: ${performanceNow() - start} ms`);
  },
  timeLog(name = "default", ...data) {
    const key = label(name);
    const start = mapGet(timers, key);
    if (start === undefined) return;
    const text = format(data);
    write("info", `${key}: ${performanceNow() - start} ms${text === "" ? "" : ` ${text}`}`);
  },
  trace(...data) {
    const text = format(data);
    write("debug", `Trace${text === "" ? "" : `: ${text}`}${stackHere()}`);
  },
  warn(...data) {
    write("warn", format(data));
  },
};

export const console = create({});
for (const key of ownKeys(methods)) {
  defineProperty(console, key, { value: methods[key], enumerable: true, writable: true, configurable: true });
}
defineProperty(console, Symbol.toStringTag, { value: "console", configurable: true });
