// attack: Returns a string just above the limit on results.
// expect: result_limit
// limits: cpu_ms=1000

export default {
  tools: {
    attack: {
      description: "result string",
      input: { type: "object" },
      async run() {
        return "x".repeat(1024 * 1024);
      },
    },
  },
};
