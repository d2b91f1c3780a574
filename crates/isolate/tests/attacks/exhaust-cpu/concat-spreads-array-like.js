// attack: concat spreads an array-like that claims 2^28 elements and has none.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "concat spreads array like",
      input: { type: "object" },
      async run() {
        const wide = { length: 2 ** 28, [Symbol.isConcatSpreadable]: true };
        return { length: [].concat(wide).length };
      },
    },
  },
};
