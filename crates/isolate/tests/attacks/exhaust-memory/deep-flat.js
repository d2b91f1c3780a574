// attack: Flattens a hundred thousand nested arrays, one native frame each.
// expect: tool_error
// message: Maximum call stack size exceeded
// limits: cpu_ms=2000

export default {
  tools: {
    attack: {
      description: "deep flat",
      input: { type: "object" },
      async run() {
        let nested = [];
        for (let i = 0; i < 100_000; i++) nested = [nested];
        return { length: nested.flat(Infinity).length };
      },
    },
  },
};
