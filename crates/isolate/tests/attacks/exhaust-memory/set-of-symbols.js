// attack: Grows a Set of symbols, which are never equal and never shared.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "set of symbols",
      input: { type: "object" },
      async run() {
        const set = new Set();
        for (;;) set.add(Symbol("s"));
      },
    },
  },
};
