// attack: Throws undefined.
// expect: tool_error
// message: undefined

export default {
  tools: {
    attack: {
      description: "throws undefined",
      input: { type: "object" },
      async run() {
        throw undefined;
      },
    },
  },
};
