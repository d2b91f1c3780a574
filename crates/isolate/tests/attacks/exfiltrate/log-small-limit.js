// attack: Logs where the permit allows no log at all.
// expect: log_limit
// limits: log_kb=0

export default {
  tools: {
    attack: {
      description: "log small limit",
      input: { type: "object" },
      async run() {
        console.log("x");
        await new Promise((resolve) => setTimeout(resolve, 1000));
        return { logged: true };
      },
    },
  },
};
