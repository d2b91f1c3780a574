// Tenant code shares the realm. What it does to the language must not reach the functions that the embedder relies on.
promise_test(async () => {
  const { runTimers, inspect, formatError, makeAbort } = bulkhead;
  const { defineProperty } = Object;
  const kept = [];
  const arrayIterator = Object.getPrototypeOf([][Symbol.iterator]());
  const holders = [
    Array.prototype, arrayIterator, Map.prototype, Set.prototype, String.prototype, RegExp.prototype, Function.prototype,
    Promise.prototype, Error.prototype, Number.prototype, EventTarget.prototype, WeakRef.prototype,
  ];
  for (const holder of holders) {
    for (const key of Reflect.ownKeys(holder)) {
      const descriptor = Object.getOwnPropertyDescriptor(holder, key);
      if (typeof descriptor.value === "function" && descriptor.configurable && key !== "constructor") kept.push([holder, key, descriptor]);
    }
  }
  const globals = ["Map", "Error", "JSON", "Reflect", "Array", "Date", "String", "Object"].map((key) => [globalThis, key, Object.getOwnPropertyDescriptor(globalThis, key)]);
  const values = [
    new Map([[1, 2]]), new Set([1]), new Date(0), Promise.resolve(1), new Number(1), new URL("a:b"), new Error("e"), 5n, Symbol("s"),
    new Uint8Array(2), class {}, new AggregateError([new Error("i")], "a"), new DOMException("m", "n"),
  ];
  const headers = new Headers({ a: "b" });
  let fired = false;
  setTimeout(() => (fired = true), 0);
  const { signal, abort } = makeAbort();
  const any = AbortSignal.any([signal]);
  let heard = false;
  any.onabort = () => (heard = true);
  const until = Date.now() + 5;
  while (Date.now() < until);
  const problems = [];
  const check = (ok, what) => {
    if (!ok) problems[problems.length] = what;
  };
  const broken = () => {
    throw new TypeError("tampered");
  };
  for (let i = 0; i < kept.length; i++) defineProperty(kept[i][0], kept[i][1], { value: broken, writable: true, configurable: true });
  for (let i = 0; i < globals.length; i++) defineProperty(globalThis, globals[i][1], { value: broken, writable: true, configurable: true });
  try {
    check(runTimers() >= -1, "runTimers");
    check(fired, "the timer ran");
    check(inspect({ a: [1, "x", /r/g] }) === '{ a: [ 1, "x", /r/g ] }', "inspect");
    for (let i = 0; i < values.length; i++) check(inspect(values[i]) !== "[value that cannot be shown]", `inspect value ${i}`);
    check(typeof inspect(headers) === "string", "inspect what cannot be shown any more");
    for (let i = 0; i < values.length; i++) check(formatError(values[i]) !== "an error that cannot be shown", `formatError value ${i}`);
    check(formatError(new TypeError("m", { cause: 1 })).length > 10, "formatError");
    abort("r");
    check(signal.aborted && any.aborted && heard, "makeAbort");
  } catch (error) {
    problems[problems.length] = error;
  } finally {
    for (let i = 0; i < kept.length; i++) defineProperty(kept[i][0], kept[i][1], kept[i][2]);
    for (let i = 0; i < globals.length; i++) defineProperty(globalThis, globals[i][1], globals[i][2]);
  }
  assert_equals(problems.map((problem) => String(problem?.stack ?? problem)).join("; "), "");
}, "prototypes and globals");
promise_test(async () => {
  Object.prototype.then = () => {
    throw new Error("then was looked for");
  };
  try {
    assert_equals(await new Response("x").text(), "x");
  } finally {
    delete Object.prototype.then;
  }
}, "Object.prototype.then");
promise_test(async () => {
  const root = globalThis;
  let receiver;
  setTimeout(function () {
    receiver = this;
  }, 0);
  root.self = null;
  root.globalThis = null;
  try {
    await new Promise((resolve) => setTimeout(resolve, 2));
    assert_equals(receiver, root);
  } finally {
    root.globalThis = root.self = root;
  }
}, "the names of the global object");
test(() => {
  const found = [];
  const look = () => {
    const before = Error.prepareStackTrace;
    Error.prepareStackTrace = (error, frames) => frames;
    for (const frame of new Error().stack) {
      if (/^(bulkhead|npm):/.test(frame.getFileName() ?? "")) found.push(frame.getFunction(), frame.getThis());
    }
    Error.prepareStackTrace = before;
  };
  const target = new EventTarget();
  target.addEventListener("x", look);
  target.dispatchEvent(new Event("x"));
  structuredClone({ get a() { look(); return 1; } });
  new URLSearchParams({ get a() { look(); return 1; } });
  assert_true(found.length > 4);
  assert_true(found.every((each) => each === undefined));
}, "stack frames give no function of the runtime away");
promise_test(async () => {
  const seen = [];
  Object.defineProperty(Array.prototype, "0", { set: (value) => void seen.push(value), configurable: true });
  try {
    await new Promise((resolve) => setTimeout(resolve, 1));
  } finally {
    delete Array.prototype[0];
  }
  assert_false(seen.some((value) => typeof value === "object" && value !== null && "context" in value));
}, "accessors on Array.prototype do not see the timers");
