// attack: The tool is an async generator: calling it gives an object that never starts.
// expect: ok
// result: {}

export default {
  tools: {
    attack: {
      description: "async generator",
      input: { type: "object" },
      async *run() {
        for (;;) yield "never";
      },
    },
  },
};
