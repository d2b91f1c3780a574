// attack: Exponential recursion that never goes deep and never allocates.
// expect: cpu_limit

const fib = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2));

export default {
  tools: {
    attack: {
      description: "fibonacci",
      input: { type: "object" },
      async run() {
        return { fib: fib(70) };
      },
    },
  },
};
