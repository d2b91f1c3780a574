// attack: Splits a string into tens of millions of characters.
// expect: memory_limit
// limits: cpu_ms=5000 memory_mb=64

export default {
  tools: {
    attack: {
      description: "string split",
      input: { type: "object" },
      async run() {
        return { parts: "ab".repeat(2 ** 24).split("").length };
      },
    },
  },
};
