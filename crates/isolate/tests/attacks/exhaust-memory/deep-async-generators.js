// attack: Delegates through ten thousand nested async generators for each value.
// expect: ok | cpu_limit | tool_error
// result: {"values":1}
// limits: cpu_ms=2000

export default {
  tools: {
    attack: {
      description: "deep async generators",
      input: { type: "object" },
      async run() {
        // The delegation may run out of stack, or of CPU; whichever comes first depends on V8's frames.
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
