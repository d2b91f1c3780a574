// attack: Array destructuring closes an iterator whose return() method never comes back.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "iterator return spins",
      input: { type: "object" },
      async run() {
        const iterable = {
          [Symbol.iterator]() {
            return {
              next: () => ({ done: false, value: 1 }),
              return() {
                for (;;);
              },
            };
          },
        };
        const [first] = iterable;
        return { first };
      },
    },
  },
};
