// attack: Encodes text whose UTF-8 form is half as large again, into memory outside the heap.
// expect: memory_limit
// limits: memory_mb=64 cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "text encoder output",
      input: { type: "object" },
      async run() {
        const text = "\u4e2d".repeat(2 ** 24);
        const keep = [];
        for (;;) keep.push(new TextEncoder().encode(text));
      },
    },
  },
};
