// attack: Queues timers for next year, each with its own closure and argument.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "timers",
      input: { type: "object" },
      async run() {
        for (let i = 0; ; i++) setTimeout(() => i, 2 ** 31 - 1, `argument ${i}`);
      },
    },
  },
};
