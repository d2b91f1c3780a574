// attack: Throws an error with a message of a hundred megabytes.
// expect: tool_error | memory_limit
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "error message huge",
      input: { type: "object" },
      async run() {
        // Cutting it may need a flat copy, which fits or does not.
        throw new Error("x".repeat(100_000_000));
      },
    },
  },
};
