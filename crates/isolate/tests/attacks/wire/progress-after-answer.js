// attack: Reports progress and logs for a call that is answered already.
// expect: ok
// result: {"answered":true}
// calls: 2

export default {
  tools: {
    attack: {
      description: "progress after answer",
      input: { type: "object" },
      async run(input, ctx) {
        setTimeout(() => ctx.progress(2), 0);
        Promise.resolve()
          .then(() => {})
          .then(() => {})
          .then(() => {
            for (let i = 0; i < 10; i++) {
              ctx.progress(i);
              ctx.log("too late");
            }
          });
        return { answered: true };
      },
    },
  },
};
