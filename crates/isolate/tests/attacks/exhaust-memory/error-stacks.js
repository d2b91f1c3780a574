// attack: Keeps errors made at the bottom of a deep stack, each with its captured frames.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "error stacks",
      input: { type: "object" },
      async run() {
        Error.stackTraceLimit = 10_000;
        const keep = [];
        const deep = (n) => (n === 0 ? keep.push(new Error("kept")) : deep(n - 1));
        for (;;) deep(500);
      },
    },
  },
};
