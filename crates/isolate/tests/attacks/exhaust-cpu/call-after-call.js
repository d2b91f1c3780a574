// attack: Uses up the whole budget in each of several calls, to see whether the next one inherits the debt.
// expect: cpu_limit
// calls: 4

export default {
  tools: {
    attack: {
      description: "call after call",
      input: { type: "object" },
      async run() {
        const wall = [];
        for (let i = 0; ; i++) wall[i % 64] = Math.sqrt(i);
      },
    },
  },
};
