// attack: Throws a symbol, which cannot be turned into text the ordinary way.
// expect: tool_error

export default {
  tools: {
    attack: {
      description: "throws symbol",
      input: { type: "object" },
      async run() {
        throw Symbol("thrown");
      },
    },
  },
};
