// attack: Gives its answer and goes on in microtasks for ever: an answer leaves when its turn is over, which never comes.
// expect: cpu_limit
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
