// attack: Uses half of the budget of a call, several times over: the budget is each call's own.
// expect: ok
// result: {"done":true}
// calls: 5
// limits: cpu_ms=200

export default {
  tools: {
    attack: {
      description: "event loop hog",
      input: { type: "object" },
      async run() {
        const start = performance.now();
        while (performance.now() - start < 100);
        return { done: true };
      },
    },
  },
};
