const logged = (f) => {
  const before = bulkhead.logs.length;
  f();
  return bulkhead.logs.slice(before).map(({ level, text }) => `${level}: ${text}`);
};
test(() => {
  assert_array_equals(logged(() => console.log("a %s %d %o %%", "b", "7", { c: 1 }, "d")), ["info: a b 7 { c: 1 } % d"]);
  assert_array_equals(logged(() => console.warn(new Map([["k", [1, undefined, null]]]))), ['warn: Map(1) { "k" => [ 1, undefined, null ] }']);
  assert_array_equals(logged(() => console.error("x")), ["error: x"]);
  assert_array_equals(logged(() => console.debug(-0, 1n, Symbol("s"), () => {})), ["debug: -0 1n Symbol(s) [Function: (anonymous)]"]);
  assert_array_equals(logged(() => console.assert(false, "no")), ["error: Assertion failed: no"]);
  assert_array_equals(logged(() => console.assert(true)), []);
}, "levels and formats");
test(() => {
  const lines = logged(() => {
    console.group("g");
    console.info("in");
    console.groupEnd();
    console.count();
    console.count();
    console.countReset();
    console.count();
    console.dir([1]);
    console.time("t");
    console.timeEnd("t");
    console.trace("here");
    console.clear();
  });
  assert_array_equals(lines.slice(0, 6), ["info: g", "info:   in", "info: default: 1", "info: default: 2", "info: default: 1", "info: [ 1 ]"]);
  assert_true(/^info: t: \d+ ms$/.test(lines[6]), lines[6]);
  assert_true(/^debug: Trace: here\n {4}at /.test(lines[7]), lines[7]);
}, "groups, counters, timers, traces");
test(() => {
  const [text] = logged(() => console.table([{ a: 1, b: "x" }, { a: 2 }]));
  assert_true(text.includes("a") && text.includes('"x"') && text.split("\n").length === 3, text);
}, "table");
test(() => {
  class Point {
    x = 1;
    get y() {
      throw new Error("getters are not run");
    }
  }
  assert_equals(bulkhead.inspect(new Point()), "Point { x: 1 }");
  assert_equals(bulkhead.inspect({ get a() { throw 1; } }), "{ a: [Getter] }");
  assert_equals(bulkhead.inspect([1, , 3]), "[ 1, <1 empty item>, 3 ]");
  assert_equals(bulkhead.inspect(new URL("a:b")), 'URL { href: "a:b" }');
  assert_equals(bulkhead.inspect(Promise.resolve(1)), "Promise { 1 }");
  assert_equals(bulkhead.inspect(/a/gi), "/a/gi");
  assert_equals(bulkhead.inspect(new Uint8Array(2)), "Uint8Array(2) [ 0, 0 ]");
  assert_equals(bulkhead.inspect(class A {}), "[class A]");
  const circle = {};
  circle.self = circle;
  assert_equals(bulkhead.inspect(circle), "{ self: [Circular] }");
}, "inspect");
test(() => {
  const error = new TypeError("outer", { cause: new Error("inner") });
  const text = bulkhead.formatError(error);
  assert_true(text.startsWith("TypeError: outer\n    at "), text);
  assert_true(text.includes("caused by: Error: inner"), text);
  assert_equals(bulkhead.formatError("text"), '"text"');
  assert_true(bulkhead.formatError(new DOMException("m", "AbortError")).startsWith("AbortError: m"));
  assert_true(bulkhead.formatError(new AggregateError([new Error("e1")], "all")).includes("error 1 of 1: Error: e1"));
}, "formatError");
