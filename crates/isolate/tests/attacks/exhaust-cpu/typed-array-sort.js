// attack: One native sort of two million numbers, which V8 cannot interrupt.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "typed array sort",
      input: { type: "object" },
      async run() {
        const numbers = new Float64Array(2 ** 21);
        for (let i = 0; i < 4096; i++) numbers[i] = Math.random();
        for (let filled = 4096; filled < numbers.length; filled *= 2) numbers.copyWithin(filled, 0, filled);
        numbers.sort();
        return { first: numbers[0] };
      },
    },
  },
};
