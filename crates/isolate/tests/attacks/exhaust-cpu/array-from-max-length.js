// attack: Array.from builds four billion elements one definition at a time.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "array from max length",
      input: { type: "object" },
      async run() {
        return { length: Array.from({ length: 2 ** 32 - 1 }).length };
      },
    },
  },
};
