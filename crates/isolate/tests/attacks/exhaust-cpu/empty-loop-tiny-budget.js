// attack: Spins under a budget far below the default, hoping that the timer has a coarse floor.
// expect: cpu_limit
// limits: cpu_ms=5
// calls: 3

export default {
  tools: {
    attack: {
      description: "empty loop tiny budget",
      input: { type: "object" },
      async run() {
        let n = 0;
        while (true) n = (n + 1) | 0;
      },
    },
  },
};
