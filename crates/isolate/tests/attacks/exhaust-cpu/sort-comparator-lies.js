// attack: Sorts with a comparator that contradicts itself, over an array that it keeps mutating.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "sort comparator lies",
      input: { type: "object" },
      async run() {
        const array = new Array(300_000).fill(0);
        array.sort(() => {
          array.length = 300_000;
          return Math.random() - 0.5;
        });
        return { length: array.length };
      },
    },
  },
};
