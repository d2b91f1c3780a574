// attack: Array.prototype.toString walks a tree of 2^40 paths made of forty arrays.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "array to string shared tree",
      input: { type: "object" },
      async run() {
        let tree = [1];
        for (let i = 0; i < 40; i++) tree = [tree, tree];
        return { length: String(tree).length };
      },
    },
  },
};
