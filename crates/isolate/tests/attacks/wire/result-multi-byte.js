// attack: Returns text that is below the limit in characters and above it in bytes.
// expect: result_limit
// limits: cpu_ms=1000

export default {
  tools: {
    attack: {
      description: "result multi byte",
      input: { type: "object" },
      async run() {
        return { text: "\u20ac".repeat(500_000) };
      },
    },
  },
};
