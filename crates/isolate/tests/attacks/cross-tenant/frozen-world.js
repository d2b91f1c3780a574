// attack: Freezes the globals and intrinsics so that the next call cannot work.
// expect: ok
// result: {"frozen":false}
// calls: 3
// limits: cpu_ms=1000

export default {
  tools: {
    attack: {
      description: "frozen world",
      input: { type: "object" },
      async run() {
        const frozen = Object.isFrozen(Array.prototype) || !Object.isExtensible(globalThis);
        for (const object of [Object, Array, Function, Promise, Map, JSON, Math, Reflect, Error]) {
          if (object.prototype) Object.freeze(object.prototype);
          Object.freeze(object);
        }
        Object.preventExtensions(globalThis);
        return { frozen };
      },
    },
  },
};
