// attack: Registers objects for finalisation and holds them weakly and strongly at once.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "finalization registry",
      input: { type: "object" },
      async run() {
        const registry = new FinalizationRegistry(() => {});
        const keep = [];
        for (let i = 0; ; i++) {
          const object = {};
          registry.register(object, i, object);
          keep.push(new WeakRef(object), object);
        }
      },
    },
  },
};
