// attack: A JSON.parse reviver puts a fresh tree under each key that is still to be visited.
// expect: tool_error
// message: Maximum call stack size exceeded
// limits: cpu_ms=1000

export default {
  tools: {
    attack: {
      description: "json reviver regrows",
      input: { type: "object" },
      async run() {
        return JSON.parse('{"a":0,"b":0}', function (key, value) {
          if (key === "a") this.b = { a: 0, b: 0 };
          return value;
        });
      },
    },
  },
};
