// attack: Logs one line that is far larger than any result may be: a limit on one frame must not be taken for a lie.
// expect: log_limit
// limits: result_kb=1 log_kb=64 cpu_ms=1000

export default {
  tools: {
    attack: {
      description: "log line larger than result",
      input: { type: "object" },
      async run(input, ctx) {
        ctx.log("x".repeat(200_000));
        await new Promise((resolve) => setTimeout(resolve, 1000));
        return 1;
      },
    },
  },
};
