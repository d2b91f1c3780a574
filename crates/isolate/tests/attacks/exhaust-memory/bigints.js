// attack: Keeps BigInts of a megabyte each.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "bigints",
      input: { type: "object" },
      async run() {
        const keep = [];
        for (let i = 0n; ; i++) keep.push((1n << 8_000_000n) + i);
      },
    },
  },
};
