// attack: Runs V8 out of memory in the middle of a collection, again and again.
// expect: memory_limit
// calls: 3
// limits: memory_mb=32 cpu_ms=20000

const registry = new FinalizationRegistry(() => {});

export default {
  tools: {
    attack: {
      description: "crashed neighbours",
      input: { type: "object" },
      async run() {
        const keep = [];
        for (let i = 0; ; i++) {
          const link = { previous: keep[keep.length - 1], weak: new WeakRef(keep) };
          registry.register(link, i);
          keep.push(link);
        }
      },
    },
  },
};
