// attack: Shifts into the largest BigInt V8 allows, 128 MB in one allocation, and keeps two.
// expect: memory_limit
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "bigint largest",
      input: { type: "object" },
      async run() {
        const keep = [1n << (2n ** 30n - 1n)];
        keep.push(keep[0] >> 1n);
        return { kept: keep.length };
      },
    },
  },
};
