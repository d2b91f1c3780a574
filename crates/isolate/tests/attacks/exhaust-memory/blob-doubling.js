// attack: Makes a blob of two copies of itself until it claims a petabyte, then reads it.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=10000

export default {
  tools: {
    attack: {
      description: "blob doubling",
      input: { type: "object" },
      async run() {
        let blob = new Blob(["x".repeat(1 << 20)]);
        for (let i = 0; i < 30; i++) blob = new Blob([blob, blob]);
        return { length: (await blob.text()).length };
      },
    },
  },
};
