// attack: Reports progress with everything that is no finite number, and with messages that are no text.
// expect: ok
// result: {"survived":true}

export default {
  tools: {
    attack: {
      description: "progress odd values",
      input: { type: "object" },
      async run(input, ctx) {
        const odd = [NaN, Infinity, -1, 1e308, -0, "1", null, undefined, {}, [], 2n ** 70n, Symbol("s"), { valueOf: () => 1, toJSON: () => "forged" }];
        for (const value of odd) {
          for (const attempt of [() => ctx.progress(value), () => ctx.progress(1, value), () => ctx.progress(1, 2, value)]) {
            try {
              attempt();
            } catch (error) {
              if (!(error instanceof TypeError)) throw error;
            }
          }
        }
        ctx.progress(1, 2, "\ud800\u0000\n");
        return { survived: true };
      },
    },
  },
};
