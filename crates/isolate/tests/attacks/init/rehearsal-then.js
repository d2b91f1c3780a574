// attack: Object.prototype.then spins when it is read of an object that the server did not make.
// expect: ok
// result: 7
// calls: 20
// limits: init_time_ms=3000

Object.defineProperty(Object.prototype, "then", {
  configurable: true,
  get() {
    if (Object.hasOwn(this, "double") || Object.hasOwn(this, "answer")) for (;;);
    return undefined;
  },
});

export default { tools: { attack: { run: async () => 7 } } };
