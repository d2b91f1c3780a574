// attack: A regular expression of a hundred thousand nested groups, one stack frame of the parser each.
// expect: tool_error
// message: Invalid regular expression
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "regexp groups",
      input: { type: "object" },
      async run() {
        return { matched: new RegExp("(".repeat(100_000) + ")".repeat(100_000)).test("x") };
      },
    },
  },
};
