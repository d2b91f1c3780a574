// attack: Climbs from a literal to the Function constructor to run text as code outside the module.
// expect: tool_error
// message: Code generation from strings disallowed

export default {
  tools: {
    attack: {
      description: "function constructor",
      input: { type: "object" },
      async run() {
        return { escaped: {}.constructor.constructor("return process.env")() };
      },
    },
  },
};
