// attack: Reflect.apply collects 2^22 arguments from an array-like before it can find out that they do not fit.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "apply million arguments",
      input: { type: "object" },
      async run() {
        for (;;) {
          try {
            Reflect.apply(Math.max, null, { length: 2 ** 22 });
          } catch {}
        }
      },
    },
  },
};
