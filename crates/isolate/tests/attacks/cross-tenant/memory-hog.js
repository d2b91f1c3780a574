// attack: Uses most of the memory of a call, several times over: the memory is each call's own.
// expect: ok
// result: {"bytes":67108864}
// calls: 4
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "memory hog",
      input: { type: "object" },
      async run() {
        const keep = Array.from({ length: 64 }, () => new Uint8Array(1 << 20).fill(1));
        return { bytes: keep.length << 20 };
      },
    },
  },
};
