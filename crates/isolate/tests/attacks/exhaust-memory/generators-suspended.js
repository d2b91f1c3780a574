// attack: Keeps generators suspended in mid-air, each with its own frame on the heap.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "generators suspended",
      input: { type: "object" },
      async run() {
        function* wait(a, b, c, d, e, f, g, h) {
          yield [a, b, c, d, e, f, g, h];
          yield h;
        }
        const keep = [];
        for (let i = 0; ; i++) {
          const generator = wait(i, i, i, i, i, i, i, i);
          generator.next();
          keep.push(generator);
        }
      },
    },
  },
};
