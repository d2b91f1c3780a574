// attack: Forty nested pairs that share one child: JSON.stringify writes 2^40 leaves out of eighty objects.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "json stringify shared tree",
      input: { type: "object" },
      async run() {
        let tree = [0];
        for (let i = 0; i < 40; i++) tree = [tree, tree];
        return { length: JSON.stringify(tree).length };
      },
    },
  },
};
