// attack: Sleeps until a timer far in the future, far past the largest delay a 32-bit clock can hold.
// expect: time_limit
// limits: time_ms=300

export default {
  tools: {
    attack: {
      description: "timer far future",
      input: { type: "object" },
      async run() {
        await new Promise((resolve) => setTimeout(resolve, 2 ** 31 - 1));
        return { woke: true };
      },
    },
  },
};
