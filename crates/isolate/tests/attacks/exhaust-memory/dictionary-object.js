// attack: Grows one object with a million names until its hash table cannot be allocated.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "dictionary object",
      input: { type: "object" },
      async run() {
        const table = {};
        for (let i = 0; ; i++) table[`k${i}`] = i;
      },
    },
  },
};
