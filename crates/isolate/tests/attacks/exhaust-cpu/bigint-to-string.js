// attack: Prints a BigInt of 2^24 bits in base ten.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "bigint to string",
      input: { type: "object" },
      async run() {
        return { digits: ((1n << (1n << 24n)) - 1n).toString().length };
      },
    },
  },
};
