// attack: Fills the default memory with the default CPU budget by the largest steps there are.
// expect: memory_limit

export default {
  tools: {
    attack: {
      description: "default limits",
      input: { type: "object" },
      async run() {
        const keep = [];
        for (let i = 0; ; i++) keep.push(new Array(2 ** 22));
      },
    },
  },
};
