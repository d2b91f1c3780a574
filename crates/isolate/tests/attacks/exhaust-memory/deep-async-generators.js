// attack: Delegates through ten thousand nested async generators for each value.
// expect: tool_error
// message: Maximum call stack size exceeded
// limits: cpu_ms=2000

export default {
  tools: {
    attack: {
      description: "deep async generators",
      input: { type: "object" },
      async run() {
        async function* nest(n) {
          if (n > 0) yield* nest(n - 1);
          else yield 1;
        }
        let values = 0;
        for await (const value of nest(10_000)) values += value;
        return { values };
      },
    },
  },
};
