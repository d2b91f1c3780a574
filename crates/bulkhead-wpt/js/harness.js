// A small stand-in for testharness.js, for checkouts without one: our own tests.
{
  const callbacks = { result: [], completion: [] };
  const tests = [];
  let queue = Promise.resolve();
  const name = () => location.pathname.split("/").pop();
  const show = (value) => bulkhead.inspect(value);

  function report(test, error) {
    test.status = error === undefined ? 0 : 1;
    test.message = error === undefined ? null : bulkhead.formatError(error.reason);
    for (const callback of callbacks.result) callback(test);
  }
  function record(title) {
    const cleanups = [];
    const test = {
      name: title ?? name(),
      add_cleanup: (f) => cleanups.push(f),
      step_func: (f) => f,
      step_timeout: (f, ms) => setTimeout(f, ms),
      unreached_func: (text) => () => assert_unreached(text),
      cleanup: () => cleanups.forEach((f) => f()),
    };
    tests.push(test);
    return test;
  }
  const fail = (message, detail) => {
    throw new Error(`${detail}${message ? ` (${message})` : ""}`);
  };

  Object.assign(globalThis, {
    add_result_callback: (f) => callbacks.result.push(f),
    add_completion_callback: (f) => callbacks.completion.push(f),
    setup() {},
    test(f, title) {
      const test = record(title);
      let error;
      try {
        f.call(test, test);
      } catch (reason) {
        error = { reason };
      }
      test.cleanup();
      report(test, error);
    },
    promise_test(f, title) {
      const test = record(title);
      queue = queue.then(async () => {
        let error;
        try {
          await f.call(test, test);
        } catch (reason) {
          error = { reason };
        }
        test.cleanup();
        report(test, error);
      });
    },
    done() {
      queue.then(() => callbacks.completion.forEach((f) => f(tests, { status: 0 })));
    },
    assert_true: (value, message) => value === true || fail(message, `expected true, got ${show(value)}`),
    assert_false: (value, message) => value === false || fail(message, `expected false, got ${show(value)}`),
    assert_equals: (got, want, message) => Object.is(got, want) || fail(message, `expected ${show(want)}, got ${show(got)}`),
    assert_not_equals: (got, other, message) => !Object.is(got, other) || fail(message, `expected anything but ${show(got)}`),
    assert_unreached: (message) => fail(message, "reached what must not be reached"),
    assert_array_equals(got, want, message) {
      if (got.length !== want.length) fail(message, `expected ${show(want)}, got ${show(got)}`);
      for (let i = 0; i < want.length; i++) if (!Object.is(got[i], want[i])) fail(message, `expected ${show(want)}, got ${show(got)}`);
    },
    assert_throws_js(constructor, f, message) {
      try {
        f();
      } catch (error) {
        return error.constructor === constructor || fail(message, `expected ${constructor.name}, got ${show(error)}`);
      }
      fail(message, `expected ${constructor.name}, nothing was thrown`);
    },
    assert_throws_dom(kind, f, message) {
      try {
        f();
      } catch (error) {
        return (error instanceof DOMException && error.name === kind) || fail(message, `expected ${kind}, got ${show(error)}`);
      }
      fail(message, `expected ${kind}, nothing was thrown`);
    },
    async promise_rejects_js(test, constructor, promise, message) {
      try {
        await promise;
      } catch (error) {
        return error.constructor === constructor || fail(message, `expected ${constructor.name}, got ${show(error)}`);
      }
      fail(message, `expected ${constructor.name}, it was fulfilled`);
    },
    async promise_rejects_dom(test, kind, promise, message) {
      try {
        await promise;
      } catch (error) {
        return (error instanceof DOMException && error.name === kind) || fail(message, `expected ${kind}, got ${show(error)}`);
      }
      fail(message, `expected ${kind}, it was fulfilled`);
    },
  });
}
