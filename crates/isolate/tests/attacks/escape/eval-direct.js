// attack: Calls eval, which does not exist.
// expect: tool_error
// message: eval is not defined

export default {
  tools: {
    attack: {
      description: "eval direct",
      input: { type: "object" },
      async run() {
        return { escaped: eval("globalThis") };
      },
    },
  },
};
