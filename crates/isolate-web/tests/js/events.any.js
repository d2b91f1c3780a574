test(() => {
  const target = new EventTarget();
  const seen = [];
  target.addEventListener("x", (event) => seen.push(event.type), { once: true });
  target.addEventListener("x", { handleEvent: (event) => event.preventDefault() });
  assert_false(target.dispatchEvent(new Event("x", { cancelable: true })));
  target.dispatchEvent(new Event("x"));
  assert_array_equals(seen, ["x"]);
  assert_equals(new CustomEvent("c", { detail: 5 }).detail, 5);
  assert_equals(new ErrorEvent("e", { message: "m" }).message, "m");
  assert_equals(new MessageEvent("m", { data: 1 }).data, 1);
}, "EventTarget and events");
test(() => {
  const controller = new AbortController();
  let reason;
  controller.signal.onabort = () => (reason = controller.signal.reason);
  const any = AbortSignal.any([controller.signal]);
  controller.abort("stop");
  assert_equals(reason, "stop");
  assert_true(any.aborted);
  assert_equals(AbortSignal.abort().reason.name, "AbortError");
  const made = bulkhead.makeAbort();
  made.abort("host");
  assert_equals(made.signal.reason, "host");
}, "AbortController, AbortSignal.any, the embedder's abort");
promise_test(async () => {
  const signal = AbortSignal.timeout(5);
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  assert_equals(signal.reason.name, "TimeoutError");
}, "AbortSignal.timeout");
test(() => {
  let event;
  globalThis.onerror = (caught) => {
    event = caught;
    return false;
  };
  reportError(new RangeError("seen"));
  globalThis.onerror = null;
  assert_equals(event.error.message, "seen");
  assert_equals(event.message, "Uncaught RangeError: seen");
  const before = bulkhead.logs.length;
  reportError(new Error("logged"));
  assert_true(bulkhead.logs[before].text.startsWith("Uncaught Error: logged"));
}, "reportError: a listener first, then the log");
test(() => {
  const seen = [];
  const listener = (event) => {
    seen.push(event.reason);
    event.preventDefault();
  };
  addEventListener("unhandledrejection", listener);
  const before = bulkhead.logs.length;
  bulkhead.reportRejection(Promise.resolve(), "why");
  removeEventListener("unhandledrejection", listener);
  assert_array_equals(seen, ["why"]);
  assert_equals(bulkhead.logs.length, before);
  bulkhead.reportRejection(Promise.resolve(), "why");
  assert_equals(bulkhead.logs[before].text, 'Uncaught (in promise) "why"');
}, "unhandled rejections: a listener first, then the log");
promise_test(async () => {
  const { port1, port2 } = new MessageChannel();
  const received = new Promise((resolve) => (port2.onmessage = (event) => resolve(event.data)));
  port1.postMessage({ deep: [1n] });
  assert_equals((await received).deep[0], 1n);
}, "MessageChannel");
promise_test(async () => {
  const { signal } = new AbortController();
  let kept = 0;
  const controller = new AbortController();
  const references = [];
  for (let i = 0; i < 100; i++) references.push(new WeakRef(AbortSignal.any([signal])));
  AbortSignal.any([controller.signal]).addEventListener("abort", () => kept++);
  await new Promise((resolve) => setTimeout(resolve, 1));
  gc();
  await new Promise((resolve) => setTimeout(resolve, 1));
  assert_true(references.filter((reference) => reference.deref() !== undefined).length < 10, "nobody waits for these");
  controller.abort();
  assert_equals(kept, 1, "somebody listened to this one");
}, "dependent signals do not pile up");
