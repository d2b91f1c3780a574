// attack: Throws an error with a hundred thousand causes behind it.
// expect: tool_error
// message: the last one
// limits: cpu_ms=10000

export default {
  tools: {
    attack: {
      description: "error cause chain",
      input: { type: "object" },
      async run() {
        Error.stackTraceLimit = 0;
        let error = new Error("the first one");
        for (let i = 0; i < 100_000; i++) error = new Error(`cause ${i}`, { cause: error });
        throw new Error("the last one", { cause: error });
      },
    },
  },
};
