// attack: Keeps buffers without touching them, hoping that only resident memory is counted.
// expect: memory_limit
// limits: memory_mb=64 cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "array buffers untouched",
      input: { type: "object" },
      async run() {
        const keep = [];
        let bytes = 0;
        try {
          for (let i = 0; i < 1024; i++) {
            keep.push(new ArrayBuffer(2 ** 20));
            bytes += 2 ** 20;
          }
        } catch (error) {
          if (!(error instanceof RangeError)) throw error;
        }
        return { bounded: bytes <= 80 * 2 ** 20 };
      },
    },
  },
};
