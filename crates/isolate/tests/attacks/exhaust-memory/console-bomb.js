// attack: Logs a shared tree of 2^30 leaves and a string of half a gigabyte in one call.
// expect: log_limit | memory_limit | ok
// result: {"logged":true}
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "console bomb",
      input: { type: "object" },
      async run() {
        // What is shown is bounded; whether it then fits the log is a matter of its wording.
        let tree = ["leaf"];
        for (let i = 0; i < 30; i++) tree = [tree, tree];
        console.log(tree);
        console.log("x".repeat(2 ** 29 - 25));
        return { logged: true };
      },
    },
  },
};
