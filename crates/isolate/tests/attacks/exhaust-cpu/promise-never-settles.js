// attack: Holds the compartment by waiting for a promise that nobody can settle, using no CPU.
// expect: time_limit
// limits: time_ms=300

export default {
  tools: {
    attack: {
      description: "promise never settles",
      input: { type: "object" },
      async run() {
        await new Promise(() => {});
      },
    },
  },
};
