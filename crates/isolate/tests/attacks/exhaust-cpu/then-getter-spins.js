// attack: The result's own `then` is a getter that never returns; awaiting the result reads it.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "then getter spins",
      input: { type: "object" },
      async run() {
        return {
          get then() {
            for (;;);
          },
        };
      },
    },
  },
};
