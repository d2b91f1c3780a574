// attack: Compiles and runs an expression of twenty thousand alternatives, each with its own loop.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "regex many alternatives",
      input: { type: "object" },
      async run() {
        const source = Array.from({ length: 20_000 }, (_, i) => `a${i}.*b`).join("|");
        return { matched: new RegExp(source).test("aaaa".repeat(100_000)) };
      },
    },
  },
};
