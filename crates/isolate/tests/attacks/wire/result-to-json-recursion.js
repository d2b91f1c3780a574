// attack: toJSON that returns a new object with toJSON, level after level, until the stack is full.
// expect: tool_error
// message: Maximum call stack size exceeded
// limits: cpu_ms=1000

export default {
  tools: {
    attack: {
      description: "result to json recursion",
      input: { type: "object" },
      async run() {
        const endless = () => ({ toJSON: () => [endless()] });
        return endless();
      },
    },
  },
};
