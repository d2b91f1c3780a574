// attack: Every promise reaction starts the next, so the microtask queue is never empty.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "promise then loop",
      input: { type: "object" },
      async run() {
        return new Promise(() => {
          (function next() {
            Promise.resolve().then(next);
          })();
        });
      },
    },
  },
};
