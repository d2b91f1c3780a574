// attack: Gives setTimeout a delay whose valueOf never returns.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "timer delay spins",
      input: { type: "object" },
      async run() {
        setTimeout(() => {}, {
          valueOf() {
            for (;;);
          },
        });
        return { scheduled: true };
      },
    },
  },
};
