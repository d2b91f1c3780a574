// attack: Keeps small typed arrays, whose buffers are many tiny allocations of the C library.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "typed arrays small",
      input: { type: "object" },
      async run() {
        const keep = [];
        for (;;) {
          try {
            keep.push(new Uint8Array(128));
          } catch {
            keep.push([0], [1], [2]);
          }
        }
      },
    },
  },
};
