// attack: One array constructor that reserves 256 MB of holes in a single step.
// expect: memory_limit
// limits: cpu_ms=5000 memory_mb=64

export default {
  tools: {
    attack: {
      description: "array preallocated",
      input: { type: "object" },
      async run() {
        return { length: new Array(2 ** 25 - 16).length };
      },
    },
  },
};
