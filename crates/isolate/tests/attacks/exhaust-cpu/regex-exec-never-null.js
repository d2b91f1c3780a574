// attack: A subclass of RegExp always finds another match, so Symbol.replace never finishes collecting.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "regex exec never null",
      input: { type: "object" },
      async run() {
        class Endless extends RegExp {
          exec() {
            return Object.assign(["a"], { index: 0 });
          }
        }
        return { text: "a".replace(new Endless("a", "g"), "b") };
      },
    },
  },
};
