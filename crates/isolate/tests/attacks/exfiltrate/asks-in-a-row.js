// attack: Asks the client behind the call for something, for ever.
// expect: host_call_limit
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "asks in a row",
      input: { type: "object" },
      async run(input, ctx) {
        for (;;) await ctx.elicit({ message: "secret", requestedSchema: { type: "object" } }).catch(() => {});
      },
    },
  },
};
