// Tenant code shares the realm. What it does to the language must not reach the functions that the embedder relies on.
promise_test(async () => {
  const { runTimers, inspect, formatError, makeAbort, logs } = bulkhead;
  const { defineProperty, getOwnPropertyNames } = Object;
  const kept = [];
  const holders = [Array.prototype, Map.prototype, String.prototype, RegExp.prototype, Function.prototype, Promise.prototype, Error.prototype, Number.prototype];
  for (const holder of holders) {
    for (const key of getOwnPropertyNames(holder)) {
      const descriptor = Object.getOwnPropertyDescriptor(holder, key);
      if (typeof descriptor.value === "function" && descriptor.configurable && key !== "constructor") kept.push([holder, key, descriptor]);
    }
  }
  const globals = ["Map", "Error", "JSON", "Reflect", "Array", "Date", "String", "Object"].map((key) => [globalThis, key, Object.getOwnPropertyDescriptor(globalThis, key)]);
  let fired = false;
  setTimeout(() => (fired = true), 0);
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
    check(formatError(new TypeError("m", { cause: 1 })).length > 10, "formatError");
    const { signal, abort } = makeAbort();
    abort("r");
    check(signal.aborted, "makeAbort");
    const before = logs.length;
    check(logs.length === before, "logs");
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
