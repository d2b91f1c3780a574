// attack: Leaves rejections unhandled and lets microtasks and timers throw, before it answers.
// expect: ok
// result: {"answered":true}

export default {
  tools: {
    attack: {
      description: "unhandled rejections",
      input: { type: "object" },
      async run() {
        Promise.reject(new Error("unhandled"));
        queueMicrotask(() => {
          throw new Error("thrown in a microtask");
        });
        setTimeout(() => {
          throw null;
        }, 0);
        new Promise(() => {
          throw new Error("thrown in an executor");
        });
        await new Promise((resolve) => setTimeout(resolve, 10));
        return { answered: true };
      },
    },
  },
};
