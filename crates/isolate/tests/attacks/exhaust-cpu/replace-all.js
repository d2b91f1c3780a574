// attack: One replaceAll with two million hits, native from start to end.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "replace all",
      input: { type: "object" },
      async run() {
        return { length: "ab".repeat(2_000_000).replaceAll("a", "c").length };
      },
    },
  },
};
