// attack: Every microtask queues two more, so that the queue outside the heap doubles for ever.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "microtask fan out",
      input: { type: "object" },
      async run() {
        return new Promise(() => {
          (function fan() {
            Promise.resolve().then(fan);
            Promise.resolve().then(fan);
          })();
        });
      },
    },
  },
};
