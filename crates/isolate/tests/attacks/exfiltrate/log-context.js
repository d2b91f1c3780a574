// attack: Floods the log of the context instead of the console's, with objects that are large when shown.
// expect: log_limit
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "log context",
      input: { type: "object" },
      async run(input, ctx) {
        const wide = { list: new Array(100).fill("x".repeat(100)) };
        for (;;) ctx.log("flood", wide);
      },
    },
  },
};
