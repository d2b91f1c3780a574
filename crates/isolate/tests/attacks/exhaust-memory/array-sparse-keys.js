// attack: Fills a sparse array at random far indices, so that it is a hash table of descriptors.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "array sparse keys",
      input: { type: "object" },
      async run() {
        const sparse = [];
        for (let i = 0; ; i++) sparse[(i * 2654435761) % 4294967291] = i;
      },
    },
  },
};
