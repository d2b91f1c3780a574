// attack: Asks so much in one turn that the single host call it becomes would not fit a frame.
// expect: ok
// result: ["client_cannot","host_call_too_large"]
// limits: cpu_ms=10000

export default {
  tools: {
    attack: {
      description: "asks at once",
      input: { type: "object" },
      async run(input, ctx) {
        const asks = [];
        for (let i = 0; i < 20_000; i++) asks.push(ctx.roots().catch((error) => error.code));
        return [...new Set(await Promise.all(asks))].sort();
      },
    },
  },
};
