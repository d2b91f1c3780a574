// attack: Gives its answer and goes on in microtasks for ever: the answer counts, the rest is nobody's.
// expect: ok
// result: {"answered":true}
// calls: 3

export default {
  tools: {
    attack: {
      description: "queue microtask loop",
      input: { type: "object" },
      async run() {
        queueMicrotask(function again() {
          queueMicrotask(again);
        });
        return { answered: true };
      },
    },
  },
};
