// attack: A builtin asks four billion holes whether they exist; the callback is never called.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "sparse for each",
      input: { type: "object" },
      async run() {
        let calls = 0;
        new Array(2 ** 32 - 1).forEach(() => calls++);
        return { calls };
      },
    },
  },
};
