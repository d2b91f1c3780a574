// attack: Returns a function and a symbol, which JSON leaves out altogether.
// expect: tool_error
// message: not JSON

export default {
  tools: {
    attack: {
      description: "result function",
      input: { type: "object" },
      async run() {
        return () => "called by nobody";
      },
    },
  },
};
