// Values that want to throw, to run code, or to keep the runtime busy while it shows them.
const trap = () => {
  throw new Error("a trap was run");
};
const traps = new Proxy({}, { get: () => trap });
const evil = {
  proxy: new Proxy({}, traps),
  "proxy of a function": new Proxy(function () {}, traps),
  "revoked proxy": (() => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  })(),
  "proxy as prototype": Object.create(new Proxy({}, traps)),
  getters: Object.defineProperties({}, { a: { get: trap, enumerable: true }, constructor: { get: trap }, [Symbol.toStringTag]: { get: trap } }),
  "toString that throws": { toString: trap, valueOf: trap, toJSON: trap, [Symbol.toPrimitive]: trap },
  "error with hostile stack": Object.defineProperty(new Error("m"), "stack", { get: trap }),
  "error with hostile everything": Object.defineProperties(new Error("m"), { stack: { get: trap }, message: { get: trap }, name: { get: trap }, cause: { get: trap }, errors: { get: trap } }),
  "error with objects for texts": Object.assign(new Error(), { name: {}, message: [], stack: 5 }),
  "error whose cause is itself": (() => {
    const error = new Error("m");
    error.cause = error;
    return error;
  })(),
  "proxy of an error": new Proxy(new Error("m"), traps),
  "class with hostile name": new (class {
    static get name() {
      return trap();
    }
  })(),
  "regular expression with hostile flags": Object.defineProperty(/a/, "flags", { get: trap }),
  "date that is none": new Date(NaN),
  "typed array that claims to be huge": Object.defineProperty(new Uint8Array(1), "length", { get: trap }),
  "map with hostile size": Object.defineProperty(new Map([[1, 2]]), "size", { get: trap }),
  "array with hostile iterator": Object.assign([1], { [Symbol.iterator]: trap }),
  "very large integer": 7n ** 200000n,
  null: null,
  undefined: undefined,
  symbol: Symbol("s"),
};
const large = {
  "long string": "x".repeat(5_000_000),
  "long array": new Array(1_000_000).fill("y".repeat(100)),
  "sparse array": (() => {
    const array = [];
    array[4e9] = 1;
    return array;
  })(),
  "many properties": Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`key${i}`, i])),
  "deep nesting": (() => {
    let value = 0;
    for (let i = 0; i < 100_000; i++) value = { value };
    return value;
  })(),
  "deep causes": (() => {
    let error = new Error("last");
    for (let i = 0; i < 10_000; i++) error = new Error("e", { cause: error });
    return error;
  })(),
  "wide and deep": (() => {
    const make = (depth) => (depth === 0 ? "leaf" : Object.fromEntries(Array.from({ length: 90 }, (_, i) => [`k${i}`, i < 3 ? make(depth - 1) : "v".repeat(1000)])));
    return make(5);
  })(),
  "long message": new Error("m".repeat(5_000_000)),
  "shared subtrees": (() => {
    let value = "leaf";
    for (let i = 0; i < 60; i++) value = [value, value];
    return value;
  })(),
  "large map": new Map(Array.from({ length: 100_000 }, (_, i) => [i, { i }])),
  "long symbol": Symbol("s".repeat(1_000_000)),
};
for (const [name, value] of [...Object.entries(evil), ...Object.entries(large)]) {
  test(() => {
    const start = Date.now();
    const texts = [bulkhead.inspect(value), bulkhead.formatError(value)];
    const before = bulkhead.logs.length;
    console.log(value, value);
    console.log("%s %o", value, value);
    console.table(value);
    texts.push(...bulkhead.logs.slice(before).map(({ text }) => text));
    for (const text of texts) {
      assert_equals(typeof text, "string");
      assert_true(text.length <= 70_000, `${text.length} characters`);
      assert_false(text.includes("a trap was run"), "code of the value was run");
    }
    assert_true(Date.now() - start < 3000, `took ${Date.now() - start} ms`);
  }, name);
}
