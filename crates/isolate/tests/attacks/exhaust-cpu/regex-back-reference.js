// attack: A catastrophic expression with a back reference, which no linear engine can take over.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "regex back reference",
      input: { type: "object" },
      async run() {
        return { matched: /^(a+)+\1$/.test("a".repeat(60) + "b") };
      },
    },
  },
};
