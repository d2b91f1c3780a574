// attack: Spreads three hundred thousand arguments onto the stack.
// expect: tool_error
// message: Maximum call stack size exceeded
// limits: cpu_ms=1000

export default {
  tools: {
    attack: {
      description: "spread arguments",
      input: { type: "object" },
      async run() {
        return { max: Math.max(...new Array(300_000).fill(1)) };
      },
    },
  },
};
