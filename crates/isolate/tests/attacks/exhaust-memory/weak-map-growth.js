// attack: Grows a WeakMap whose keys keep each other alive, so that nothing is ever collected.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "weak map growth",
      input: { type: "object" },
      async run() {
        const weak = new WeakMap();
        let key = {};
        const first = key;
        for (;;) {
          const next = { first };
          weak.set(key, next);
          key = next;
        }
      },
    },
  },
};
