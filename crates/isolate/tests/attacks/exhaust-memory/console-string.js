// attack: Logs a string of half a gigabyte.
// expect: memory_limit
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "console string",
      input: { type: "object" },
      async run() {
        console.log("x".repeat(2 ** 29 - 25));
        return { logged: true };
      },
    },
  },
};
