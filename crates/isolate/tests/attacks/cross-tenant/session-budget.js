// attack: Uses up nearly the whole CPU budget in each call of one session: the budget starts anew with each call.
// expect: ok
// result: {"done":true}
// calls: 5
// boundary: session
// limits: cpu_ms=200

export default {
  tools: {
    attack: {
      description: "session budget",
      input: { type: "object" },
      async run() {
        const start = performance.now();
        while (performance.now() - start < 100);
        return { done: true };
      },
    },
  },
};
