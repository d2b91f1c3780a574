// attack: A replacement function that answers each of ten thousand hits with 100 KB.
// expect: tool_error
// message: Invalid string length
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "replace callback amplifies",
      input: { type: "object" },
      async run() {
        const big = "b".repeat(100_000);
        return { length: "a".repeat(10_000).replace(/a/g, () => big).length };
      },
    },
  },
};
