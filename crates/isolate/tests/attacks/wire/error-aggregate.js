// attack: Throws an AggregateError of a hundred thousand errors, each an aggregate of the same list.
// expect: tool_error
// message: aggregate
// limits: cpu_ms=10000

export default {
  tools: {
    attack: {
      description: "error aggregate",
      input: { type: "object" },
      async run() {
        Error.stackTraceLimit = 0;
        const list = [];
        for (let i = 0; i < 100_000; i++) list.push(Object.assign(new AggregateError([], `part ${i}`), { errors: list }));
        throw new AggregateError(list, "aggregate of aggregates");
      },
    },
  },
};
