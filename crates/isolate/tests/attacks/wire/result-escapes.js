// attack: Returns control characters, of which JSON makes six bytes each.
// expect: result_limit
// limits: cpu_ms=1000

export default {
  tools: {
    attack: {
      description: "result escapes",
      input: { type: "object" },
      async run() {
        return { text: "\u0001".repeat(200_000) };
      },
    },
  },
};
