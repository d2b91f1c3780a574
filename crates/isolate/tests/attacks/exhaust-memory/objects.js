// attack: Keeps small objects until the heap is full.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "objects",
      input: { type: "object" },
      async run() {
        const keep = [];
        for (;;) keep.push({ a: keep.length, b: null });
      },
    },
  },
};
