// attack: Returns forty nested pairs that share one child: 2^40 leaves for the host to write.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "result shared tree",
      input: { type: "object" },
      async run() {
        let tree = ["leaf"];
        for (let i = 0; i < 40; i++) tree = [tree, tree];
        return tree;
      },
    },
  },
};
