// attack: Throws an error with a message of a hundred megabytes.
// expect: memory_limit
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "error message huge",
      input: { type: "object" },
      async run() {
        // Cutting it needs a flat copy, and then another.
        throw new Error("x".repeat(100_000_000));
      },
    },
  },
};
