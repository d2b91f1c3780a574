// attack: Answers every way of being stopped by a catch or finally block that spins again.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "finally spins on",
      input: { type: "object" },
      async run() {
        for (;;) {
          try {
            for (;;);
          } catch {
            for (;;);
          } finally {
            for (;;);
          }
        }
      },
    },
  },
};
