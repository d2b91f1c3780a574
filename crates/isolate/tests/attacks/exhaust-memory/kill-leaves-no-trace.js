// attack: Runs out of memory in call after call, to see whether the host or the next call pays for it.
// expect: memory_limit
// calls: 3
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "kill leaves no trace",
      input: { type: "object" },
      async run() {
        const keep = [];
        for (;;) keep.push(new Array(1000).fill(keep.length));
      },
    },
  },
};
