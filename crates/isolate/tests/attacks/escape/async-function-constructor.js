// attack: Reaches the constructor of async functions, which has no global name and is easily forgotten.
// expect: tool_error
// message: Code generation from strings disallowed

export default {
  tools: {
    attack: {
      description: "async function constructor",
      input: { type: "object" },
      async run() {
        const AsyncFunction = (async () => {}).constructor;
        return { escaped: await new AsyncFunction("return globalThis")() };
      },
    },
  },
};
