// attack: Writes one megabyte five hundred times with JSON.stringify, through buffers outside the heap.
// expect: memory_limit
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "json stringify amplifies",
      input: { type: "object" },
      async run() {
        return { length: JSON.stringify(new Array(500).fill("x".repeat(1_000_000))).length };
      },
    },
  },
};
