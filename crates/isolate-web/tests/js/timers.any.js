promise_test(async () => {
  const seen = [];
  await new Promise((resolve) => {
    setTimeout(() => {
      seen.push("a");
      Promise.resolve().then(() => seen.push("microtask of a"));
    }, 2);
    setTimeout((x) => seen.push(x), 2, "b");
    const cleared = setTimeout(() => seen.push("never"), 1);
    clearTimeout(cleared);
    queueMicrotask(() => seen.push("first"));
    setTimeout(resolve, 10);
  });
  assert_array_equals(seen, ["first", "a", "microtask of a", "b"]);
}, "order, arguments, clearing, microtasks in between");
promise_test(async () => {
  let times = 0;
  await new Promise((resolve) => {
    const id = setInterval(() => {
      if (++times === 3) {
        clearInterval(id);
        resolve();
      }
    }, 1);
  });
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert_equals(times, 3);
}, "setInterval");
promise_test(async () => {
  const before = bulkhead.logs.length;
  setTimeout(() => {
    throw new Error("in a timer");
  }, 0);
  let after = false;
  setTimeout(() => (after = true), 0);
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert_true(after);
  assert_true(bulkhead.logs[before].text.includes("in a timer"));
}, "an error in a timer is logged and harms no other");
promise_test(async () => {
  bulkhead.setContext("call 1");
  const seen = new Promise((resolve) => setTimeout(() => resolve(bulkhead.context()), 1));
  bulkhead.setContext("call 2");
  assert_equals(await seen, "call 1");
  assert_equals(bulkhead.context(), "call 2");
  bulkhead.setContext(undefined);
}, "a timer runs in the context of the call that set it");
test(() => assert_throws_js(TypeError, () => setTimeout("code")), "strings are not run");
promise_test(async () => {
  const references = [];
  for (let i = 0; i < 1000; i++) {
    const callback = () => references;
    references.push(new WeakRef(callback));
    clearTimeout(setTimeout(callback, 1e8));
  }
  let fired = 0;
  for (let i = 0; i < 50; i++) setTimeout(() => fired++, i % 7);
  await new Promise((resolve) => setTimeout(resolve, 20));
  gc();
  await new Promise((resolve) => setTimeout(resolve, 1));
  assert_true(references.filter((reference) => reference.deref() !== undefined).length < 10);
  assert_equals(fired, 50);
}, "cleared timers are forgotten");
