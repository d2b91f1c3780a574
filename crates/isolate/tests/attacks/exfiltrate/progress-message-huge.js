// attack: Reports progress with a message of ten megabytes, which is cut and counted.
// expect: log_limit
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "progress message huge",
      input: { type: "object" },
      async run(input, ctx) {
        // What is cut must stay a frame the host can read: this must never look like a broken protocol.
        for (let i = 0; i < 16; i++) ctx.progress(i, 16, "x".repeat(10_000_000));
        return { reported: true };
      },
    },
  },
};
