// attack: Reports progress for as long as it lives; progress counts as log.
// expect: log_limit
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "progress flood",
      input: { type: "object" },
      async run(input, ctx) {
        for (let i = 0; ; i++) ctx.progress(i, 1e9, "still working on it");
      },
    },
  },
};
