// attack: A chain of short timers keeps the compartment busy with next to no CPU.
// expect: time_limit
// limits: time_ms=300

export default {
  tools: {
    attack: {
      description: "timer keeps alive",
      input: { type: "object" },
      async run() {
        return new Promise(() => {
          (function tick() {
            setTimeout(tick, 20);
          })();
        });
      },
    },
  },
};
