// attack: Keeps closures, each with a scope that holds its own array.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "closures",
      input: { type: "object" },
      async run() {
        const keep = [];
        const capture = (payload) => () => payload;
        for (let i = 0; ; i++) keep.push(capture(new Array(64).fill(i)));
      },
    },
  },
};
