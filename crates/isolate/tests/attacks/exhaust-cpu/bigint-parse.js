// attack: Parses five million decimal digits into a BigInt.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "bigint parse",
      input: { type: "object" },
      async run() {
        return { positive: BigInt("9".repeat(5_000_000)) > 0n };
      },
    },
  },
};
