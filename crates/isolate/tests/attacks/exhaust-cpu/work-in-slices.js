// attack: Cuts the work into slices of 4 ms with a timer between, so that no single turn is long.
// expect: cpu_limit
// limits: time_ms=5000

export default {
  tools: {
    attack: {
      description: "work in slices",
      input: { type: "object" },
      async run() {
        return new Promise(() => {
          setInterval(() => {
            const start = Date.now();
            while (Date.now() - start < 4);
          }, 1);
        });
      },
    },
  },
};
