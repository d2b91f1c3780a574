// attack: Recurses with an argument list that doubles, so that each frame is larger than the last.
// expect: tool_error
// message: Maximum call stack size exceeded
// limits: cpu_ms=1000

export default {
  tools: {
    attack: {
      description: "recursion wide frames",
      input: { type: "object" },
      async run() {
        const widen = (...args) => widen(...args, ...args, 1);
        return { width: widen(1, 2, 3) };
      },
    },
  },
};
