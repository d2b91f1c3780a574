// attack: Throws an object whose toString never returns, to be run while the host words the error; nobody calls it.
// expect: tool_error

export default {
  tools: {
    attack: {
      description: "thrown to string spins",
      input: { type: "object" },
      async run() {
        throw {
          toString() {
            for (;;);
          },
        };
      },
    },
  },
};
