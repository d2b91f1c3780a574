// attack: A polynomial expression retried from every position of a long subject.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "regex quadratic replace",
      input: { type: "object" },
      async run() {
        return { length: "x".repeat(200_000).replace(/x*y/g, "").length };
      },
    },
  },
};
