// attack: Reports progress with a message of ten megabytes, which is cut and counted.
// expect: log_limit | ok
// result: {"reported":true}
// limits: cpu_ms=2000

export default {
  tools: {
    attack: {
      description: "progress message huge",
      input: { type: "object" },
      async run(input, ctx) {
        // One message is cut to a size below the default log; sixteen of them are not.
        for (let i = 0; i < 16; i++) ctx.progress(i, 16, "x".repeat(10_000_000));
        return { reported: true };
      },
    },
  },
};
