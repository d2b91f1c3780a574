// attack: Takes buffers outside the heap, halves the size at each refusal, and fills the rest with heap objects.
// expect: memory_limit
// limits: memory_mb=64 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "array buffers then heap",
      input: { type: "object" },
      async run() {
        const keep = [];
        for (let size = 2 ** 26; size >= 4096; ) {
          try {
            keep.push(new Uint8Array(size).fill(1));
          } catch (error) {
            if (!(error instanceof RangeError)) throw error;
            size /= 2;
          }
        }
        for (;;) keep.push([keep.length]);
      },
    },
  },
};
