// attack: Logs a shared tree of 2^30 leaves: what is shown of it is bounded.
// expect: ok
// result: {"logged":true}
// limits: cpu_ms=1000

export default {
  tools: {
    attack: {
      description: "console tree",
      input: { type: "object" },
      async run() {
        let tree = ["leaf"];
        for (let i = 0; i < 30; i++) tree = [tree, tree];
        console.log(tree);
        return { logged: true };
      },
    },
  },
};
