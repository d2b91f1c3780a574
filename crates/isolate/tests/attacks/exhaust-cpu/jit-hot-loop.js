// attack: A loop that the optimising compiler turns into machine code without calls.
// expect: cpu_limit
// jit: true

export default {
  tools: {
    attack: {
      description: "jit hot loop",
      input: { type: "object" },
      async run() {
        let x = 1;
        for (let i = 0; ; i = (i + 1) | 0) x = Math.imul(x ^ i, 0x9e3779b1);
      },
    },
  },
};
