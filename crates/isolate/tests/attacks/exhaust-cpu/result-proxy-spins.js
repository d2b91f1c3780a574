// attack: The result is a proxy whose ownKeys trap never returns.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "result proxy spins",
      input: { type: "object" },
      async run() {
        return new Proxy(
          {},
          {
            ownKeys() {
              for (;;);
            },
          },
        );
      },
    },
  },
};
