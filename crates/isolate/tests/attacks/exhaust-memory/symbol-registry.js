// attack: Registers symbols, which live outside the context in a table that is never emptied.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "symbol registry",
      input: { type: "object" },
      async run() {
        for (let i = 0; ; i++) Symbol.for(`registered symbol ${i}`);
      },
    },
  },
};
