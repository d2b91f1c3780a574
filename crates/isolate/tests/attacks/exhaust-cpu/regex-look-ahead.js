// attack: A catastrophic expression hidden inside a look-ahead, where the linear engine does not go.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "regex look ahead",
      input: { type: "object" },
      async run() {
        return { matched: /^(?=(a+)+$)a/.test("a".repeat(60) + "b") };
      },
    },
  },
};
