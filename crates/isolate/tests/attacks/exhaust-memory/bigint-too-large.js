// attack: Asks for a BigInt beyond V8's maximum; refused as an error, not an abort.
// expect: tool_error
// message: Maximum BigInt size exceeded

export default {
  tools: {
    attack: {
      description: "bigint too large",
      input: { type: "object" },
      async run() {
        return { positive: 1n << (2n ** 30n) > 0n };
      },
    },
  },
};
