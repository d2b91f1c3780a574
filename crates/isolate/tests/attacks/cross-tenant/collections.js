// attack: Leaves values in collections of the module: a Map, a WeakMap, a WeakRef, a closure and a generator.
// expect: ok
// result: {"left":0}
// calls: 3

const map = new Map();
const key = {};
const weak = new WeakMap();
let reference;
const box = ((hidden = 0) => ({ read: () => hidden, write: (value) => (hidden = value) }))();
const generator = (function* () {
  for (let i = 0; ; i++) yield i;
})();

export default {
  tools: {
    attack: {
      description: "collections",
      input: { type: "object" },
      async run() {
        const left = map.size + (weak.get(key) ?? 0) + (reference?.deref()?.value ?? 0) + box.read() + generator.next().value;
        map.set("a", 1);
        weak.set(key, 1);
        reference = new WeakRef({ value: 1 });
        box.write(1);
        return { left };
      },
    },
  },
};
