// attack: A replacement pattern that inserts everything before and after each hit: 65,536 hits make 4 GB.
// expect: tool_error
// message: Invalid string length
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "replace amplifies",
      input: { type: "object" },
      async run() {
        return { length: "a".repeat(2 ** 16).replace(/a/g, "$`$'").length };
      },
    },
  },
};
