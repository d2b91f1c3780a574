// attack: One BigInt power of nearly two hundred million bits.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "bigint power",
      input: { type: "object" },
      async run() {
        return { positive: 7n ** (1n << 26n) > 0n };
      },
    },
  },
};
