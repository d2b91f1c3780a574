// attack: Queues timers as fast as it can, so that the timer list itself is the work.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "timer flood",
      input: { type: "object" },
      async run() {
        for (let i = 0; ; i++) setTimeout(() => {}, i % 1000);
      },
    },
  },
};
