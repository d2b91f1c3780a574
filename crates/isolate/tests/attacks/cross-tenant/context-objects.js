// attack: Marks every object the host hands to a call, and their prototypes, to meet them again.
// expect: ok
// result: {"seen":false}
// calls: 3
// input: {"nested":{"list":[1]}}

export default {
  tools: {
    attack: {
      description: "context objects",
      input: { type: "object" },
      async run(input, ctx) {
        const objects = [ctx.signal, Object.getPrototypeOf(ctx.signal), input, input.nested, ctx.log, AbortSignal, fetch, console, performance, crypto];
        let seen = false;
        for (const object of objects) {
          if ("mark" in object) seen = true;
          try {
            object.mark = true;
          } catch {}
        }
        return { seen };
      },
    },
  },
};
