// attack: An iterator helper looks for an element that an endless iterator does not have.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "iterator helper filter",
      input: { type: "object" },
      async run() {
        function* naturals() {
          for (let i = 0; ; i++) yield i;
        }
        return naturals()
          .filter(() => false)
          .next();
      },
    },
  },
};
