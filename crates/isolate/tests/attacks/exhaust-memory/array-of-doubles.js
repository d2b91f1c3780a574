// attack: Fills an array with doubles, each step an allocation twice the size of the last.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "array of doubles",
      input: { type: "object" },
      async run() {
        const doubles = [];
        for (let i = 0; ; i++) doubles.push(i + 0.5);
      },
    },
  },
};
