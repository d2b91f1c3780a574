// attack: Replaces or deletes what a runtime written in JavaScript would rely on; the host took its own copies before.
// expect: ok
// result: {"alive":true}
// calls: 2

const broken = () => {
  throw new Error("the host called a replaced builtin");
};
const { defineProperty } = Object;
const targets = [
  [Promise.prototype, "then"],
  [Promise, "resolve"],
  [Array.prototype, Symbol.iterator],
  [Array.prototype, "push"],
  [Map.prototype, "get"],
  [Map.prototype, "set"],
  [Map.prototype, "delete"],
  [JSON, "stringify"],
  [JSON, "parse"],
  [String.prototype, "replace"],
  [RegExp.prototype, "exec"],
  [RegExp.prototype, "test"],
  [Function.prototype, "call"],
  [Function.prototype, "apply"],
  [Function.prototype, "bind"],
  [Reflect, "apply"],
  [Object, "keys"],
  [Object, "freeze"],
  [globalThis, "TextEncoder"],
  [globalThis, "AbortController"],
];
for (let i = 0; i < targets.length; i++) {
  defineProperty(targets[i][0], targets[i][1], { value: broken, configurable: true, writable: true });
}

export default { tools: { attack: { description: "d", run: () => ({ alive: true }) } } };
