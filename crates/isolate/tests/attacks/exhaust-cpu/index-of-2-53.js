// attack: One call of indexOf on an array-like of 2^53-1 elements: V8 cannot be interrupted inside it.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "index of 2 53",
      input: { type: "object" },
      async run() {
        return { index: Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1) };
      },
    },
  },
};
