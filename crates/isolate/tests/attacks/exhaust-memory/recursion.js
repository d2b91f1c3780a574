// attack: Recurses without end.
// expect: tool_error
// message: Maximum call stack size exceeded

export default {
  tools: {
    attack: {
      description: "recursion",
      input: { type: "object" },
      async run() {
        const dive = () => dive() + 1;
        return { depth: dive() };
      },
    },
  },
};
