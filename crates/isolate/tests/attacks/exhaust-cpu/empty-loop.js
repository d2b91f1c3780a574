// attack: Spins in the smallest possible loop.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "empty loop",
      input: { type: "object" },
      async run() {
        for (;;);
      },
    },
  },
};
