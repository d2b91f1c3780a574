// attack: String.raw is given a template of 2^53-1 pieces.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "string raw endless",
      input: { type: "object" },
      async run() {
        return { length: String.raw({ raw: { length: 2 ** 53 - 1 } }).length };
      },
    },
  },
};
